import { type Bytes, type Micros, never } from "@pure-link/wire"
import { SackBlocks } from "./SackBlocks.ts"
import { mostBlocks, Segment, segmentBytes, timestampAt, writeAcknowledgement } from "./segment.ts"

/**
 * The receiving half of the reference flow, whose application takes everything at once. It acknowledges every second
 * segment or after 40 ms (RFC 1122 §4.2.3.2), each of the first sixteen at once, at once too what is out of order,
 * fills a gap or came twice (RFC 5681 §4.2), and after three such for one gap not more often than every millisecond, as
 * Linux compresses SACKs (`__tcp_ack_snd_check`).
 */

export interface ReceiverOptions {
  readonly window: Bytes
}

const delayedAcknowledgement: Micros = 40_000
const quickAtStart = 16
const quickAfterDuplicate = 2
const promptForGap = 3
const compression: Micros = 1_000

export class TcpReceiver {
  /** Bytes received in order. */
  deliveredBytes: Bytes = 0
  /** The first segment not received in order. */
  next = 0
  readonly counters = { segments: 0, duplicates: 0, stale: 0, acknowledgements: 0 }
  readonly #segment = new Segment()
  readonly #windowSegments: number
  readonly #mask: number
  /** Payload of segments that arrived beyond `next`, 0 for none. */
  readonly #payloads: Uint16Array
  readonly #blocks = new SackBlocks()
  readonly #starts = new Float64Array(mostBlocks)
  readonly #ends = new Float64Array(mostBlocks)
  #beyond = 0
  /** The segment that came twice, to be told of as D-SACK; −1 for none. */
  #duplicate = -1
  /** `next` in the last acknowledgement (`rcv_wup`), and the timestamp to echo (RFC 7323 §4.3). */
  #acknowledged = 0
  #echo = 0
  #quick = quickAtStart
  #isDue = false
  #dueAt: Micros = never
  #gap = -1
  #promptSent = 0

  constructor(options: ReceiverOptions) {
    this.#windowSegments = Math.floor(options.window / segmentBytes)
    const size = 2 ** Math.ceil(Math.log2(this.#windowSegments))
    this.#mask = size - 1
    this.#payloads = new Uint16Array(size)
  }

  /** May make an acknowledgement due; poll after each segment. */
  handleSegment(now: Micros, bytes: Uint8Array): void {
    const segment = this.#segment
    if (!segment.read(bytes) || !segment.isData) return
    this.counters.segments++
    const { number } = segment
    if (segment.timestamp < this.#echo - 1) this.#refuseStale(number)
    else if (number < this.next) this.#noteDuplicate(number)
    else if (number >= this.next + this.#windowSegments) this.#isDue = true
    else {
      if (number <= this.#acknowledged) this.#echo = Math.max(this.#echo, segment.timestamp)
      this.#accept(number, segment.payload)
      this.#schedule(now)
    }
  }

  /** Writes the acknowledgement if one is due and returns its length, else 0. */
  poll(now: Micros, out: Uint8Array): Bytes {
    if (!this.#isDue && now < this.#dueAt) return 0
    this.#isDue = false
    this.#dueAt = never
    this.#acknowledged = this.next
    if (this.#quick > 0) this.#quick--
    this.counters.acknowledgements++
    const told = this.#blocks.copyTo(this.#starts, this.#ends, this.#tellDuplicate())
    const window = this.#windowSegments
    return writeAcknowledgement(out, this.next, window, timestampAt(now), this.#echo, this.#starts, this.#ends, told)
  }

  deadline(): Micros {
    return this.#isDue ? 0 : this.#dueAt
  }

  /** PAWS (RFC 7323 §5): overtaken by a copy that was sent more than a millisecond later, it is lost to TCP. */
  #refuseStale(number: number): void {
    this.counters.stale++
    if (number < this.next) this.#noteDuplicate(number)
    this.#isDue = true
  }

  #noteDuplicate(number: number): void {
    this.counters.duplicates++
    this.#duplicate = number
    this.#quick = Math.max(this.#quick, quickAfterDuplicate)
    this.#isDue = true
  }

  #accept(number: number, payload: Bytes): void {
    if (number > this.next) return this.#keep(number, payload)
    this.deliveredBytes += payload
    this.next++
    if (this.#beyond === 0) return
    this.#takeKept()
    this.#blocks.removeBefore(this.next)
    if (this.#beyond === 0) this.#isDue = true
  }

  #keep(number: number, payload: Bytes): void {
    if (this.#payloads[number & this.#mask] !== 0) {
      this.counters.duplicates++
      this.#duplicate = number
      this.#isDue = true
      return
    }
    this.#payloads[number & this.#mask] = payload
    this.#beyond++
    const mayWait = this.#blocks.add(number)
    if (!mayWait && this.#dueAt !== never) this.#isDue = true
  }

  #takeKept(): void {
    for (let slot = this.next & this.#mask; this.#payloads[slot] !== 0; slot = this.next & this.#mask) {
      this.deliveredBytes += this.#payloads[slot]!
      this.#payloads[slot] = 0
      this.#beyond--
      this.next++
    }
  }

  #schedule(now: Micros): void {
    if (this.next - this.#acknowledged > 1 || this.#quick > 0) this.#isDue = true
    if (this.#isDue) return
    if (this.#beyond === 0) this.#dueAt = Math.min(this.#dueAt, now + delayedAcknowledgement)
    else if (this.#isPrompt()) this.#isDue = true
    else this.#dueAt = Math.min(this.#dueAt, now + compression)
  }

  #isPrompt(): boolean {
    if (this.#gap !== this.next) {
      this.#gap = this.next
      this.#promptSent = 0
    }
    return ++this.#promptSent <= promptForGap
  }

  /** The D-SACK is the first block, and told once. */
  #tellDuplicate(): number {
    if (this.#duplicate < 0) return 0
    this.#starts[0] = this.#duplicate
    this.#ends[0] = this.#duplicate + 1
    this.#duplicate = -1
    return 1
  }
}

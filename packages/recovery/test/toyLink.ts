import { silentTrace, type Trace } from "@pure-link/trace"
import { type Bytes, type Micros, never, type PacketNumber } from "@pure-link/wire"
import type { CongestionController } from "../src/congestion/CongestionController.ts"
import { FixedSize } from "../src/pathMtu/fixedSize.ts"
import { Policies, type PolicyMakers } from "../src/policies.ts"
import { Recovery } from "../src/recovery.ts"

/**
 * A recovery against a toy path: one bottleneck with a drop-tail queue, then a delay that may vary, and a receiver that
 * answers every packet, or pairs. Pure arithmetic in virtual time.
 */

export const datagram: Bytes = 1_200
export const second: Micros = 1_000_000
const fixedSize = { make: () => new FixedSize(datagram) }

export interface Path {
  readonly bitsPerSecond: number
  readonly rtt: Micros
  /** Datagrams that wait at most at the bottleneck. */
  readonly queue: number
  /** Whether a packet of a size, sent now, is lost before the queue. */
  readonly drops: (now: Micros, bytes: Bytes) => boolean
  /** Delay on top of `rtt` of a packet sent now; a smaller one later lets packets overtake. */
  readonly delay: (now: Micros) => Micros
  /** Every timer of the sender is this late. */
  readonly timerLate: Micros
  /** One answer for two packets that arrive within 1 ms; a lone one is answered after that. */
  readonly inPairs: boolean
}

export const cleanPath: Path = {
  bitsPerSecond: 50_000_000,
  rtt: 20_000,
  queue: 104,
  drops: () => false,
  delay: () => 0,
  timerLate: 0,
  inPairs: false
}

interface Answer {
  at: Micros
  readonly numbers: Array<PacketNumber>
}

export class ToyLink {
  now: Micros = 0
  delivered = 0
  /** Packets that the path lost, by `drops` or in the queue. */
  readonly dropped = new Set<PacketNumber>()
  readonly recovery: Recovery
  readonly #path: Path
  #unsent = 0
  #departure: Micros = 0
  readonly #answers: Array<Answer> = []
  #nextAnswer = 0
  /** What every answer reports beside what is new. */
  #largestArrived: PacketNumber = -1

  constructor(
    controller: CongestionController,
    path: Path,
    options: { readonly policies?: Partial<PolicyMakers>; readonly largestWindow?: Bytes; readonly trace?: Trace } = {}
  ) {
    const { policies = {}, largestWindow = 10_000 * datagram, trace = silentTrace } = options
    const congestionControl = { make: () => controller }
    this.recovery = new Recovery({
      policies: { ...Policies.defaults, pathMtu: fixedSize, congestionControl, ...policies },
      datagramSize: datagram,
      largestWindow,
      trace
    })
    this.#path = path
  }

  offer(datagrams: number): void {
    this.#unsent += datagrams
  }

  /** Runs until `end`, or until so many datagrams are delivered in all. */
  run(end: Micros, delivered = Infinity): void {
    while (this.now < end && this.delivered < delivered) {
      const paced = this.#transmit()
      const answerAt = this.#answers[this.#nextAnswer]?.at ?? never
      const timer = Math.min(paced, this.recovery.deadline()) + this.#path.timerLate
      this.now = Math.max(this.now, Math.min(answerAt, timer, end))
      if (this.now >= answerAt) this.#answer()
      else if (this.recovery.handleTimeout(this.now) === "probe") this.#send(true)
      this.#unsent += this.recovery.outcome.lost.length
      this.recovery.outcome.lost.clear()
    }
  }

  /** Sends what may go, an urgent probe of the path last; returns when pacing lets more go. */
  #transmit(): Micros {
    if (!this.recovery.isPathProbeUrgent) this.#sendPathProbe()
    const paced = this.#transmitWaiting()
    if (this.recovery.isPathProbeUrgent) this.#sendPathProbe()
    return paced
  }

  #transmitWaiting(): Micros {
    const { recovery } = this
    while (this.#unsent > 0 && recovery.windowAllows(recovery.datagramSize) && !recovery.ringIsFull()) {
      const at = recovery.paceAt(this.now)
      if (at > this.now) {
        recovery.setLimited(this.now, false)
        return at
      }
      this.#unsent--
      this.#send(false)
    }
    recovery.setLimited(this.now, this.#unsent === 0)
    if (this.#unsent === 0) return never
    return recovery.waitForRoom(this.now)
  }

  #sendPathProbe(): void {
    const { recovery } = this
    if (recovery.pathProbeAt > this.now) return
    if (!recovery.isPathProbeUrgent && !recovery.hasRoom(recovery.pathProbeSize)) return
    this.#carry(recovery.handlePathProbeSent(this.now, recovery.pathProbeSize), recovery.pathProbeSize)
  }

  #send(probe: boolean): void {
    const bytes = this.recovery.datagramSize
    this.#carry(this.recovery.handleSent(this.now, bytes, probe), bytes)
  }

  #carry(number: PacketNumber, bytes: Bytes): void {
    const serialization = (bytes * 8 * second) / this.#path.bitsPerSecond
    const waiting = Math.max(0, this.#departure - this.now) / serialization
    if (this.#path.drops(this.now, bytes) || waiting > this.#path.queue) {
      this.dropped.add(number)
      return
    }
    this.#departure = Math.max(this.now, this.#departure) + serialization
    this.#answerLater(number, Math.ceil(this.#departure + this.#path.rtt + this.#path.delay(this.now)))
  }

  #answerLater(number: PacketNumber, at: Micros): void {
    const last = this.#answers.at(-1)
    if (!this.#path.inPairs) this.#insert({ at, numbers: [number] })
    else if (last !== undefined && last.numbers.length === 1 && last.at > this.now && at <= last.at) {
      last.numbers.push(number)
      last.at = at
    } else this.#answers.push({ at: at + 1_000, numbers: [number] })
  }

  /** In the order of times; packets that were not delayed overtake those that were. */
  #insert(answer: Answer): void {
    let i = this.#answers.length
    while (i > this.#nextAnswer && this.#answers[i - 1]!.at > answer.at) i--
    this.#answers.splice(i, 0, answer)
  }

  #answer(): void {
    const { recovery } = this
    const { numbers } = this.#answers[this.#nextAnswer++]!
    recovery.beginAnswer(this.now)
    for (const number of numbers) recovery.acknowledge(number, number, false)
    this.#largestArrived = Math.max(this.#largestArrived, ...numbers)
    recovery.endAnswer(this.now, this.#largestArrived, 0)
    this.delivered += recovery.outcome.acked.count + recovery.outcome.late.length
  }
}

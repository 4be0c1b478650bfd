import type { Recovery } from "@pure-link/recovery"
import {
  AcknowledgedReader,
  type AcceptFrame,
  FrameCursor,
  FrameType,
  type ChallengeFrame,
  type Micros,
  type PacketNumber,
  readAccept,
  readChallenge,
  readRefused,
  type RefusalReason,
  StoredReader,
  validateBody
} from "@pure-link/wire"

/**
 * One opened answer, decoded as a whole before anything takes effect (spec §9.4). One instance serves all answers of
 * a link.
 */
export class Answer {
  /** The largest number in ACK or SEEN, and the delay told with it; −1 when the answer reports none. */
  reported: PacketNumber = -1
  delay: Micros = 0
  hasStored = false
  readonly stored = new StoredReader()
  accept: AcceptFrame | undefined
  challenge: ChallengeFrame | undefined
  refused: RefusalReason | undefined
  /** The receiver does not know the stream (spec §8.1). */
  lacksName = false

  readonly #cursor = new FrameCursor()
  readonly #list = new AcknowledgedReader()
  #bytes: Uint8Array = new Uint8Array(0)
  #start = 0
  #end = 0

  /** Reads the body in bytes[start, end); false when it is malformed. */
  read(bytes: Uint8Array, start: number, end: number): boolean {
    if (!validateBody(bytes, start, end, "answer")) return false
    this.#bytes = bytes
    this.#start = start
    this.#end = end
    this.reported = -1
    this.hasStored = false
    this.accept = undefined
    this.challenge = undefined
    this.refused = undefined
    this.lacksName = false
    this.#cursor.reset(bytes, start, end)
    while (this.#cursor.next()) this.#readFrame()
    return true
  }

  /** Hands the ranges of ACK and SEEN to recovery: newest first, as long as it has flights that they could settle. */
  acknowledge(recovery: Recovery): void {
    const list = this.#list
    const { oldestOpen } = recovery
    this.#cursor.reset(this.#bytes, this.#start, this.#end)
    while (this.#cursor.next()) {
      if (!isList(this.#cursor.type)) continue
      list.read(this.#bytes, this.#cursor.start)
      while (list.next()) {
        if (list.high < oldestOpen) break
        recovery.acknowledge(list.low, list.high, list.seen)
      }
    }
  }

  #readFrame(): void {
    const { type, start, end } = this.#cursor
    if (isList(type)) this.#readList(start)
    else if (type === FrameType.stored) {
      this.hasStored = true
      this.stored.read(this.#bytes, start)
    } else if (type === FrameType.accept) this.accept = readAccept(this.#bytes, start, end)
    else if (type === FrameType.challenge) this.challenge = readChallenge(this.#bytes, start, end)
    else if (type === FrameType.refused) this.refused = readRefused(this.#bytes, start, end).reason
    else if (type === FrameType.name) this.lacksName = true
  }

  #readList(start: number): void {
    this.#list.read(this.#bytes, start)
    if (this.#list.largest <= this.reported) return
    this.reported = this.#list.largest
    this.delay = this.#list.delay
  }
}

const isList = (type: number): boolean => type >= FrameType.ack && type <= FrameType.seenMap

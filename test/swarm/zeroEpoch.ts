import { dataKey, type PacketKey, type Pair } from "@pure-link/keys"
import {
  FrameCursor,
  FrameType,
  type Id64,
  PacketHeader,
  RecordsReader,
  tagLength,
  validateBody
} from "@pure-link/wire"
import { quickSuite as suite } from "../world/quickSuite.ts"
import { Violation } from "./violation.ts"

/**
 * Opens every packet of epoch 0 of a run, as whoever steals a static key could, and counts the record bytes: at most
 * one initial window, none after the run's first answer, and none at all in a run that neither the start of a process
 * nor LOST led to (spec §7.1, §7.8, §12.3).
 */

/** The initial window of spec §18 for datagrams of 1,200 B, and for those of 1,452 B that a path is known to carry. */
const initialWindow = { atStart: 12_000, afterLost: 14_520 }

export class ZeroEpoch {
  recordBytes = 0
  #key: PacketKey | undefined
  readonly #header = new PacketHeader()
  readonly #cursor = new FrameCursor()
  readonly #reader = new RecordsReader()

  readonly staticSecret: Uint8Array
  readonly pair: Pair
  readonly run: Id64
  /** It follows LOST. */
  readonly isFresh: boolean
  /** Why the run may carry no records under epoch 0; undefined when it may. */
  readonly objection: string | undefined

  constructor(staticSecret: Uint8Array, pair: Pair, run: Id64, isFresh: boolean, objection?: string) {
    this.staticSecret = staticSecret
    this.pair = pair
    this.run = run
    this.isFresh = isFresh
    this.objection = objection
  }

  /** A data packet leaves. `answered`: the run opened an answer before. */
  check(packet: Uint8Array, answered: boolean): void {
    const header = this.#header
    header.read(packet, 0, packet.length)
    if (header.epochBits !== 0) return
    this.#key ??= dataKey(suite, this.staticSecret, this.pair, this.run, 0)
    const bytes = packet.slice()
    const end = bytes.length - tagLength
    if (!this.#key.open(bytes, 0, header.length, bytes.length, header.number))
      throw new Violation("a packet of epoch 0 does not open under the static keys")
    if (!validateBody(bytes, header.length, end, "data")) throw new Violation("a packet with a malformed body was sent")
    const recordBytes = this.#count(bytes, header.length, end)
    this.recordBytes += recordBytes
    if (answered && recordBytes > 0) throw new Violation("records went under epoch 0 after an answer")
    if (this.recordBytes > (this.isFresh ? initialWindow.afterLost : initialWindow.atStart))
      throw new Violation(`${this.recordBytes} B of records went under epoch 0 of one run`)
    if (recordBytes > 0 && this.objection !== undefined)
      throw new Violation(`records went under epoch 0 of a run ${this.objection}`)
  }

  #count(bytes: Uint8Array, start: number, end: number): number {
    let total = 0
    this.#cursor.reset(bytes, start, end)
    while (this.#cursor.next()) {
      if (this.#cursor.type < FrameType.partOpen) continue
      this.#reader.read(bytes, this.#cursor.start, this.#cursor.end)
      total += this.#reader.total
    }
    return total
  }
}

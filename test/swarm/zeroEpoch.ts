import { dataKey, nodeSuite, type PacketKey, type Pair } from "@pure-link/keys"
import {
  FrameCursor,
  FrameType,
  type Id64,
  PacketHeader,
  RecordsReader,
  tagLength,
  validateBody
} from "@pure-link/wire"
import { Violation } from "./violation.ts"

/**
 * Opens every packet of epoch 0 of a run, as whoever steals a static key could, and counts the record bytes: at most
 * one initial window, and none after the run's first answer (spec §7.1, §7.8).
 */

/** The initial window of spec §18 for datagrams of 1,200 B. */
const initialWindow = 12_000

export class ZeroEpoch {
  #recordBytes = 0
  #key: PacketKey | undefined
  readonly #header = new PacketHeader()
  readonly #cursor = new FrameCursor()
  readonly #reader = new RecordsReader()

  readonly staticSecret: Uint8Array
  readonly pair: Pair
  readonly run: Id64

  constructor(staticSecret: Uint8Array, pair: Pair, run: Id64) {
    this.staticSecret = staticSecret
    this.pair = pair
    this.run = run
  }

  /** A data packet leaves. `answered`: the run opened an answer before. */
  check(packet: Uint8Array, answered: boolean): void {
    const header = this.#header
    header.read(packet, 0, packet.length)
    if (header.epochBits !== 0) return
    this.#key ??= dataKey(nodeSuite, this.staticSecret, this.pair, this.run, 0)
    const bytes = packet.slice()
    const end = bytes.length - tagLength
    if (!this.#key.open(bytes, 0, header.length, bytes.length, header.number))
      throw new Violation("a packet of epoch 0 does not open under the static keys")
    if (!validateBody(bytes, header.length, end, "data")) throw new Violation("a packet with a malformed body was sent")
    const recordBytes = this.#count(bytes, header.length, end)
    this.#recordBytes += recordBytes
    if (this.#recordBytes > initialWindow)
      throw new Violation(`${this.#recordBytes} B of records went under epoch 0 of one run`)
    if (answered && recordBytes > 0) throw new Violation("records went under epoch 0 after an answer")
  }

  #count(bytes: Uint8Array, start: number, end: number): number {
    let total = 0
    this.#cursor.reset(bytes, start, end)
    while (this.#cursor.next()) {
      if (this.#cursor.type < FrameType.partOpen) continue
      this.#reader.read(bytes, this.#cursor.start)
      for (let i = 0; i < this.#reader.count; i++) total += this.#reader.length(i)
    }
    return total
  }
}

import {
  type Bench,
  frameOf,
  list,
  type OpenedPacket,
  partsOf,
  stored
} from "../../packages/sender/test/scriptedPeer.ts"
import { type Frame, type Id64, type Life, lifeOf, type RecordNumber } from "@pure-link/wire"
import { deepStrictEqual } from "node:assert/strict"

/**
 * What an honest receiver would do with a sender that hostile answers were told to before: it starts without a memory of
 * parts, in a fresh reply run, from the n that the sender believes, and must get every record that is left, byte for byte.
 */
export class HonestReceiver {
  private readonly bench: Bench
  /** Which bytes of each record came, and how many are missing. */
  private readonly records = new Map<RecordNumber, { readonly came: Uint8Array; missing: number }>()
  private n: RecordNumber

  constructor(bench: Bench) {
    this.bench = bench
    this.n = bench.link.stored
    bench.peer.replyRun = 0x600d_0000n
    bench.peer.freshReplyRun()
  }

  /** Serves the sender until everything is stored, or `until` is past. */
  serve(until: number): void {
    const { bench } = this
    while (bench.now < until && bench.link.stored < bench.last && bench.link.state !== "forked") {
      const packets = bench.pass(20_000)
      if (packets.length === 0) continue
      this.answer(packets)
    }
  }

  private answer(packets: ReadonlyArray<OpenedPacket>): void {
    const { bench } = this
    for (const packet of packets) this.keep(packet)
    while (this.isComplete(this.n + 1)) this.n += 1
    const frames: Array<Frame> = [
      list("Ack", ...packets.map(({ number }) => number)),
      stored(this.n, {}, this.lifeOf(bench.lives))
    ]
    bench.answer(...frames)
  }

  private lifeOf(lives: ReadonlyArray<Life>): bigint {
    return lifeOf(lives, this.n)?.life ?? 0n
  }

  private keep(packet: OpenedPacket): void {
    for (const { number, offset, bytes, ends } of partsOf(packet, this.baseOf(packet.run))) {
      const record = this.bench.records[number - 1]!
      deepStrictEqual(bytes, record.slice(offset, offset + bytes.length), `record ${number} is sent wrong`)
      deepStrictEqual(ends, offset + bytes.length === record.length, `the end of record ${number} is sent wrong`)
      const known = this.records.get(number) ?? { came: new Uint8Array(record.length), missing: record.length }
      this.records.set(number, known)
      for (let i = offset; i < offset + bytes.length; i++) {
        if (known.came[i] === 0) known.missing -= 1
        known.came[i] = 1
      }
    }
  }

  /** The base that the run's STREAM told (spec §4.3); a fresh run has one of its own. */
  private baseOf(run: Id64): RecordNumber {
    for (const packet of this.bench.peer.packets.toReversed()) {
      const stream = packet.run === run ? frameOf(packet, "Stream") : undefined
      if (stream !== undefined) return stream.base
    }
    return 1
  }

  private isComplete(number: RecordNumber): boolean {
    return this.records.get(number)?.missing === 0
  }
}

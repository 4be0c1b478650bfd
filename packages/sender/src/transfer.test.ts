import { seededEntropy } from "@pure-link/keys"
import { assert, describe, it } from "@effect/vitest"
import type { Frame, Micros, PacketNumber, RecordNumber } from "@pure-link/wire"
import * as Schema from "effect/Schema"
import { Bench, frameOf, list, makeRecords, type OpenedPacket, ownLife, partsOf, stored } from "../test/scriptedPeer.ts"

/**
 * Whole transfers over a bad path to a peer that keeps parts: whatever is lost, late, doubled or forgotten, all
 * records arrive as they were, in bounded time.
 */

/** What a peer has of one record. */
interface Held {
  readonly bytes: Uint8Array
  readonly known: Uint8Array
  size: number
}

/** Keeps parts in memory, stores in order, and answers every packet. */
class Keeper {
  n: RecordNumber = 0
  readonly stored: Array<Uint8Array> = []
  #held = new Map<RecordNumber, Held>()
  #acked: Array<PacketNumber> = []
  #seen: Array<PacketNumber> = []

  /** Forgets all that is not stored, and what it reported. */
  forget(): void {
    this.#held = new Map()
    this.#acked = []
    this.#seen = []
  }

  keep(packet: OpenedPacket, full: boolean): void {
    if (this.#acked.includes(packet.number) || this.#seen.includes(packet.number)) return
    const parts = partsOf(packet, 1)
    const kept = !full || parts.every((part) => part.number === this.n + 1)
    ;(kept ? this.#acked : this.#seen).push(packet.number)
    if (!kept) return
    for (const { number, offset, bytes, ends } of parts) {
      if (number <= this.n) continue
      const held = this.#held.get(number) ?? { bytes: new Uint8Array(90_000), known: new Uint8Array(90_000), size: -1 }
      held.bytes.set(bytes, offset)
      held.known.fill(1, offset, offset + bytes.length)
      if (ends) held.size = offset + bytes.length
      this.#held.set(number, held)
    }
    for (let next; (next = this.#held.get(this.n + 1)) !== undefined && isComplete(next);) {
      this.stored.push(next.bytes.slice(0, next.size))
      this.#held.delete(++this.n)
    }
  }

  frames(): ReadonlyArray<Frame> {
    const acked = this.#acked.slice(-60)
    const seen = this.#seen.slice(-60)
    return [
      ...(acked.length > 0 ? [list("Ack", ...acked)] : []),
      ...(seen.length > 0 ? [list("Seen", ...seen)] : []),
      stored(this.n, { creditRecords: 1000, creditBytes: 300_000 })
    ]
  }
}

const isComplete = ({ size, known }: Held): boolean => size >= 0 && known.subarray(0, size).every((byte) => byte === 1)

interface Path {
  readonly seed: number
  readonly lossPercent: number
  readonly jitter: Micros
  /** The peer forgets everything at these packet counts. */
  readonly restarts: ReadonlyArray<number>
  /** Of a hundred packets, the peer has no room for this many. */
  readonly fullPercent: number
}

/** Runs a transfer to its end; returns the peer, and fails when it takes too long. */
const transfer = (bench: Bench, path: Path): Keeper => {
  const random = randomOf(path.seed)
  const keeper = new Keeper()
  const flying: Array<{ readonly at: Micros; readonly datagram: Uint8Array; readonly isAnswer: boolean }> = []
  const launch = (datagram: Uint8Array, isAnswer: boolean): void => {
    const copies = random(100) < path.lossPercent ? 0 : random(50) === 0 ? 2 : 1
    for (let i = 0; i < copies; i++) {
      flying.push({ at: bench.now + 10_000 + random(path.jitter + 1), datagram, isAnswer })
    }
  }
  let opened = 0
  const arrive = (datagram: Uint8Array): void => {
    if (path.restarts.includes(opened)) {
      opened++
      keeper.forget()
      bench.peer.restart()
    }
    const packet = bench.peer.open(bench.now, datagram)
    if (packet === undefined) return
    opened++
    keeper.keep(packet, random(100) < path.fullPercent)
    launch(bench.peer.answer(keeper.frames()), true)
  }
  const end = bench.now + 600_000_000
  while (bench.link.stored < bench.last && bench.now < end) {
    for (const datagram of bench.send()) launch(datagram, false)
    const arrival = flying.reduce((earliest, { at }) => Math.min(earliest, at), Infinity)
    bench.now = Math.max(bench.now, Math.min(arrival, bench.link.deadline()))
    bench.link.handleTimeout(bench.now)
    for (let i; (i = flying.findIndex(({ at }) => at <= bench.now)) >= 0;) {
      const [{ datagram, isAnswer }] = flying.splice(i, 1) as [(typeof flying)[number]]
      if (isAnswer) bench.hear(datagram.slice())
      else arrive(datagram)
    }
  }
  assert.strictEqual(bench.link.stored, bench.last, `not done after ${(bench.now / 1e6).toFixed(1)} s`)
  return keeper
}

const randomOf = (seed: number): ((below: number) => number) => {
  const entropy = seededEntropy(seed)
  const word = new Uint8Array(4)
  return (below) => {
    entropy.fill(word)
    return new DataView(word.buffer).getUint32(0) % below
  }
}

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

describe("transfers", () => {
  it.prop(
    "bring all records over, byte for byte, whatever the path loses, delays, doubles and forgets",
    {
      seed: between(1, 1_000_000),
      lossPercent: between(0, 30),
      jitter: between(0, 30_000),
      fullPercent: between(0, 20),
      restarts: Schema.Array(between(1, 300)).check(Schema.isMaxLength(2)),
      sizes: Schema.Array(Schema.Literals([0, 1, 61, 200, 255, 256, 1013, 4000, 90_000])).check(Schema.isMaxLength(40)),
      datagramSize: Schema.Literals([1200, 1452])
    },
    ({ sizes, datagramSize, ...path }) => {
      const records = makeRecords(sizes)
      const bench = new Bench({ records, datagramSize, queueBytes: 100_000 })
      const keeper = transfer(bench, path)
      assert.deepStrictEqual(keeper.stored, records)
    },
    { arbitrary: { runs: 60, seed: 3 } }
  )

  it("cuts a record of 16 MiB into parts that follow each other to its end, between empty records", () => {
    const records = makeRecords([0, 16_777_216, 0])
    const bench = new Bench({ records, datagramSize: 1452 })
    const bytes = new Uint8Array(16_777_216)
    const counts = [0, 0, 0]
    let n = 0
    for (let turn = 0; n < 3; turn++) {
      assert.isBelow(turn, 5_000)
      const packets = bench.pass(2_000)
      for (const part of packets.flatMap((packet) => partsOf(packet, 1))) {
        counts[part.number - 1]! += part.bytes.length
        if (part.number === 2) bytes.set(part.bytes, part.offset)
        if (part.ends) n = Math.max(n, part.number)
      }
      bench.now += 20_000
      const numbers = packets.map((packet) => packet.number)
      if (numbers.length > 0) bench.answer(list("Ack", ...numbers), stored(n === 3 ? 3 : 0))
    }
    assert.deepStrictEqual(counts, [0, 16_777_216, 0], "each byte once")
    assert.isTrue(Buffer.from(bytes.buffer).equals(records[1]!))
    assert.strictEqual(bench.link.stored, 3)
  })

  it("drains many records on a clean path without sending a byte twice", () => {
    const bench = new Bench({ records: makeRecords(Array.from({ length: 1000 }, (_, i) => i % 300)) })
    const total = bench.records.reduce((sum, record) => sum + record.length, 0)
    const keeper = transfer(bench, { seed: 1, lossPercent: 0, jitter: 0, restarts: [], fullPercent: 0 })
    assert.strictEqual(keeper.n, 1000)
    assert.strictEqual(bench.link.counters.recordBytesSent, total)
    assert.isDefined(frameOf(bench.peer.packets[0]!, "Stream")!.lives.find((life) => life.life === ownLife.life))
  })
})

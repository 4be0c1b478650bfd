import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { Bench, frameOf, list, makeRecords, ownLife, partsOf, stored } from "../test/scriptedPeer.ts"
import { transfer } from "../test/transfer.ts"

/**
 * Whole transfers: whatever is lost, late, doubled or forgotten, all records arrive as they were, in bounded time, and
 * while epochs rotate.
 */

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
      saysLost: Schema.Boolean,
      /** Packets under one epoch, before the next one is offered and at most. */
      packets: Schema.Literals([1, 20, 2 ** 22]),
      sizes: Schema.Array(Schema.Literals([0, 1, 61, 200, 255, 256, 1013, 4000, 90_000])).check(Schema.isMaxLength(40)),
      datagramSize: Schema.Literals([1200, 1452])
    },
    ({ sizes, datagramSize, packets, ...path }) => {
      const records = makeRecords(sizes)
      const bench = new Bench({ records, datagramSize, queueBytes: 100_000, epochLimits: { packets } })
      const keeper = transfer(bench, path)
      assert.deepStrictEqual(keeper.stored, records)
    },
    { arbitrary: { runs: 80, seed: 3 } }
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

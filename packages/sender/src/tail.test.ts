import { Policies, TailRedundancy } from "@pure-link/recovery"
import { never } from "@pure-link/wire"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { roundTrip } from "../test/packets.ts"
import { Bench, list, makeRecords, partsOf, stored } from "../test/scriptedPeer.ts"

const once = Effect.runSync(Effect.provide(TailRedundancy, TailRedundancy.layerOnce))

/** A sender in epoch 1 whose round trip of 20 ms is measured, and whose application has nothing more to send. */
const resting = (copies: boolean): Bench => {
  const bench = new Bench({
    records: makeRecords([30]),
    policies: { ...Policies.defaults, ...(copies && { tailRedundancy: once }), pathMtu: fixed }
  })
  bench.start()
  bench.transmit()
  bench.now += roundTrip
  bench.answer(list("Ack", ...bench.peer.packets.map(({ number }) => number)), stored(1))
  bench.transmit()
  return bench
}
const fixed = { make: () => Policies.defaults.pathMtu.make({ datagramSize: 1_452 }) }

describe("tail redundancy (spec §14.9)", () => {
  it("sends what is in flight once more after a quarter of a round trip, and no third time", () => {
    const bench = resting(true)
    bench.append(makeRecords([40]))
    const [original] = bench.transmit()
    const due = bench.link.deadline()
    assert.isAtLeast(due - bench.now, roundTrip / 5)
    assert.isAtMost(due - bench.now, roundTrip / 2)
    bench.now = due - 1
    assert.deepStrictEqual(bench.transmit(), [])
    bench.now = due
    const [copy, ...more] = bench.transmit()
    assert.deepStrictEqual(more, [])
    assert.deepStrictEqual(partsOf(copy!, 1), partsOf(original!, 1))
    assert.strictEqual(bench.link.counters.copiesSent, 1)
    assert.isAbove(bench.link.deadline() - bench.now, roundTrip, "only the probe timeout is left")
  })

  it("settles with either of both, and sends nothing again when the other is lost", () => {
    const bench = resting(true)
    bench.append(makeRecords([40, 41, 42, 43, 44]))
    const [original] = bench.transmit()
    bench.now = bench.link.deadline()
    const copies = bench.transmit()
    bench.now += roundTrip
    bench.answer(list("Ack", ...copies.map(({ number }) => number)), stored(1))
    assert.deepStrictEqual(bench.transmit(), [])
    bench.now += 10 * roundTrip
    bench.link.handleTimeout(bench.now)
    const later = bench.transmit().filter((packet) => partsOf(packet, 1).length > 0)
    assert.deepStrictEqual(later, [], `${original!.number} is lost, and its records arrived`)
  })

  it("sends nothing twice while records wait for credit", () => {
    const bench = new Bench({
      records: makeRecords(Array.from({ length: 200 }, () => 100)),
      policies: { ...Policies.defaults, tailRedundancy: once, pathMtu: fixed }
    })
    bench.start(stored(0, { creditRecords: 20 }))
    bench.transmit()
    bench.now += roundTrip
    bench.answer(list("Ack", ...bench.peer.packets.map(({ number }) => number)), stored(0, { creditRecords: 130 }))
    assert.isAbove(bench.transmit().length, 0)
    assert.isEmpty(bench.pass(roundTrip / 2))
    assert.strictEqual(bench.link.counters.copiesSent, 0)
    bench.answer(stored(0))
    assert.isAbove(bench.transmit().length, 0)
    bench.pass(roundTrip / 2)
    assert.isAbove(bench.link.counters.copiesSent, 0, "nothing waits any more")
  })

  it("sends nothing twice by default, nor while records wait", () => {
    const bench = resting(false)
    bench.append(makeRecords([40]))
    bench.transmit()
    bench.now += roundTrip / 2
    assert.deepStrictEqual(bench.transmit(), [])
    const busy = resting(true)
    busy.append(makeRecords(Array.from({ length: 200 }, () => 1_000)))
    busy.transmit()
    busy.now += roundTrip / 2
    busy.transmit()
    assert.strictEqual(busy.link.counters.copiesSent, 0)
    assert.isBelow(busy.link.deadline(), never)
  })
})

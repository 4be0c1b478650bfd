import { assert, describe, it } from "@effect/vitest"
import { initialRoundTrip, initialWindow, Policies } from "@pure-link/recovery"
import type { Frame } from "@pure-link/wire"
import { grow, numbersOf, type Packets, roundTrip, same, second } from "../test/packets.ts"
import { Bench, type BenchOptions, frameOf, list, recordsOf, stored, tagsOf } from "../test/scriptedPeer.ts"

/** CHALLENGE, RESPONSE, and what is known of a path that is another one (spec §9.11, §13.3). */

const responses = (packets: Packets): ReadonlyArray<bigint> =>
  packets.flatMap((packet) => frameOf(packet, "Response")?.token ?? [])
const challenge = (token: bigint, ipChanged: boolean): Frame => ({ _tag: "Challenge", token, ipChanged })
const asAtFirst = { window: initialWindow(1_200), smoothedRtt: initialRoundTrip }

/** A sender whose window has grown to more than two initial ones, with data without end. */
const grown = (options: BenchOptions = {}): Bench => {
  const bench = new Bench({ records: same(1_000, 600), ...options })
  grow(bench, () => 0)
  assert.isAbove(bench.link.status.window, 2 * initialWindow(1_200))
  return bench
}

describe("CHALLENGE (spec §9.11)", () => {
  it("that tells of a port only draws RESPONSE, and nothing else changes", () => {
    const bench = grown()
    const packets = bench.pass(2_000)
    const { window, smoothedRtt } = bench.link.status
    bench.now += roundTrip
    bench.answer(list("Ack", packets[0]!.number), challenge(7n, false))
    const sent = bench.transmit()
    assert.deepStrictEqual(responses(sent), [7n])
    assert.isAtLeast(bench.link.status.window, window)
    assert.closeTo(bench.link.status.smoothedRtt, smoothedRtt, 1_000)
    assert.strictEqual(bench.link.counters.pathsChanged, 0)
    assert.notInclude(bench.eventTags(), "PathChanged")
  })

  it("that tells of a new IP makes window and round trip start again, once for each token", () => {
    const bench = grown()
    bench.answer(challenge(7n, true))
    const { window, smoothedRtt } = bench.link.status
    assert.deepStrictEqual({ window, smoothedRtt }, asAtFirst)
    assert.strictEqual(bench.eventTags().at(-1), "PathChanged")
    const packets = bench.pass(roundTrip)
    assert.deepStrictEqual(responses(packets), [7n])
    for (const count of [2, 4]) {
      bench.answer(list("Ack", ...numbersOf(packets.slice(0, count))), challenge(7n, true))
    }
    assert.isAbove(bench.link.status.window, initialWindow(1_200))
    assert.strictEqual(bench.link.counters.pathsChanged, 1)
    bench.answer(challenge(8n, true))
    assert.strictEqual(bench.link.counters.pathsChanged, 1, "too soon after the former move")
    bench.now += second
    bench.answer(challenge(8n, true))
    assert.strictEqual(bench.link.counters.pathsChanged, 2)
    bench.answer(challenge(7n, true))
    assert.strictEqual(bench.link.counters.pathsChanged, 2, "late word of the former move")
  })

  it("draws RESPONSE at once, beyond window and pacer", () => {
    const bench = grown()
    const packets = bench.pass(roundTrip)
    assert.isAbove(bench.link.status.inFlight, bench.link.status.window - 1_200)
    assert.deepStrictEqual(bench.transmit(), [])
    bench.answer(challenge(9n, false))
    const [packet, ...more] = bench.transmit()
    assert.deepStrictEqual(tagsOf(packet!), ["Response"])
    assert.deepStrictEqual(more, [])
    assert.isAbove(packet!.number, packets.at(-1)!.number)
  })

  it("that is repeated draws no second RESPONSE while the first is under way, and one when it was lost", () => {
    const bench = grown()
    const former = bench.pass(3_000)
    bench.answer(challenge(7n, false))
    const [response] = bench.transmit()
    assert.deepStrictEqual(responses([response!]), [7n])
    for (const packet of former) {
      bench.answer(list("Ack", packet.number), challenge(7n, false))
      assert.deepStrictEqual(responses(bench.pass(100)), [])
    }
    const later = bench.pass(5_000).at(-1)!
    assert.isAbove(later.number, response!.number)
    bench.answer(list("Ack", later.number), challenge(7n, false))
    assert.deepStrictEqual(responses(bench.transmit()), [7n])
  })

  it("in a flood makes one RESPONSE due, to the latest, and starts the path again once", () => {
    const bench = grown()
    bench.pass(roundTrip)
    for (let token = 1n; token <= 500n; token++) bench.answer(challenge(token, token % 2n === 0n))
    assert.deepStrictEqual(responses(bench.pass(roundTrip)), [500n])
    assert.strictEqual(bench.link.counters.pathsChanged, 1)
  })

  it("waits for the next try of a refused sender", () => {
    const bench = grown()
    bench.answer(stored(0), { _tag: "Refused", reason: 1 })
    bench.answer(challenge(7n, true))
    assert.strictEqual(bench.link.counters.pathsChanged, 1)
    assert.deepStrictEqual(bench.runUntil(bench.now + second - 1), [])
    const [attempt] = bench.next()
    assert.deepStrictEqual(responses([attempt!]), [7n])
    assert.isAbove(recordsOf(attempt!).length, 0)
  })

  it("of the former run is not answered in a fresh one", () => {
    const bench = grown()
    const datagram = bench.runUntil(bench.now + 2_000)[0]!.datagram
    bench.answer(challenge(7n, false))
    assert.isTrue(bench.hear(bench.peer.lost(datagram)))
    assert.deepStrictEqual(responses(bench.pass(roundTrip)), [])
  })
})

describe("another path (spec §13.3)", () => {
  it("takes no signal of congestion and no sample from what was sent on the former one, but sends it again", () => {
    const bench = grown()
    const former = bench.pass(roundTrip)
    assert.isAbove(former.length, 20)
    bench.link.handlePathChanged(bench.now)
    const { reductions } = bench.link.recoveryCounters
    const packets = bench.pass(1_000)
    assert.isAbove(packets.length, 5, "what is in flight does not fill the new window")
    bench.now += 100_000
    bench.answer(list("Ack", former.at(-1)!.number), stored(0))
    assert.strictEqual(bench.link.status.smoothedRtt, initialRoundTrip)
    bench.answer(list("Ack", ...numbersOf(packets)), stored(0))
    assert.isAtLeast(bench.link.status.smoothedRtt, 100_000)
    assert.strictEqual(bench.link.recoveryCounters.reductions, reductions)
    assert.isAbove(bench.link.status.window, initialWindow(1_200))
    const again = bench.pass(roundTrip)
    assert.deepStrictEqual(recordsOf(packets[0]!), recordsOf(former[0]!), "it was tried with the oldest flight")
    assert.strictEqual(recordsOf(again[0]!)[0], recordsOf(former[1]!)[0])
    const last = former.at(-1)!.number
    const rest = new Set(former.slice(1, -1).flatMap((packet) => recordsOf(packet)))
    for (const packet of again) for (const number of recordsOf(packet)) rest.delete(number)
    for (let turn = 0; rest.size > 0; turn++) {
      assert.isBelow(turn, 20)
      bench.answer(list("Ack", ...numbersOf(bench.peer.packets.filter(({ number }) => number > last))), stored(0))
      for (const packet of bench.pass(roundTrip)) for (const number of recordsOf(packet)) rest.delete(number)
    }
    assert.strictEqual(bench.link.recoveryCounters.reductions, reductions)
  })

  it("that the driver found is tried at once, with the oldest of what is in flight", () => {
    const bench = new Bench({ records: same(1_000, 1) })
    bench.start()
    const [packet] = bench.transmit()
    assert.deepStrictEqual(tagsOf(packet!), ["Ping"])
    bench.append(same(500, 1))
    const [sent] = bench.transmit()
    assert.deepStrictEqual(recordsOf(sent!), [2])
    assert.deepStrictEqual(bench.transmit(), [])
    bench.link.handlePathChanged(bench.now)
    const [probe, ...more] = bench.transmit()
    assert.deepStrictEqual(recordsOf(probe!), [2])
    assert.deepStrictEqual(more, [])
    bench.link.handleTimeout(bench.now)
    assert.strictEqual(bench.link.status.smoothedRtt, initialRoundTrip)
    assert.strictEqual(bench.link.pollEvent()?._tag, "PathChanged")
  })

  it("starts with small datagrams and is probed for larger ones again", () => {
    const bench = new Bench({ records: same(1_000, 3_000), policies: Policies.defaults })
    bench.start()
    const run = (rounds: number): void => {
      for (let round = 0; round < rounds; round++) {
        const packets = bench.pass(roundTrip)
        if (packets.length > 0) bench.answer(list("Ack", ...numbersOf(packets)), stored(0))
      }
    }
    run(4)
    assert.strictEqual(bench.link.status.datagramSize, 1_452)
    bench.link.handlePathChanged(bench.now)
    assert.strictEqual(bench.link.status.datagramSize, 1_200)
    const packets = bench.pass(5_000)
    assert.isAtMost(Math.max(...packets.map(({ length }) => length)), 1_200)
    bench.now += roundTrip
    bench.answer(list("Ack", ...numbersOf(packets)), stored(0))
    run(3)
    assert.strictEqual(bench.link.status.datagramSize, 1_452)
  })

  it("changes nothing for a link that has stopped for good", () => {
    const bench = grown()
    bench.answer(stored(5_000))
    bench.link.handlePathChanged(bench.now)
    assert.deepStrictEqual([bench.link.counters.pathsChanged, bench.transmit()], [0, []])
  })

  it("keeps the window only by a fault of the tests", () => {
    const bench = grown({ faults: { windowKeptOnMove: true } })
    const { window } = bench.link.status
    bench.answer(challenge(7n, true))
    assert.strictEqual(bench.link.status.window, window)
  })
})

describe("options of a sender", () => {
  it("say how many flights it remembers, and its window takes half of them", () => {
    for (const flights of [0, 128, 300, 32_768, Number.NaN]) assert.throws(() => new Bench({ flights }), RangeError)
    const bench = new Bench({ records: same(1_000, 1_000), flights: 256 })
    bench.start()
    for (let round = 0; round < 8; round++) {
      const packets = bench.pass(roundTrip)
      bench.answer(list("Ack", ...numbersOf(packets)), stored(0))
    }
    assert.strictEqual(bench.link.status.window, 128 * 1_200)
  })

  it("refuse limits that no epoch may have", () => {
    assert.throws(() => new Bench({ epochLimits: { packets: 2 ** 23 } }), RangeError)
  })

  it("let records go on under epoch 0 only by a fault of the tests", () => {
    for (const recordsInEpochZero of [false, true]) {
      const bench = new Bench({ records: same(500, 200), faults: { recordsInEpochZero } })
      bench.peer.accepts = false
      const first = bench.transmit()
      bench.now += roundTrip
      bench.answer(list("Ack", ...numbersOf(first)), stored(2))
      const next = bench.pass(roundTrip)
      const carriesRecords = next.some((packet) => recordsOf(packet).length > 0)
      assert.strictEqual(carriesRecords, recordsInEpochZero)
    }
  })
})

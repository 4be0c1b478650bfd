import { assert, describe, it } from "@effect/vitest"
import { never } from "@pure-link/wire"
import { datagram, Fixture, measured, ms, nothing } from "../test/fixture.ts"
import { cleanPath, second, ToyLink } from "../test/toyLink.ts"
import { Cubic } from "./congestion/cubic.ts"
import { initialRoundTrip } from "./roundTripTime.ts"

/** What a fresh run keeps and what another path forgets (spec §12.3, §13.3). */

const large = 1_452

/** RTT 100 ms, a window of 20 datagrams, large datagrams found, ten of them in flight, numbers 12 to 21. */
const underWay = (): Fixture => {
  const fixture = measured(256)
  fixture.recovery.handlePathProbeSent(100 * ms, large)
  fixture.send(100 * ms, 10)
  fixture.answer(200 * ms, [[1, 11]])
  fixture.send(200 * ms, 10, large)
  assert.deepStrictEqual([fixture.recovery.nextNumber, fixture.recovery.datagramSize], [22, large])
  assert.isAbove(fixture.window, 19)
  return fixture
}

describe("Recovery: a fresh run on the same path", () => {
  it("begins its numbers anew and keeps window, round trip and datagram size, without any signal", () => {
    const { recovery, ...fixture } = underWay()
    const { window } = recovery.controller
    const { smoothed, variance, minimum } = recovery.rtt
    recovery.startRun(210 * ms)
    assert.deepStrictEqual([recovery.nextNumber, recovery.inFlightCount, recovery.inFlightBytes], [0, 0, 0])
    assert.deepStrictEqual([recovery.controller.window, recovery.datagramSize], [window, large])
    assert.deepInclude(recovery.rtt, { smoothed, variance, minimum, hasSample: true })
    assert.strictEqual(recovery.deadline(), never)
    assert.isEmpty(fixture.events.filter(({ _tag }) => _tag === "WindowReduced" || _tag === "FlightLost"))
  })

  it("takes acknowledgements and losses by the new numbers only", () => {
    const fixture = underWay()
    fixture.recovery.startRun(210 * ms)
    fixture.send(210 * ms, 6)
    fixture.recovery.beginAnswer(310 * ms)
    assert.isFalse(fixture.recovery.acknowledge(6, 21, false), "numbers of the former run were never sent")
    fixture.recovery.endAnswer(310 * ms, 21, 0)
    fixture.answer(310 * ms, [[4, 5]])
    assert.deepStrictEqual(fixture.outcome(), { acked: [4, 5], lost: [0, 1, 2] })
    assert.strictEqual(fixture.recovery.inFlightCount, 1)
    assert.deepStrictEqual(fixture.cuts(), { reductions: 1, collapses: 0 })
  })

  it("does not take the silence between two runs for persistent congestion, nor old flights for large ones", () => {
    const fixture = underWay()
    fixture.answer(201 * ms, [[19, 19]])
    assert.isAbove(fixture.counts()["lost"]!, 0)
    fixture.recovery.startRun(5_000 * ms)
    fixture.send(5_000 * ms, 1, large)
    fixture.send(5_001 * ms, 5)
    fixture.answer(5_100 * ms, [[1, 5]])
    assert.deepStrictEqual(fixture.outcome(), { acked: [1, 2, 3, 4, 5], lost: [0] })
    assert.strictEqual(fixture.cuts().collapses, 0)
    assert.strictEqual(fixture.counts()["blackHoles"], 0)
  })

  it("finds a black hole by its own numbers", () => {
    const fixture = underWay()
    fixture.recovery.startRun(210 * ms)
    for (let now = 210 * ms, next = 0; fixture.recovery.datagramSize === large; now += 100 * ms) {
      assert.isBelow(now, 3 * second)
      fixture.send(now, 3, large)
      fixture.send(now, 4)
      fixture.answer(now + 50 * ms, [[next + 3, next + 6]])
      next += 7
    }
    assert.strictEqual(fixture.counts()["blackHoles"], 1)
  })

  it("looks for the probe of the former run no more", () => {
    const fixture = measured()
    fixture.recovery.handlePathProbeSent(100 * ms, large)
    fixture.recovery.startRun(110 * ms)
    fixture.send(110 * ms, 2)
    fixture.answer(210 * ms, [[0, 1]])
    assert.strictEqual(fixture.recovery.datagramSize, datagram)
    assert.strictEqual(fixture.recovery.pathProbeAt, 1_100 * ms)
  })
})

describe("Recovery: another path", () => {
  it("starts window, round trip and datagram size again, and flights take no room", () => {
    const { recovery } = underWay()
    recovery.restartPath(210 * ms)
    assert.deepStrictEqual([recovery.controller.window, recovery.datagramSize], [10 * datagram, datagram])
    assert.deepInclude(recovery.rtt, { smoothed: initialRoundTrip, minimum: 0, hasSample: false })
    assert.deepStrictEqual([recovery.nextNumber, recovery.inFlightCount, recovery.inFlightBytes], [22, 10, 0])
    assert.strictEqual(recovery.pathProbeAt, never)
  })

  it("takes no sample, no growth and no reduction from flights of the former one", () => {
    const fixture = underWay()
    fixture.recovery.restartPath(210 * ms)
    fixture.answer(300 * ms, [[21, 21]])
    assert.deepStrictEqual(fixture.outcome(), { acked: [21], lost: [12, 13, 14, 15, 16, 17, 18] })
    assert.deepStrictEqual([fixture.window, fixture.recovery.rtt.hasSample], [10, false])
    fixture.answer(310 * ms, [[12, 21]])
    assert.deepStrictEqual(fixture.outcome(), { acked: [19, 20], late: [12, 13, 14, 15, 16, 17, 18] })
    assert.deepStrictEqual([fixture.window, fixture.cuts().reductions], [10, 0])
    assert.deepStrictEqual([fixture.recovery.inFlightCount, fixture.recovery.inFlightBytes], [0, 0])
    assert.deepStrictEqual([fixture.recovery.datagramSize, fixture.counts()["undone"]], [datagram, 0])
  })

  it("measures and grows by what is sent on it, and looks for larger datagrams again", () => {
    const fixture = underWay()
    fixture.recovery.restartPath(210 * ms)
    fixture.send(210 * ms, 10)
    fixture.answer(240 * ms, [[12, 31]])
    assert.strictEqual(fixture.recovery.rtt.latest, 30 * ms)
    assert.strictEqual(fixture.window, 20)
    assert.strictEqual(fixture.recovery.pathProbeAt, 240 * ms)
  })

  it("counts its own losses, also beside those of the former path", () => {
    const fixture = underWay()
    fixture.recovery.restartPath(210 * ms)
    fixture.send(210 * ms, 10)
    fixture.answer(240 * ms, [[26, 31]])
    assert.deepStrictEqual(fixture.outcome()["lost"], [12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25])
    assert.deepStrictEqual(fixture.cuts(), { reductions: 1, collapses: 0 })
  })

  it("undoes no reduction of the former path, and ends its episode", () => {
    const fixture = underWay()
    fixture.answer(300 * ms, [[18, 21]])
    assert.deepStrictEqual([fixture.outcome()["lost"], fixture.cuts().reductions], [[12, 13, 14, 15, 16, 17], 1])
    fixture.recovery.restartPath(310 * ms)
    fixture.answer(320 * ms, [[12, 21]])
    assert.deepStrictEqual(fixture.outcome(), { late: [12, 13, 14, 15, 16, 17] })
    assert.deepStrictEqual([fixture.window, fixture.counts()["undone"]], [10, 0])
    fixture.send(320 * ms, 6)
    fixture.answer(420 * ms, [[26, 27]])
    assert.deepStrictEqual([fixture.outcome()["lost"], fixture.counts()["episodes"]], [[22, 23, 24], 2])
  })

  it("does not believe in the datagrams that the former one carried", () => {
    const fixture = measured()
    fixture.recovery.handlePathProbeSent(100 * ms, large)
    fixture.recovery.restartPath(110 * ms)
    fixture.answer(200 * ms, [[1, 1]])
    assert.strictEqual(fixture.recovery.datagramSize, datagram)
    assert.deepStrictEqual(fixture.counts(), nothing)
  })

  it("is waited on as a first one: the probe timeout is that of no sample, without back-off", () => {
    const fixture = underWay()
    fixture.probesUntil(3 * second)
    assert.isAbove(fixture.recovery.probeCount, 2)
    fixture.recovery.restartPath(3 * second)
    assert.deepStrictEqual([fixture.recovery.probeCount, fixture.recovery.currentProbeTimeout()], [0, 999 * ms])
  })

  it("may come as often as it likes: a transfer ends all the same, and its flights are all accounted for", () => {
    const link = new ToyLink(new Cubic({ datagramSize: datagram, largestWindow: 10_000 * datagram }), cleanPath)
    link.offer(1_000_000)
    for (let end = 0.05 * second; end < 3 * second; end += 0.05 * second) {
      link.run(end, 100_000)
      link.recovery.restartPath(link.now)
      assert.isAtMost(link.recovery.inFlightBytes, link.recovery.controller.window + datagram)
    }
    assert.isAbove(link.delivered, 3_000)
    assert.strictEqual(link.recovery.counters.reductions, 0)
  })
})

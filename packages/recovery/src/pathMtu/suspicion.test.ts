import { assert, describe, it } from "@effect/vitest"
import { type Bytes, type Micros, never } from "@pure-link/wire"
import { datagram as small, type Fixture, measured, ms, nothing } from "../../test/fixture.ts"
import { cleanPath, second, ToyLink } from "../../test/toyLink.ts"
import { Cubic } from "../congestion/cubic.ts"
import { BlackHole } from "./blackHole.ts"
import { Discovery } from "./discovery.ts"

const large = 1_452

/** Ten large flights go unanswered, and two probes after them; the third probe timeout expires. */
const suspected = (): Fixture => {
  const fixture = measured(1_024, {}, large)
  fixture.send(100 * ms, 10, large)
  suspect(fixture)
  return fixture
}

const suspect = (fixture: Fixture): void => {
  for (let probe = 0; probe < 2; probe++) {
    assert.strictEqual(fixture.recovery.handleTimeout(fixture.recovery.deadline()), "probe")
    assert.strictEqual(fixture.recovery.datagramSize, large)
    fixture.recovery.handleSent(fixture.recovery.deadline(), large, true)
  }
  assert.strictEqual(fixture.recovery.handleTimeout(fixture.recovery.deadline()), "probe")
}

/** A packet goes for the third probe timeout, small, and is answered; returns when. */
const smallArrives = (fixture: Fixture): Micros => {
  const now = fixture.recovery.deadline()
  const number = fixture.recovery.handleSent(now, small, true)
  fixture.answer(now + 100 * ms, [[number, number]])
  return now + 100 * ms
}

/** The probe of the path goes now; four small packets after it arrive, and it does not. Returns when they did. */
const probeVanishes = (fixture: Fixture, now: Micros): Micros => {
  assert.strictEqual(fixture.recovery.pathProbeAt, now)
  const probe = fixture.recovery.handlePathProbeSent(now, large)
  assert.strictEqual(fixture.recovery.pathProbeAt, never, "one at a time")
  fixture.send(now, 4, small)
  fixture.answer(now + 100 * ms, [[probe + 1, probe + 4]])
  assert.include(fixture.outcome()["lost"]!, probe)
  return now + 100 * ms
}

/** Probes vanish until the hole is certain. */
const convict = (fixture: Fixture, from: Micros): Micros => {
  let now = from
  while (fixture.recovery.isPathProbeUrgent) now = probeVanishes(fixture, now)
  return now
}

describe("Recovery: a black hole suspected by probe timeouts (spec §14.8 b)", () => {
  it("makes packets small at once, and nothing else of it is taken for granted", () => {
    const fixture = suspected()
    const { recovery } = fixture
    assert.deepStrictEqual([recovery.datagramSize, recovery.isPathProbeUrgent], [small, true])
    assert.deepStrictEqual(fixture.counts(), nothing)
    assert.strictEqual(recovery.pathProbeAt, never, "nothing arrives yet that a probe could be held against")
  })

  it("judges losses as always, and asks for an urgent probe with the first small packet that arrives", () => {
    const fixture = suspected()
    const { window } = fixture
    const now = smallArrives(fixture)
    assert.deepStrictEqual(fixture.outcome()["lost"], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
    assert.deepInclude(fixture.counts(), { lost: 12, reductions: 1, episodes: 1, undone: 0, blackHoles: 0 })
    assert.isBelow(fixture.window, window)
    assert.deepStrictEqual([fixture.recovery.pathProbeAt, fixture.recovery.isPathProbeUrgent], [now, true])
  })

  it("is certain when probes vanish beside small packets that arrive: all reductions since are taken back", () => {
    const fixture = suspected()
    const { window } = fixture
    const now = convict(fixture, smallArrives(fixture))
    assert.deepInclude(fixture.counts(), { lost: 12, reductions: 1, undone: 1, blackHoles: 1 })
    assert.isAtLeast(fixture.window, window)
    assert.isTrue(fixture.recovery.controller.inSlowStart)
    assert.deepStrictEqual([fixture.recovery.datagramSize, fixture.recovery.inFlightCount], [small, 0])
    assert.strictEqual(fixture.recovery.pathProbeAt, now + second, "the search begins again")
    fixture.answer(now + 1, [[1, 12]])
    assert.deepStrictEqual(fixture.outcome(), {}, "what vanished is settled")
  })

  it("is certain though persistent congestion was established meanwhile, and takes that back as well", () => {
    const fixture = suspected()
    const { window } = fixture
    fixture.recovery.handleSent(fixture.recovery.deadline(), small, true)
    const probes = fixture.probesUntil(20_000 * ms)
    const last = fixture.recovery.nextNumber - 1
    const now = probes.at(-1)! + 100 * ms
    fixture.answer(now, [[last, last]])
    assert.deepInclude(fixture.counts(), { blackHoles: 0, reductions: 1, persistentCongestions: 1 })
    assert.strictEqual(fixture.window, 2)
    convict(fixture, now)
    assert.deepInclude(fixture.counts(), { blackHoles: 1, undone: 1 })
    assert.isAtLeast(fixture.window, window)
  })

  it("is withdrawn when the probe arrives: the size is back at once, and reductions stand", () => {
    const fixture = suspected()
    const now = smallArrives(fixture)
    const { window } = fixture
    const probe = fixture.recovery.handlePathProbeSent(now, large)
    fixture.answer(now + 100 * ms, [[probe, probe]])
    const { recovery } = fixture
    assert.deepStrictEqual(
      [recovery.datagramSize, recovery.isPathProbeUrgent, recovery.pathProbeAt],
      [large, false, never]
    )
    assert.deepInclude(fixture.counts(), { reductions: 1, undone: 0, blackHoles: 0 })
    assert.isAtMost(fixture.window, window + 1)
  })

  it("is withdrawn when any large flight arrives, however late, with the size of before", () => {
    for (const bytes of [large, 1_300]) {
      const fixture = measured(1_024, {}, large)
      fixture.send(100 * ms, 9, large)
      fixture.send(100 * ms, 1, bytes)
      suspect(fixture)
      const now = smallArrives(fixture)
      fixture.answer(now + 1, [[10, 10]])
      assert.deepStrictEqual(fixture.outcome(), { late: [10] })
      const { recovery } = fixture
      assert.deepStrictEqual([recovery.datagramSize, recovery.isPathProbeUrgent], [large, false], `${bytes} B`)
      assert.strictEqual(recovery.pathProbeAt, never)
      assert.deepInclude(fixture.counts(), { reductions: 1, undone: 0, blackHoles: 0 })
    }
  })

  it("takes back no reduction that was made for an earlier suspicion, which was withdrawn", () => {
    const fixture = suspected()
    const { window } = fixture
    const withdrawnAt = smallArrives(fixture)
    const probe = fixture.recovery.handlePathProbeSent(withdrawnAt, large)
    fixture.answer(withdrawnAt + 100 * ms, [[probe, probe]])
    const reduced = fixture.window
    assert.isBelow(reduced, window)
    fixture.send(withdrawnAt + 101 * ms, 5, large)
    suspect(fixture)
    convict(fixture, smallArrives(fixture))
    assert.deepInclude(fixture.counts(), { reductions: 2, undone: 1, blackHoles: 1 })
    assert.isAtLeast(fixture.window, reduced)
    assert.isBelow(fixture.window, window)
  })

  it("ends with all flights when they are forgotten: the size stays small, and is probed for as ever", () => {
    const fixture = suspected()
    const now = smallArrives(fixture)
    const { recovery } = fixture
    recovery.forgetFlights(now + 1)
    assert.deepStrictEqual([recovery.isPathProbeUrgent, recovery.datagramSize], [false, small])
    assert.isBelow(recovery.pathProbeAt, never)
    const reduced = fixture.window
    probeVanishes(fixture, recovery.pathProbeAt)
    assert.deepInclude(fixture.counts(), { reductions: 1, undone: 0, blackHoles: 0 })
    assert.isAtMost(fixture.window, reduced + 4)
  })

  it("is not raised by few flights, nor by small ones", () => {
    const cases: ReadonlyArray<readonly [Fixture, Bytes]> = [
      [measured(1_024, {}, large), large],
      [measured(), small]
    ]
    cases[0]![0].send(100 * ms, 1, large)
    cases[1]![0].send(100 * ms, 50, small)
    for (const [fixture, bytes] of cases) {
      for (let probe = 0; probe < 2; probe++) {
        fixture.recovery.handleTimeout(fixture.recovery.deadline())
        fixture.recovery.handleSent(fixture.recovery.deadline(), bytes, true)
      }
      fixture.recovery.handleTimeout(fixture.recovery.deadline())
      assert.deepStrictEqual([fixture.recovery.datagramSize, fixture.recovery.isPathProbeUrgent], [bytes, false])
    }
  })
})

describe("a drain through an outage", () => {
  /** A path that is dead between two times, for all datagrams or for large ones, and a window below its queue. */
  const through = (rtt: Micros, from: Micros, to: Micros, isHole: boolean): ToyLink => {
    const drops = (now: Micros, bytes: Bytes): boolean => now >= from && now < to && (!isHole || bytes > 1_300)
    const make = ({ datagramSize }: { readonly datagramSize: Bytes }): Discovery =>
      new Discovery(datagramSize, new BlackHole())
    return new ToyLink(
      new Cubic({ datagramSize: small, largestWindow: 200 * small }),
      { ...cleanPath, rtt, queue: 1_000, drops },
      { policies: { pathMtu: { make } } }
    )
  }

  for (const rtt of [20 * ms, 100 * ms]) {
    for (const outage of [150, 200, 250, 400, 500]) {
      it(`of ${outage} ms keeps its reduction and its size, at an RTT of ${rtt / ms} ms`, () => {
        const link = through(rtt, 2 * second, 2 * second + outage * ms, false)
        link.offer(1e9)
        link.run(2 * second)
        const { recovery } = link
        assert.deepStrictEqual([recovery.datagramSize, recovery.counters.reductions], [large, 0])
        const { window } = recovery.controller
        link.run(2 * second + outage * ms + 1_000 * ms)
        assert.deepStrictEqual([recovery.counters.blackHoles, recovery.counters.undone], [0, 0])
        assert.isAtLeast(recovery.counters.reductions, 1)
        assert.isBelow(recovery.controller.window, window)
        link.run(5 * second)
        assert.deepStrictEqual([recovery.counters.blackHoles, recovery.datagramSize], [0, large])
      })
    }

    it(`for large packets only has its window back, at an RTT of ${rtt / ms} ms`, () => {
      const link = through(rtt, 2 * second, never, true)
      link.offer(1e9)
      link.run(2 * second)
      const { window } = link.recovery.controller
      link.run(4 * second)
      assert.deepStrictEqual([link.recovery.counters.blackHoles, link.recovery.datagramSize], [1, small])
      assert.isAtLeast(link.recovery.counters.undone, 1)
      assert.isAtLeast(link.recovery.controller.window, window)
    })
  }
})

import { assert, describe, it } from "@effect/vitest"
import { type Bytes, never } from "@pure-link/wire"
import { datagram as small, Fixture, measured, ms, nothing } from "../../test/fixture.ts"
import { between, random } from "../../test/random.ts"
import { cleanPath, type Path, second, ToyLink } from "../../test/toyLink.ts"
import { Cubic } from "../congestion/cubic.ts"
import { NewReno } from "../congestion/newReno.ts"
import { PacedBucket } from "../pacing/pacedBucket.ts"
import { BlackHole } from "./blackHole.ts"
import { Discovery } from "./discovery.ts"

const large = 1_452

describe("Recovery: probes of the path (spec §14.8)", () => {
  it("are wanted as soon as a round trip was measured, not before", () => {
    const fixture = new Fixture()
    fixture.send(0, 1)
    assert.strictEqual(fixture.recovery.pathProbeAt, never)
    fixture.answer(100 * ms, [[0, 0]])
    assert.deepStrictEqual([fixture.recovery.pathProbeAt, fixture.recovery.pathProbeSize], [100 * ms, large])
  })

  it("change nothing but the timetable when they are lost: no window, no episode, no loss", () => {
    const fixture = measured()
    assert.strictEqual(fixture.recovery.handlePathProbeSent(100 * ms, large), 1)
    fixture.send(100 * ms, 9)
    const { window } = fixture
    fixture.answer(200 * ms, [[2, 10]])
    assert.deepStrictEqual(fixture.outcome(), { acked: [2, 3, 4, 5, 6, 7, 8, 9, 10], lost: [1] })
    assert.deepStrictEqual(fixture.counts(), nothing)
    assert.strictEqual(fixture.window, window + 9)
    assert.strictEqual(fixture.recovery.pathProbeAt, 1_200 * ms)
    assert.isFalse(fixture.events.some((event) => event._tag === "FlightLost"))
    assert.strictEqual(fixture.recovery.datagramSize, small)
  })

  it("count when they are acknowledged late, which says nothing of congestion either", () => {
    const fixture = measured()
    fixture.recovery.handlePathProbeSent(100 * ms, large)
    fixture.send(100 * ms, 9)
    fixture.answer(200 * ms, [[2, 10]])
    assert.deepStrictEqual(fixture.outcome()["lost"], [1])
    fixture.answer(210 * ms, [[1, 10]])
    assert.deepStrictEqual([fixture.recovery.datagramSize, fixture.recovery.pathProbeAt], [large, never])
    assert.deepStrictEqual(fixture.counts(), nothing)
    assert.strictEqual(fixture.recovery.inFlightBytes, 0)
    fixture.answer(220 * ms, [[1, 10]])
    assert.deepStrictEqual(fixture.outcome(), {})
  })

  it("of before count no more once another one was sent, and lie in no one's way when the ring comes round", () => {
    const fixture = measured(64)
    fixture.recovery.handlePathProbeSent(100 * ms, large)
    fixture.send(100 * ms, 9)
    fixture.answer(200 * ms, [[2, 10]])
    fixture.recovery.handlePathProbeSent(1_200 * ms, large)
    fixture.answer(1_210 * ms, [[1, 10]])
    assert.deepStrictEqual([fixture.outcome(), fixture.recovery.datagramSize], [{}, small])
    fixture.send(1_210 * ms, 4)
    fixture.answer(1_310 * ms, [[12, 15]])
    for (let round = 0; round < 10; round++) {
      fixture.send((1_400 + 100 * round) * ms, 20)
      const last = fixture.recovery.nextNumber - 1
      fixture.answer((1_500 + 100 * round) * ms, [[last - 19, last]])
    }
    assert.deepStrictEqual(fixture.counts(), nothing)
    assert.strictEqual(fixture.recovery.counters.givenUp, 0)
  })

  it("neither join the episode of flights lost with them, nor hold its end up", () => {
    const fixture = measured()
    fixture.send(100 * ms, 1)
    fixture.recovery.handlePathProbeSent(100 * ms, large)
    fixture.send(100 * ms, 3)
    fixture.answer(200 * ms, [[3, 5]])
    assert.deepStrictEqual(fixture.outcome()["lost"], [1, 2])
    fixture.answer(201 * ms, [[1, 1]])
    assert.deepStrictEqual(fixture.counts(), { ...nothing, lost: 1, reductions: 1, episodes: 1, undone: 1 })
  })

  it("wait while probe timeouts go unanswered", () => {
    const fixture = measured()
    fixture.send(100 * ms, 1)
    assert.strictEqual(fixture.probesUntil(400 * ms).length, 1)
    assert.strictEqual(fixture.recovery.pathProbeAt, never)
    fixture.recovery.handleAnswered(500 * ms)
    assert.strictEqual(fixture.recovery.pathProbeAt, 100 * ms)
  })

  it("give their size to window, pacer and sender when acknowledged", () => {
    const sizes: Record<string, Array<Bytes>> = { pacer: [], controller: [] }
    class SpiedPacer extends PacedBucket {
      override setDatagramSize(bytes: Bytes): void {
        sizes["pacer"]!.push(bytes)
        super.setDatagramSize(bytes)
      }
    }
    class SpiedController extends NewReno {
      override setDatagramSize(bytes: Bytes): void {
        sizes["controller"]!.push(bytes)
        super.setDatagramSize(bytes)
      }
    }
    const fixture = measured(1_024, {
      pacing: { make: (options) => new SpiedPacer(options) },
      congestionControl: { make: (options) => new SpiedController(options) }
    })
    fixture.recovery.handlePathProbeSent(100 * ms, large)
    fixture.answer(200 * ms, [[1, 1]])
    assert.deepStrictEqual(sizes, { pacer: [large], controller: [large] })
    assert.strictEqual(fixture.recovery.datagramSize, large)
    const changes = fixture.events.filter((event) => event._tag === "DatagramSizeChanged")
    assert.deepStrictEqual(changes, [
      { _tag: "DatagramSizeChanged", at: 200 * ms, bytes: large, cause: "probe acknowledged" }
    ])
    fixture.answer(300 * ms, [[0, 1]])
    assert.strictEqual(sizes["pacer"]!.length, 1)
  })

  it("that are forgotten with all flights go again a second after they were sent", () => {
    const fixture = measured()
    fixture.recovery.handlePathProbeSent(150 * ms, large)
    fixture.recovery.forgetFlights(155 * ms)
    assert.strictEqual(fixture.recovery.pathProbeAt, 1_150 * ms)
    fixture.send(160 * ms, 4)
    fixture.answer(260 * ms, [[1, 5]])
    assert.strictEqual(fixture.recovery.datagramSize, small)
    fixture.recovery.handlePathProbeSent(1_150 * ms, large)
    fixture.answer(1_250 * ms, [[6, 6]])
    assert.strictEqual(fixture.recovery.datagramSize, large)
  })
})

/**
 * Large flights vanish from number 1 on: 1–3 of a first round, found by the small 4–7, and in the second round 8 and 9,
 * with small ones after them.
 */
const twoRounds = (smallAfter: number): Fixture => {
  const fixture = measured(1_024, {}, large)
  fixture.send(100 * ms, 3, large)
  fixture.send(100 * ms, 4, small)
  fixture.answer(200 * ms, [[4, 7]])
  assert.deepStrictEqual(fixture.outcome()["lost"], [1, 2, 3])
  fixture.send(201 * ms, 2, large)
  fixture.send(201 * ms, smallAfter, small)
  return fixture
}

describe("Recovery: a black hole seen by small packets that arrive (spec §14.8 a)", () => {
  it("is no congestion: the episode is undone, the window begins again once, all that vanished goes again", () => {
    const fixture = twoRounds(4)
    fixture.send(290 * ms, 2, large)
    const before = fixture.recovery.controller.window
    fixture.answer(301 * ms, [[10, 13]])
    assert.deepStrictEqual(fixture.outcome(), { acked: [10, 11, 12, 13], lost: [8, 9, 14, 15] })
    const undone = { lost: 5, reductions: 1, episodes: 1, undone: 1, blackHoles: 1, persistentCongestions: 0 }
    assert.deepStrictEqual(fixture.counts(), undone)
    assert.isTrue(fixture.recovery.controller.inSlowStart)
    assert.isAtLeast(fixture.recovery.controller.window, before)
    assert.deepStrictEqual([fixture.recovery.datagramSize, fixture.recovery.inFlightCount], [small, 0])
    assert.strictEqual(fixture.recovery.pathProbeAt, 1_301 * ms)
    const [change] = fixture.events.filter((event) => event._tag === "DatagramSizeChanged")
    assert.deepStrictEqual(change, { _tag: "DatagramSizeChanged", at: 301 * ms, bytes: small, cause: "black hole" })
  })

  it("leaves the small flights that were lost with the large ones to congestion control", () => {
    const fixture = twoRounds(5)
    fixture.answer(301 * ms, [[11, 14]])
    assert.deepStrictEqual(fixture.outcome()["lost"], [8, 9, 10])
    assert.deepInclude(fixture.counts(), { blackHoles: 1, reductions: 2, undone: 0 })
  })

  it("is no persistent congestion either, however long nothing large got through", () => {
    const fixture = twoRounds(0)
    fixture.send(1_400 * ms, 1, large)
    fixture.send(1_401 * ms, 5, small)
    fixture.answer(1_500 * ms, [[12, 15]])
    assert.deepStrictEqual(fixture.outcome()["lost"], [8, 9, 10, 11])
    assert.deepInclude(fixture.counts(), { blackHoles: 1, persistentCongestions: 0 })
  })

  it("changes the size at once, too, when a timer finds the last of them lost", () => {
    const fixture = twoRounds(1)
    fixture.answer(301 * ms, [[10, 10]])
    assert.deepStrictEqual(fixture.outcome(), { acked: [10] })
    assert.strictEqual(fixture.recovery.handleTimeout(fixture.recovery.deadline()), "loss")
    assert.deepStrictEqual(fixture.outcome(), { lost: [8, 9] })
    assert.strictEqual(fixture.recovery.counters.blackHoles, 1)
    assert.strictEqual(fixture.recovery.datagramSize, small)
  })

  it("is not seen when a large packet arrives late", () => {
    const fixture = twoRounds(12)
    fixture.answer(300 * ms, [[2, 2]])
    fixture.answer(301 * ms, [[10, 21]])
    assert.deepStrictEqual(fixture.outcome()["lost"], [8, 9])
    assert.deepStrictEqual([fixture.recovery.counters.blackHoles, fixture.recovery.datagramSize], [0, large])
  })

  it("is not seen in the losses of one round, however many", () => {
    const fixture = measured(1_024, {}, large)
    fixture.send(100 * ms, 50, large)
    fixture.send(101 * ms, 20, small)
    for (let number = 51; number <= 70; number++) fixture.answer((150 + number) * ms, [[number, number]])
    assert.strictEqual(fixture.recovery.counters.lost, 50)
    assert.deepStrictEqual([fixture.recovery.counters.blackHoles, fixture.recovery.datagramSize], [0, large])
  })
})

describe("Recovery: what is no black hole", () => {
  const pathMtu = { make: () => new Discovery(large, new BlackHole()) }

  /** Windows of large and small packets for 60 round trips, lost by a coin, or in bursts. */
  const lossy = (seed: number, loss: number, bursts: boolean): Fixture => {
    const fixture = measured(1_024, { pathMtu }, large)
    const [coin, any] = [random(seed), between(seed + 1)]
    let isBad = false
    for (let round = 1; round <= 60; round++) {
      const now = round * 100 * ms
      const arrived: Array<number> = []
      for (let i = 0; i < 30; i++) {
        const number = fixture.recovery.handleSent(now + i, any(0, 4) === 0 ? 300 : large, false)
        isBad = isBad ? coin() > 0.3 : coin() < loss / 3
        if (bursts ? !isBad : coin() >= loss) arrived.push(number)
      }
      for (const number of arrived) fixture.answer(now + 100 * ms, [[number, number]])
    }
    return fixture
  }

  it("is random loss, or bursts of it, with small packets between, over many seeds", () => {
    for (const [loss, bursts] of [
      [0.005, false],
      [0.05, false],
      [0.2, false],
      [0.05, true]
    ] as const) {
      for (let seed = 1; seed <= 25; seed++) {
        const { recovery } = lossy(seed, loss, bursts)
        assert.isAbove(recovery.counters.lost, 0)
        assert.deepStrictEqual(
          [recovery.counters.blackHoles, recovery.datagramSize],
          [0, large],
          `${loss}, seed ${seed}`
        )
      }
    }
  })
})

describe("a drain over a path with an MTU", () => {
  const drain = (path: Partial<Path>, detects = true): ToyLink => {
    const link = new ToyLink(
      new Cubic({ datagramSize: small, largestWindow: 10_000 * small }),
      { ...cleanPath, ...path },
      {
        policies: {
          pathMtu: { make: ({ datagramSize }) => new Discovery(datagramSize, detects ? new BlackHole() : undefined) }
        }
      }
    )
    link.offer(3_000)
    link.run(10 * second, 3_000)
    return link
  }
  const hole: Partial<Path> = { drops: (now, bytes) => now > 200 * ms && bytes > 1_300 }

  it("ends within 1.2 s of a black hole opening, with the small size, and stops for good without detection", () => {
    const link = drain(hole)
    assert.strictEqual(link.recovery.counters.blackHoles, 1)
    assert.strictEqual(link.recovery.datagramSize, small)
    assert.isBelow(link.now, 1_400 * ms)
    assert.isBelow(drain(hole, false).delivered, 3_000)
  })

  it("never takes a size that does not arrive", () => {
    const link = drain({ queue: 10_000, drops: (_now, bytes) => bytes > 1_300 })
    assert.deepStrictEqual([link.recovery.datagramSize, link.recovery.counters.lost], [small, 0])
    assert.isAtLeast(link.recovery.counters.pathProbes, 1)
  })

  it("grows to 1,452 B and stays there under random loss", () => {
    for (const loss of [0.005, 0.02, 0.1]) {
      for (let seed = 1; seed <= 10; seed++) {
        const coin = random(seed)
        const { recovery } = drain({ drops: () => coin() < loss })
        assert.deepStrictEqual(
          [recovery.datagramSize, recovery.counters.blackHoles],
          [large, 0],
          `${loss}, seed ${seed}`
        )
      }
    }
  })
})

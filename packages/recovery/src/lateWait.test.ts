import { assert, describe, it } from "@effect/vitest"
import type { Micros, PacketNumber } from "@pure-link/wire"
import { never } from "@pure-link/wire"
import { datagram, Fixture, measured, ms } from "../test/fixture.ts"
import { between } from "../test/random.ts"
import type { ControllerOptions } from "./congestion/CongestionController.ts"
import { Cubic } from "./congestion/cubic.ts"
import { NewReno } from "./congestion/newReno.ts"
import { NeverUndo } from "./episode/neverUndo.ts"
import { LateWait } from "./lateWait.ts"
import { FixedLossDetector } from "./loss/fixed.ts"
import { Policies } from "./policies.ts"
import { RoundTripTime } from "./roundTripTime.ts"

const second = 1_000_000

/** Acknowledges one number in an answer whose largest is another one, so that it measures nothing. */
const acknowledge = (fixture: Fixture, now: Micros, number: PacketNumber, seen = false): void => {
  fixture.recovery.beginAnswer(now)
  fixture.recovery.acknowledge(number, number, seen)
  fixture.recovery.endAnswer(now, number + 1, 0)
}

/**
 * A flight of four sent at 100 ms over an RTT of 100 ms, and one answer at 200 ms that acknowledges the last: number 1
 * is declared lost.
 */
const oneLost = (flights?: number): Fixture => {
  const fixture = measured(flights)
  fixture.send(100 * ms, 4)
  fixture.answer(200 * ms, [[4, 4]])
  assert.deepStrictEqual(fixture.outcome(), { acked: [4], lost: [1] })
  return fixture
}

const fate = ({ recovery: { counters } }: Fixture): ReadonlyArray<number> => [
  counters.lost,
  counters.late,
  counters.givenUp
]
const episodes = ({ recovery: { counters } }: Fixture): ReadonlyArray<number> => [counters.episodes, counters.undone]

describe("LateWait (spec §14.3)", () => {
  const rtt = new RoundTripTime()
  rtt.update(10 * ms, 0)
  /** The largest round trip that counts at `now`, as the wait shows it. */
  const largest = (wait: LateWait): Micros => wait.endsAt(-1e12, 0, rtt) / 2

  it("is two round trips from the declaration, of the larger of smoothed and latest RTT", () => {
    assert.strictEqual(new LateWait().endsAt(5 * second, 0, rtt), 5 * second + 20 * ms)
    const spiked = new RoundTripTime()
    spiked.update(10 * ms, 0)
    spiked.update(300 * ms, 0)
    assert.strictEqual(new LateWait().endsAt(5 * second, 0, spiked), 5 * second + 600 * ms)
  })

  it("is at least twice the largest recent round trip from the sending", () => {
    const wait = new LateWait()
    wait.handleSettled(0, 70 * ms)
    wait.handleSettled(0, 30 * ms)
    assert.strictEqual(wait.endsAt(50 * ms, 20 * ms, rtt), 160 * ms)
    assert.strictEqual(wait.endsAt(141 * ms, 20 * ms, rtt), 161 * ms)
  })

  it("remembers round trips for one second at least and two at most", () => {
    for (let seed = 1; seed <= 100; seed++) {
      const any = between(seed)
      const wait = new LateWait()
      const settled: Array<readonly [number, number]> = []
      let now = any(0, 5 * second)
      for (let i = 0; i < 60; i++) {
        now += any(0, 4) === 0 ? any(0, 3 * second) : any(0, 100 * ms)
        const age = any(1, 500) * ms
        settled.push([now, age])
        wait.handleSettled(now, age)
        const since = (start: number): number => Math.max(...settled.filter(([at]) => at > start).map(([, a]) => a))
        assert.isAtLeast(largest(wait), since(now - second), `seed ${seed}`)
        assert.isAtMost(largest(wait), since(now - 2 * second - 1), `seed ${seed}`)
      }
    }
  })
})

describe("Recovery: a flight declared lost", () => {
  it("is given up two round trips after the declaration, to the microsecond", () => {
    for (const [at, givenUp] of [
      [400 * ms - 1, 0],
      [400 * ms, 1]
    ] as const) {
      const fixture = oneLost()
      fixture.send(300 * ms, 1)
      acknowledge(fixture, at, 5)
      assert.strictEqual(fixture.recovery.counters.givenUp, givenUp, `${at}`)
    }
  })

  it("is given up no sooner than twice the largest recent round trip after it was sent", () => {
    for (const [at, givenUp] of [
      [602 * ms - 1, 0],
      [602 * ms, 3]
    ] as const) {
      const fixture = measured()
      fixture.send(100 * ms, 5)
      // Packets that took 250 and 251 ms, which the smoothed RTT does not know of.
      acknowledge(fixture, 350 * ms, 1)
      acknowledge(fixture, 351 * ms, 5)
      assert.deepStrictEqual(fixture.outcome(), { acked: [5], lost: [2, 3, 4] })
      assert.strictEqual(fixture.recovery.rtt.smoothed, 100 * ms)
      fixture.send(500 * ms, 1)
      acknowledge(fixture, at, 6)
      assert.strictEqual(fixture.recovery.counters.givenUp, givenUp, `${at}`)
    }
  })

  it("counts the round trips of late flights among the largest", () => {
    const fixture = oneLost()
    fixture.send(200 * ms, 4)
    acknowledge(fixture, 310 * ms, 8)
    assert.deepStrictEqual(fixture.outcome(), { acked: [8], lost: [2, 3, 5] })
    acknowledge(fixture, 390 * ms, 1)
    assert.deepStrictEqual(fixture.outcome()["late"], [1])
    // It took 290 ms, so that 2 and 3, declared lost at 310 ms, may still come until 100 + 2 · 290 ms.
    fixture.send(600 * ms, 2)
    acknowledge(fixture, 680 * ms - 1, 9)
    assert.strictEqual(fixture.recovery.counters.givenUp, 0)
    acknowledge(fixture, 680 * ms, 10)
    assert.strictEqual(fixture.recovery.counters.givenUp, 2)
  })

  it("is not given up by timers, nor by answers to packets sent before the declaration, however late", () => {
    const fixture = measured()
    fixture.send(100 * ms, 5)
    acknowledge(fixture, 200 * ms, 4)
    fixture.probesUntil(30 * second)
    assert.isAbove(fixture.recovery.probeCount, 5)
    assert.deepStrictEqual(fate(fixture), [3, 0, 0])
    acknowledge(fixture, 30 * second, 5)
    assert.deepStrictEqual(fate(fixture), [3, 0, 0])
    acknowledge(fixture, 30 * second + 1, 1)
    assert.deepStrictEqual(fixture.outcome(), { late: [1] })
  })

  it("is given up on the word of a packet sent after the declaration, to the microsecond", () => {
    for (const [sentAt, givenUp] of [
      [500 * ms, 0],
      [500 * ms + 1, 3]
    ] as const) {
      const fixture = measured()
      fixture.send(100 * ms, 4)
      acknowledge(fixture, 500 * ms, 4)
      fixture.send(sentAt, 1)
      acknowledge(fixture, 900 * ms, 5)
      assert.strictEqual(fixture.recovery.counters.givenUp, givenUp, `sent at ${sentAt}`)
    }
  })

  it("undoes nothing any more once it was given up, but counts, is late, and is so only once", () => {
    for (const seen of [false, true]) {
      const fixture = oneLost()
      fixture.send(300 * ms, 1)
      acknowledge(fixture, 400 * ms, 5)
      assert.deepStrictEqual(fixture.recovery.oldestOpen, 1)
      const { window } = fixture
      acknowledge(fixture, 401 * ms, 1, seen)
      assert.deepStrictEqual(fixture.outcome(), { [seen ? "lateSeen" : "late"]: [1] })
      assert.deepStrictEqual([fixture.window, ...fate(fixture), ...episodes(fixture)], [window, 3, 0, 1, 2, 0])
      assert.strictEqual(fixture.recovery.counters.givenUpTooSoon, 1)
      acknowledge(fixture, 402 * ms, 1)
      assert.deepStrictEqual([fixture.outcome(), fixture.recovery.counters.givenUpTooSoon], [{}, 1])
      assert.isAbove(fixture.recovery.oldestOpen, 1)
    }
  })

  it("is given up when the ring needs its slot, and then its episode stands", () => {
    const fixture = measured(64)
    fixture.send(100 * ms, 5)
    fixture.answer(200 * ms, [[5, 5]])
    acknowledge(fixture, 201 * ms, 2)
    assert.deepStrictEqual(fate(fixture), [2, 1, 0])
    fixture.send(202 * ms, 59)
    assert.deepStrictEqual(fate(fixture), [2, 1, 0])
    fixture.send(202 * ms, 1)
    assert.deepStrictEqual([...fate(fixture), ...episodes(fixture)], [2, 1, 1, 1, 0])
  })
})

describe("Recovery: an episode of losses", () => {
  for (const make of [(o: ControllerOptions) => new Cubic(o), (o: ControllerOptions) => new NewReno(o)]) {
    const congestionControl = { make }
    const { name } = make({ datagramSize: datagram, largestWindow: 10 * datagram })
    it(`that all proved late is undone with ${name}: the window is back, and grows on as if nothing had been`, () => {
      const fixture = measured(1_024, { congestionControl })
      fixture.send(100 * ms, 10)
      const { window } = fixture
      fixture.answer(200 * ms, [[5, 5]])
      assert.isBelow(fixture.window, window)
      fixture.answer(201 * ms, [[1, 4]])
      assert.deepStrictEqual([fixture.window, ...episodes(fixture)], [window + 2, 1, 1])
      fixture.answer(202 * ms, [[6, 10]])
      assert.strictEqual(fixture.window, window + 7)
      assert.isTrue(fixture.recovery.controller.inSlowStart)
    })
  }

  it("is undone by late SEEN as well, though their records must go again", () => {
    const fixture = oneLost()
    const reduced = fixture.window
    acknowledge(fixture, 210 * ms, 1, true)
    assert.deepStrictEqual(fixture.outcome(), { lateSeen: [1] })
    assert.isAbove(fixture.window, reduced)
    assert.deepStrictEqual(episodes(fixture), [1, 1])
  })

  it("stands when one flight of it was given up, whatever the others prove", () => {
    const fixture = measured()
    fixture.send(100 * ms, 6)
    const { window } = fixture
    fixture.answer(200 * ms, [[4, 6]])
    assert.deepStrictEqual(fixture.outcome(), { acked: [4, 5, 6], lost: [1, 2, 3] })
    acknowledge(fixture, 210 * ms, 1)
    acknowledge(fixture, 211 * ms, 3)
    fixture.send(300 * ms, 1)
    acknowledge(fixture, 400 * ms, 7)
    assert.deepStrictEqual([...fate(fixture), ...episodes(fixture)], [3, 2, 1, 1, 0])
    assert.isBelow(fixture.window, window)
  })

  it("that saw persistent congestion is never undone, even if everything arrives after all", () => {
    const fixture = measured()
    fixture.send(100 * ms, 8)
    fixture.probesUntil(2_300 * ms)
    fixture.answer(2_300 * ms, [[11, 11]])
    assert.strictEqual(fixture.recovery.counters.persistentCongestions, 1)
    fixture.answer(2_301 * ms, [[1, 11]])
    assert.strictEqual(fixture.recovery.outcome.late.length, 10)
    assert.deepStrictEqual([fixture.window, ...episodes(fixture)], [2, 1, 0])
  })

  it("does not stay open when flights are forgotten", () => {
    const fixture = oneLost()
    fixture.recovery.forgetFlights(205 * ms)
    acknowledge(fixture, 210 * ms, 1)
    assert.deepStrictEqual(episodes(fixture), [1, 0])
    const reduced = fixture.window
    fixture.send(300 * ms, 4)
    fixture.answer(400 * ms, [[8, 8]])
    assert.deepStrictEqual(fixture.outcome(), { acked: [8], lost: [5] })
    assert.isBelow(fixture.window, reduced)
    acknowledge(fixture, 410 * ms, 5)
    assert.deepStrictEqual([fixture.window, ...episodes(fixture)], [reduced, 2, 1])
  })

  it("is counted alike whoever judges", () => {
    for (let seed = 1; seed <= 20; seed++) {
      const lossDetection = { make: () => new FixedLossDetector() }
      const counts = [Policies.defaults.episodeJudgement, { make: () => new NeverUndo() }].map((episodeJudgement) => {
        const fixture = measured(64, { lossDetection, episodeJudgement })
        scramble(fixture, seed)
        return [...fate(fixture), fixture.recovery.counters.episodes]
      })
      assert.deepStrictEqual(counts[0], counts[1], `seed ${seed}`)
    }
  })

  it("is undone if and only if all of its flights proved late, in any history", () => {
    const undone = { yes: 0, no: 0 }
    for (let seed = 1; seed <= 150; seed++) {
      const fixture = measured(seed % 2 === 0 ? 64 : 1_024)
      scramble(fixture, seed)
      for (const isUndone of judgeByTrace(fixture, `seed ${seed}`)) undone[isUndone ? "yes" : "no"]++
    }
    assert.isAbove(undone.yes, 100)
    assert.isAbove(undone.no, 100)
  })
})

/** Sends, acknowledges in any order, loses and delays at random, for a while. */
const scramble = (fixture: Fixture, seed: number): void => {
  const any = between(seed)
  const { recovery } = fixture
  const lossOneIn = any(3, 40)
  const flying: Array<{ readonly at: Micros; readonly number: PacketNumber }> = []
  let now = 100 * ms
  for (let step = 0; step < 400; step++) {
    now += any(0, 10 * ms)
    for (let count = any(0, 3); count > 0 && !recovery.ringIsFull(); count--) {
      const number = recovery.handleSent(now, datagram, false)
      if (any(1, lossOneIn) > 1) flying.push({ at: now + any(90, any(0, 5) === 0 ? 260 : 110) * ms, number })
    }
    if (recovery.deadline() <= now && recovery.handleTimeout(now) === "probe") recovery.handleSent(now, datagram, true)
    const arrived = flying.filter(({ at }) => at <= now).map(({ number }) => number)
    if (arrived.length === 0) continue
    recovery.beginAnswer(now)
    for (const number of arrived) recovery.acknowledge(number, number, any(0, 9) === 0)
    recovery.endAnswer(now, Math.max(...arrived), 0)
    flying.splice(0, flying.length, ...flying.filter(({ at }) => at > now))
  }
}

/** Follows the trace episode by episode, checks what was undone, and says of each that was over whether it was. */
const judgeByTrace = (fixture: Fixture, why: string): Array<boolean> => {
  const verdicts: Array<boolean> = []
  let [unsettled, givenUp, reductions, collapses] = [0, 0, 0, 0]
  let owed = false
  for (const event of fixture.events) {
    if (event._tag === "FlightLost") {
      assert.isFalse(owed, why)
      if (unsettled++ === 0) [givenUp, reductions, collapses] = [0, 0, 0]
    } else if (event._tag === "WindowReduced") {
      if (event.cause === "loss") reductions++
      else collapses++
    } else if (event._tag === "FlightLate" || event._tag === "FlightGivenUp") {
      if (event._tag === "FlightGivenUp") givenUp++
      if (--unsettled > 0) continue
      owed = givenUp === 0 && collapses === 0 && reductions > 0
      verdicts.push(owed)
    } else if (event._tag === "EpisodeUndone") {
      assert.isTrue(owed, why)
      owed = false
    }
  }
  assert.isFalse(owed, why)
  return verdicts
}

describe("Recovery: the window when a reduction begins (RFC 9002 §7.3.2)", () => {
  it("lets one packet go beyond it, and only one", () => {
    const fixture = measured()
    fixture.send(100 * ms, 11)
    fixture.answer(200 * ms, [[4, 4]])
    assert.deepStrictEqual([fixture.window, fixture.recovery.inFlightCount], [5, 9])
    assert.isTrue(fixture.recovery.windowAllows(datagram))
    assert.isFalse(fixture.recovery.hasRoom(datagram), "for what was lost, and nothing else")
    fixture.send(200 * ms, 1)
    assert.isFalse(fixture.recovery.windowAllows(datagram))
    fixture.answer(201 * ms, [[5, 5]])
    assert.deepStrictEqual(fixture.outcome(), { acked: [5], lost: [2] })
    assert.isFalse(fixture.recovery.windowAllows(datagram), "losses of the same round trip are no new reduction")
  })

  it("does so when a timer found the loss, but not once another answer came, nor after a collapse", () => {
    const byTimer = measured()
    byTimer.send(100 * ms, 12)
    byTimer.answer(200 * ms, [[2, 2]])
    assert.isFalse(byTimer.recovery.windowAllows(datagram))
    assert.strictEqual(byTimer.recovery.handleTimeout(byTimer.recovery.deadline()), "loss")
    assert.isTrue(byTimer.recovery.windowAllows(datagram))
    acknowledge(byTimer, 220 * ms, 3)
    assert.isFalse(byTimer.recovery.windowAllows(datagram))
    const collapsed = measured()
    collapsed.send(100 * ms, 8)
    collapsed.probesUntil(2_300 * ms)
    collapsed.send(2_300 * ms, 3)
    collapsed.answer(2_300 * ms, [[11, 11]])
    assert.strictEqual(collapsed.window, 2)
    assert.isFalse(collapsed.recovery.windowAllows(datagram))
    assert.isBelow(collapsed.recovery.deadline(), never)
  })
})

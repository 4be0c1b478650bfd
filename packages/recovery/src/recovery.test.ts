import { assert, describe, it } from "@effect/vitest"
import { never } from "@pure-link/wire"
import { datagram, Fixture, measured, ms } from "../test/fixture.ts"
import { NeverUndo } from "./episode/neverUndo.ts"
import { probeTimeoutCeiling } from "./recovery.ts"
import { Cubic } from "./congestion/cubic.ts"

describe("Recovery: answers", () => {
  it("settles flights once, ACK and SEEN apart, and both leave the flight", () => {
    const fixture = measured()
    fixture.send(100 * ms, 8)
    fixture.recovery.beginAnswer(200 * ms)
    assert.isTrue(fixture.recovery.acknowledge(1, 2, false))
    assert.isTrue(fixture.recovery.acknowledge(3, 4, true))
    assert.isTrue(fixture.recovery.acknowledge(0, 4, false))
    fixture.recovery.endAnswer(200 * ms, 4, 0)
    assert.deepStrictEqual(fixture.outcome(), { acked: [1, 2], seen: [3, 4] })
    assert.deepStrictEqual([fixture.recovery.inFlightCount, fixture.recovery.inFlightBytes], [4, 4 * datagram])
    fixture.answer(201 * ms, [[0, 4]])
    assert.deepStrictEqual(fixture.outcome(), {})
    assert.strictEqual(fixture.window, 14)
  })

  it("measures the round trip only when the largest reported number is newly settled, less the delay", () => {
    const fixture = measured()
    fixture.send(100 * ms, 2)
    fixture.answer(180 * ms, [[2, 2]])
    assert.strictEqual(fixture.recovery.rtt.latest, 80 * ms)
    fixture.answer(300 * ms, [[1, 2]])
    assert.deepStrictEqual(fixture.outcome(), { acked: [1] })
    assert.strictEqual(fixture.recovery.rtt.latest, 80 * ms)
    fixture.send(300 * ms, 1)
    fixture.recovery.beginAnswer(420 * ms)
    fixture.recovery.acknowledge(3, 3, false)
    fixture.recovery.endAnswer(420 * ms, 3, 40 * ms)
    // 7/8 of 97.5 and 1/8 of (120 − 40)
    assert.strictEqual(fixture.recovery.rtt.smoothed, ((97.5 * 7 + 80) / 8) * ms)
  })

  it("refuses ranges that name numbers never sent, or none, without any effect", () => {
    const fixture = measured()
    fixture.send(100 * ms, 3)
    fixture.recovery.beginAnswer(200 * ms)
    for (const [low, high] of [
      [1, 4],
      [4, 4],
      [3, 2],
      [-1, 2],
      [2, 2 ** 53 - 1],
      [Number.NaN, 1]
    ] as const) {
      assert.isFalse(fixture.recovery.acknowledge(low, high, false), `${low}–${high}`)
    }
    fixture.recovery.endAnswer(200 * ms, 2 ** 53 - 1, 0)
    assert.deepStrictEqual(fixture.outcome(), {})
    assert.deepStrictEqual([fixture.recovery.inFlightCount, fixture.window], [3, 10])
    assert.strictEqual(fixture.recovery.rtt.latest, 100 * ms)
    assert.strictEqual(fixture.recovery.counters.violations, 6)
  })

  it("ignores numbers that the ring has long left, and acknowledges those it holds", () => {
    const fixture = measured(64)
    for (let round = 1; round < 40; round++) {
      fixture.send(round * 100 * ms, 10)
      fixture.answer((round + 1) * 100 * ms, [[0, fixture.recovery.nextNumber - 1]])
      assert.strictEqual(fixture.recovery.outcome.acked.count, 10)
    }
    assert.strictEqual(fixture.recovery.inFlightCount, 0)
  })
})

describe("Recovery: loss (RFC 9002 §6.1)", () => {
  it("declares a flight lost three numbers below the largest acknowledged, not two", () => {
    const fixture = measured()
    fixture.send(100 * ms, 5)
    fixture.answer(200 * ms, [[3, 3]])
    assert.deepStrictEqual(fixture.outcome(), { acked: [3] })
    fixture.answer(201 * ms, [[4, 4]])
    assert.deepStrictEqual(fixture.outcome(), { acked: [4], lost: [1] })
    fixture.answer(202 * ms, [[5, 5]])
    assert.deepStrictEqual(fixture.outcome(), { acked: [5], lost: [2] })
  })

  it("declares a flight lost 9/8 round trips after it was sent, to the microsecond, by a timer", () => {
    const fixture = measured()
    fixture.send(100 * ms, 1)
    fixture.send(101 * ms, 1)
    fixture.answer(201 * ms, [[2, 2]])
    assert.strictEqual(fixture.recovery.deadline(), 100 * ms + 112_500)
    assert.strictEqual(fixture.recovery.handleTimeout(100 * ms + 112_499), "none")
    assert.strictEqual(fixture.recovery.handleTimeout(100 * ms + 112_500), "loss")
    assert.deepStrictEqual(fixture.outcome(), { lost: [1] })
    assert.strictEqual(fixture.recovery.deadline(), never)
  })

  it("takes the larger of smoothed and latest RTT, so that one spike is no mass loss", () => {
    const fixture = measured()
    for (let i = 0; i < 3; i++) fixture.send((100 + i) * ms, 1)
    fixture.answer(500 * ms, [[3, 3]])
    // The latest sample is 398 ms: the two before were sent 399 and 400 ms ago, less than 9/8 of it.
    assert.deepStrictEqual(fixture.outcome(), { acked: [3] })
  })

  it("never declares what was sent after the largest acknowledged", () => {
    const fixture = measured()
    fixture.send(100 * ms, 5)
    fixture.answer(200 * ms, [[1, 1]])
    assert.strictEqual(fixture.recovery.handleTimeout(10_000 * ms), "probe")
    assert.deepStrictEqual(fixture.outcome(), {})
    assert.strictEqual(fixture.recovery.inFlightCount, 4)
  })

  it("reduces once per round trip of losses", () => {
    const fixture = measured()
    const before = fixture.window
    fixture.send(100 * ms, 20)
    fixture.answer(200 * ms, [[4, 4]])
    fixture.answer(201 * ms, [[7, 7]])
    fixture.answer(202 * ms, [[11, 20]])
    assert.deepStrictEqual(fixture.outcome()["lost"], [5, 6, 8, 9, 10])
    assert.strictEqual(fixture.recovery.counters.reductions, 1)
    assert.strictEqual(fixture.window, before / 2)
    fixture.send(203 * ms, 5)
    fixture.answer(303 * ms, [[25, 25]])
    assert.strictEqual(fixture.recovery.counters.reductions, 2)
  })

  it("learns how late a flight was from what earlier answers acknowledged, not from the answer that settles it", () => {
    const fixture = measured()
    fixture.send(100 * ms, 10)
    fixture.answer(200 * ms, [[4, 4]])
    assert.deepStrictEqual(fixture.outcome(), { acked: [4], lost: [1] })
    fixture.send(200 * ms, 300)
    // The receiver stood still, and answers hundreds of packets at once.
    fixture.answer(210 * ms, [[1, 310]])
    assert.deepStrictEqual(fixture.outcome()["late"], [1])
    fixture.send(210 * ms, 6)
    fixture.answer(300 * ms, [[316, 316]])
    assert.deepStrictEqual(fixture.outcome(), { acked: [316], lost: [311, 312] })
  })

  it("reports the acknowledgement of a lost flight as late: it frees nothing twice and grows nothing", () => {
    const fixture = measured(1_024, { episodeJudgement: { make: () => new NeverUndo() } })
    fixture.send(100 * ms, 6)
    fixture.answer(200 * ms, [[5, 5]])
    assert.deepStrictEqual(fixture.outcome(), { acked: [5], lost: [1, 2] })
    const { window } = fixture
    const { inFlightBytes } = fixture.recovery
    fixture.send(200 * ms, 1)
    fixture.answer(205 * ms, [[1, 1]])
    assert.deepStrictEqual(fixture.outcome(), { late: [1] })
    fixture.answer(206 * ms, [[1, 2]], true)
    assert.deepStrictEqual(fixture.outcome(), { lateSeen: [2] })
    assert.deepStrictEqual([fixture.window, fixture.recovery.inFlightBytes], [window, inFlightBytes + datagram])
    fixture.answer(207 * ms, [[1, 2]])
    assert.deepStrictEqual(fixture.outcome(), {})
  })

  it("keeps a lost flight until its slot is needed, and then takes no acknowledgement of it", () => {
    const fixture = measured(64)
    fixture.send(100 * ms, 4)
    fixture.answer(200 * ms, [[4, 4]])
    assert.deepStrictEqual(fixture.outcome(), { acked: [4], lost: [1] })
    fixture.send(200 * ms, 60)
    fixture.send(200 * ms, 1)
    fixture.answer(210 * ms, [[0, 1]])
    assert.deepStrictEqual(fixture.outcome(), {})
  })
})

describe("Recovery: ages that say nothing", () => {
  it("are those of flights that waited for a process that slept: no sample, no lateness, no longer waiting", () => {
    for (const served of [false, true]) {
      const fixture = measured()
      fixture.send(100 * ms, 5)
      // Awake again after 10 minutes: what had come is read before, or after, the timer is served.
      const now = 600_000 * ms
      if (served) assert.strictEqual(fixture.recovery.handleTimeout(now), "probe")
      fixture.answer(now, [[4, 5]])
      assert.deepStrictEqual(fixture.outcome(), { acked: [4, 5], lost: [1, 2, 3] })
      fixture.answer(now, [[1, 3]])
      assert.deepStrictEqual(fixture.outcome(), { late: [1, 2, 3] })
      assert.deepStrictEqual([fixture.recovery.rtt.latest, fixture.recovery.rtt.smoothed], [100 * ms, 100 * ms])
      fixture.send(now, 4)
      fixture.answer(now + 120 * ms, [[8, 9]])
      assert.strictEqual(fixture.recovery.rtt.latest, 120 * ms)
      assert.deepStrictEqual(fixture.outcome()["lost"], [6], "the packet threshold learnt nothing either")
    }
  })

  it("are those of flights that waited for a peer that slept, which answers one after the other", () => {
    const fixture = measured()
    for (let i = 0; i < 5; i++) {
      fixture.send(100 * ms + i * 2_900 * ms, 1)
      assert.strictEqual(fixture.recovery.handleTimeout(100 * ms + (i + 1) * 2_900 * ms), "probe")
    }
    for (let number = 1; number <= 5; number++) fixture.answer(15_000 * ms, [[1, number]])
    assert.strictEqual(fixture.recovery.rtt.smoothed, 100 * ms)
    fixture.send(15_000 * ms, 1)
    fixture.answer(15_200 * ms, [[6, 6]])
    assert.strictEqual(fixture.recovery.rtt.latest, 200 * ms)
  })

  it("are those of flights from before the end of a silence, but a path that became that slow is learnt", () => {
    const fixture = measured()
    fixture.send(100 * ms, 3)
    let now = 100 * ms
    const probe = (until: number) => {
      for (; fixture.recovery.deadline() <= until; fixture.send(now, 1)) {
        now = fixture.recovery.deadline()
        assert.strictEqual(fixture.recovery.handleTimeout(now), "probe")
      }
      now = until
    }
    probe(5_000 * ms)
    fixture.answer(now, [[1, 3]])
    assert.strictEqual(fixture.recovery.rtt.smoothed, 100 * ms)
    // Each answer takes 5 s from now on, longer than four probes; the second one is believed.
    const first = fixture.recovery.nextNumber
    fixture.send(now, 1)
    probe(10_000 * ms)
    fixture.answer(now, [[first, first]])
    assert.strictEqual(fixture.recovery.rtt.latest, 5_000 * ms)
  })

  it("are not those of a timer that is a little late", () => {
    const fixture = measured()
    fixture.send(100 * ms, 1)
    fixture.answer(1_400 * ms, [[1, 1]])
    assert.strictEqual(fixture.recovery.rtt.latest, 1_300 * ms)
  })

  it("are those of flights that were given up: a packet that somebody held back for minutes is no round trip", () => {
    const fixture = measured()
    fixture.send(100 * ms, 5)
    fixture.answer(200 * ms, [[2, 5]])
    assert.deepStrictEqual(fixture.outcome()["lost"], [1])
    fixture.send(1_000 * ms, 1)
    fixture.answer(1_100 * ms, [[6, 6]])
    assert.strictEqual(fixture.recovery.counters.givenUp, 1)
    const { smoothed } = fixture.recovery.rtt
    fixture.answer(180_000 * ms, [[1, 1]])
    assert.deepStrictEqual(fixture.outcome(), { late: [1] })
    assert.strictEqual(fixture.recovery.rtt.smoothed, smoothed)
  })
})

describe("Recovery: probe timeout (RFC 9002 §6.2, spec §14.6)", () => {
  it("counts from the last packet sent, and never runs with nothing in flight", () => {
    const fixture = measured()
    assert.strictEqual(fixture.recovery.deadline(), never)
    fixture.send(100 * ms, 1)
    fixture.send(150 * ms, 1)
    assert.strictEqual(fixture.recovery.deadline(), (150 + 300) * ms)
    assert.strictEqual(fixture.recovery.handleTimeout(449 * ms), "none")
  })

  it("doubles once per expiry up to the ceiling, with one probe each, and shrinks no window", () => {
    const fixture = measured()
    fixture.send(100 * ms, 3)
    const { window } = fixture
    const probes = fixture.probesUntil(15_000 * ms)
    const waits = probes.map((at, i) => (at - (probes[i - 1] ?? 100 * ms)) / ms)
    assert.deepStrictEqual(waits, [300, 600, 1_200, 2_400, 2_800, 2_800, 2_800])
    assert.deepStrictEqual([fixture.recovery.probeCount, fixture.recovery.counters.probes], [7, 7])
    assert.strictEqual(fixture.window, window)
  })

  it("keeps a base timeout that is above the ceiling", () => {
    const fixture = new Fixture()
    fixture.send(0, 1)
    assert.deepStrictEqual(fixture.probesUntil(1_000 * ms), [999 * ms])
    fixture.answer(2_000 * ms, [[0, 0]])
    fixture.recovery.forgetFlights(2_000 * ms)
    assert.strictEqual(fixture.recovery.rtt.latest, 2_000 * ms)
    fixture.send(2_000 * ms, 1)
    assert.isAbove(6_000 * ms, probeTimeoutCeiling)
    assert.deepStrictEqual(fixture.probesUntil(15_000 * ms), [8_000 * ms, 14_000 * ms])
  })

  it("ends the back-off with any answer, and tells how long none came", () => {
    const fixture = measured()
    assert.strictEqual(fixture.recovery.answeredAt, 100 * ms)
    fixture.send(150 * ms, 1)
    fixture.probesUntil(3_000 * ms)
    assert.isAbove(fixture.recovery.probeCount, 2)
    fixture.recovery.handleAnswered(3_000 * ms)
    assert.deepStrictEqual([fixture.recovery.probeCount, fixture.recovery.answeredAt], [0, 3_000 * ms])
    assert.strictEqual(fixture.recovery.currentProbeTimeout(), 300 * ms)
  })

  it("finds a slot for a probe when the ring is full", () => {
    const fixture = measured(64)
    fixture.send(100 * ms, 64)
    assert.isTrue(fixture.recovery.ringIsFull())
    assert.strictEqual(fixture.recovery.handleTimeout(fixture.recovery.deadline()), "probe")
    assert.deepStrictEqual(fixture.outcome(), { lost: [1] })
    assert.strictEqual(fixture.recovery.handleSent(400 * ms, datagram, true), 65)
    assert.strictEqual(fixture.recovery.inFlightCount, 64)
  })
})

describe("Recovery: window and flights", () => {
  it("allows a datagram while it fits the window, and a probe always", () => {
    const fixture = new Fixture()
    fixture.send(0, 9)
    assert.isTrue(fixture.recovery.windowAllows(datagram))
    assert.isFalse(fixture.recovery.windowAllows(datagram + 1))
    fixture.send(0, 1)
    assert.isFalse(fixture.recovery.windowAllows(1))
    fixture.recovery.handleSent(0, datagram, true)
    assert.strictEqual(fixture.recovery.inFlightBytes, 11 * datagram)
  })

  it("grows nothing while want of data or credit held the sender back, until told otherwise", () => {
    const fixture = new Fixture()
    fixture.send(0, 8)
    fixture.recovery.setLimited(0, true)
    fixture.answer(100 * ms, [[0, 1]])
    assert.strictEqual(fixture.window, 10)
    fixture.recovery.setLimited(100 * ms, false)
    fixture.answer(101 * ms, [[2, 3]])
    assert.strictEqual(fixture.window, 12)
  })

  it("grows nothing while less than half of the window was used for two round trips, whatever paused it", () => {
    const fixture = new Fixture()
    const windows: Array<number> = []
    for (const count of [5, 4, 4, 4, 10]) {
      const now = windows.length * 100 * ms
      fixture.send(now, count)
      fixture.recovery.setLimited(now, false)
      fixture.answer(now + 100 * ms, [[0, fixture.recovery.nextNumber - 1]])
      windows.push(fixture.window)
    }
    assert.deepStrictEqual(windows, [11, 11, 11, 11, 21])
  })

  it("takes a full window as fully used, whatever the sender wanted", () => {
    const fixture = new Fixture()
    fixture.send(0, 10)
    fixture.recovery.setLimited(0, true)
    fixture.answer(100 * ms, [[0, 9]])
    assert.strictEqual(fixture.window, 20)
  })

  it("forgets flights without a signal, and then takes no acknowledgement of them", () => {
    const fixture = measured()
    fixture.send(100 * ms, 6)
    fixture.answer(200 * ms, [[5, 5]])
    const { window } = fixture
    fixture.recovery.forgetFlights(205 * ms)
    assert.deepStrictEqual([fixture.recovery.inFlightBytes, fixture.recovery.inFlightCount], [0, 0])
    assert.strictEqual(fixture.recovery.deadline(), never)
    assert.deepStrictEqual(fixture.outcome(), {})
    fixture.answer(210 * ms, [[1, 6]])
    assert.deepStrictEqual(fixture.outcome(), {})
    assert.strictEqual(fixture.window, window)
    assert.strictEqual(fixture.recovery.handleSent(220 * ms, datagram, false), 7)
  })

  it("tells the controller of late answers, which end an idle time as others do", () => {
    const told: Array<number> = []
    class Spied extends Cubic {
      override handleLate(now: number): void {
        told.push(now)
        super.handleLate(now)
      }
    }
    const fixture = measured(1_024, { congestionControl: { make: (options) => new Spied(options) } })
    fixture.send(100 * ms, 5)
    fixture.answer(200 * ms, [[4, 4]])
    assert.deepStrictEqual([fixture.outcome(), told], [{ acked: [4], lost: [1] }, []])
    fixture.answer(201 * ms, [[1, 1]])
    assert.deepStrictEqual(told, [201 * ms])
  })

  it("traces losses, late flights, probes and reductions", () => {
    const fixture = measured()
    fixture.send(100 * ms, 5)
    fixture.answer(200 * ms, [[4, 4]])
    fixture.answer(201 * ms, [[1, 1]])
    fixture.probesUntil(900 * ms)
    const tags = fixture.events.map((event) => event._tag)
    assert.includeMembers(tags, ["RoundTripMeasured", "FlightLost", "WindowReduced"])
    assert.includeMembers(tags, ["FlightLate", "ProbeTimeoutExpired"])
  })
})

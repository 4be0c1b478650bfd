import { assert, describe, it } from "@effect/vitest"
import { Fixture, measured, ms } from "../test/fixture.ts"

describe("Recovery: persistent congestion (RFC 9002 §7.6)", () => {
  it("follows the example of the RFC: lost for more than three probe timeouts, then one acknowledgement", () => {
    // As in RFC 9002 §7.6.3, in units of this path's probe timeout of 300 ms: a flight, and probes after 1, 3 and 7 of
    // them.
    const fixture = measured()
    fixture.send(100 * ms, 8)
    const probes = fixture.probesUntil(2_300 * ms)
    assert.strictEqual(probes.length, 3)
    fixture.answer(2_300 * ms, [[11, 11]])
    assert.deepStrictEqual(fixture.outcome(), { acked: [11], lost: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] })
    assert.strictEqual(fixture.window, 2)
    assert.deepStrictEqual(fixture.cuts(), { reductions: 1, collapses: 1 })
  })

  it("collapses once for a whole lost flight, even if two answers find two long halves of it", () => {
    const fixture = measured()
    for (let i = 0; i < 80; i++) fixture.send((100 + 50 * i) * ms, 1)
    // The first answer gives no sample, which would be that of a slow path: its largest number is another one.
    fixture.recovery.beginAnswer(4_060 * ms)
    fixture.recovery.acknowledge(40, 40, false)
    fixture.recovery.endAnswer(4_060 * ms, 41, 0)
    assert.strictEqual(fixture.recovery.outcome.lost.length, 39)
    assert.deepStrictEqual([fixture.window, fixture.recovery.counters.persistentCongestions], [2, 1])
    fixture.answer(4_150 * ms, [[80, 80]])
    assert.strictEqual(fixture.recovery.outcome.lost.length, 39)
    assert.deepStrictEqual(fixture.cuts(), { reductions: 1, collapses: 1 })
  })

  it("collapses again when all that was sent since is lost too", () => {
    const fixture = measured()
    fixture.send(100 * ms, 8)
    fixture.probesUntil(2_300 * ms)
    fixture.answer(2_300 * ms, [[11, 11]])
    fixture.send(2_400 * ms, 2)
    const probes = fixture.probesUntil(9_000 * ms)
    const last = fixture.recovery.nextNumber - 1
    fixture.answer(probes.at(-1)! + 100 * ms, [[last, last]])
    assert.deepStrictEqual(fixture.cuts(), { reductions: 2, collapses: 2 })
  })

  it("is not declared when a packet between was acknowledged", () => {
    const fixture = measured()
    for (let i = 0; i < 20; i++) fixture.send((100 + 50 * i) * ms, 1)
    fixture.answer(1_150 * ms, [
      [10, 10],
      [20, 20]
    ])
    assert.deepStrictEqual(fixture.outcome()["lost"], [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19])
    assert.strictEqual(fixture.recovery.counters.persistentCongestions, 0)
  })

  it("is not declared across a lost packet that proves late", () => {
    for (const [late, expected] of [
      [false, 1],
      [true, 0]
    ] as const) {
      const fixture = measured()
      for (const at of [100, 500, 900, 1_200, 1_200, 1_200]) fixture.send(at * ms, 1)
      fixture.answer(1_210 * ms, [[6, 6]])
      assert.deepStrictEqual(fixture.outcome(), { acked: [6], lost: [1, 2, 3] })
      if (late)
        fixture.answer(1_211 * ms, [
          [2, 2],
          [6, 6]
        ])
      assert.strictEqual(fixture.recovery.outcome.late.length, late ? 1 : 0)
      assert.strictEqual(fixture.recovery.handleTimeout(fixture.recovery.deadline()), "loss")
      assert.deepStrictEqual(fixture.outcome(), { lost: [4, 5] })
      assert.strictEqual(fixture.recovery.counters.persistentCongestions, expected)
    }
  })

  it("is not declared for a span of three probe timeouts, only beyond", () => {
    for (const [span, expected] of [
      [3 * 300, 0],
      [3 * 300 + 1, 1]
    ] as const) {
      const fixture = measured()
      fixture.send(100 * ms, 1)
      fixture.send((100 + span) * ms, 1)
      // Acknowledged 100 ms after it was sent: smoothed stays, variance falls to 37.5 ms, so that a probe timeout is
      // 250 ms …
      fixture.send((100 + span) * ms, 3)
      // … unless its sample is no sample: the largest reported number is not newly settled.
      fixture.recovery.beginAnswer((200 + span) * ms)
      fixture.recovery.acknowledge(5, 5, false)
      fixture.recovery.endAnswer((200 + span) * ms, 6, 0)
      assert.deepStrictEqual(fixture.outcome(), { acked: [5], lost: [1, 2] })
      assert.strictEqual(fixture.recovery.counters.persistentCongestions, expected, `${span} ms`)
    }
  })

  /**
   * Flights from 1 on, sent at these times, one of them a probe of the path; all are lost, but `late`, if there is one,
   * and 5. The sample is no sample, as above.
   */
  const lostWithProbe = (probe: number, times: ReadonlyArray<number>, late?: number): Fixture => {
    const fixture = measured()
    for (const [i, at] of times.entries()) {
      if (i + 1 === probe) fixture.recovery.handlePathProbeSent(at * ms, 1_452)
      else fixture.send(at * ms, 1)
    }
    const end = times.at(-1)!
    const answer = (low: number): void => {
      fixture.recovery.beginAnswer((end + 100) * ms)
      fixture.recovery.acknowledge(low, low, false)
      fixture.recovery.endAnswer((end + 100) * ms, fixture.recovery.nextNumber - 1, 0)
    }
    fixture.send(end * ms, 6)
    if (late !== undefined) {
      answer(5)
      assert.deepStrictEqual(fixture.outcome(), { acked: [5], lost: [1, 2] })
      answer(late)
      assert.deepStrictEqual(fixture.outcome(), { late: [late] })
    }
    answer(late === undefined ? times.length + 3 : 9)
    return fixture
  }

  it("neither begins nor ends with a lost probe of the path, and is not broken by one", () => {
    const collapses = (fixture: Fixture): number => fixture.cuts().collapses
    assert.strictEqual(collapses(lostWithProbe(1, [100, 2_000])), 0, "begins")
    assert.strictEqual(collapses(lostWithProbe(2, [100, 2_000])), 0, "ends")
    assert.strictEqual(collapses(lostWithProbe(2, [100, 500, 2_000])), 1, "in the middle")
    assert.strictEqual(collapses(lostWithProbe(0, [100, 2_000])), 1, "none")
    // The probe was sent long before what was lost after it; the flight before the probe had arrived.
    assert.strictEqual(
      collapses(lostWithProbe(2, [100, 200, 1_990, 1_995, 2_000, 2_000], 1)),
      0,
      "behind a late flight"
    )
    assert.strictEqual(collapses(lostWithProbe(0, [100, 200, 1_990, 1_995, 2_000, 2_000], 1)), 1, "and without a probe")
  })

  it("needs a round-trip sample from before the lost packets were sent", () => {
    const fixture = new Fixture()
    for (let i = 0; i < 40; i++) fixture.send(i * 500 * ms, 1)
    fixture.answer(19_600 * ms, [[39, 39]])
    assert.isAbove(fixture.recovery.outcome.lost.length, 30)
    assert.strictEqual(fixture.recovery.counters.persistentCongestions, 0)
  })

  it("restarts the minimum RTT", () => {
    const fixture = measured()
    fixture.send(100 * ms, 8)
    const probes = fixture.probesUntil(8_000 * ms)
    const last = fixture.recovery.nextNumber - 1
    fixture.answer(probes.at(-1)! + 300 * ms, [[last, last]])
    assert.strictEqual(fixture.recovery.counters.persistentCongestions, 1)
    assert.strictEqual(fixture.recovery.rtt.minimum, 300 * ms)
  })
})

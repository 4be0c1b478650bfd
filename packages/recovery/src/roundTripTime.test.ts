import { assert, describe, it } from "@effect/vitest"
import { RoundTripTime } from "./roundTripTime.ts"

const ms = 1_000

const measured = (...samples: ReadonlyArray<readonly [sample: number, delay: number]>): RoundTripTime => {
  const rtt = new RoundTripTime()
  for (const [sample, delay] of samples) rtt.update(sample, delay)
  return rtt
}

describe("RoundTripTime (RFC 9002 §5)", () => {
  it("assumes 333 ms, so that the first probe timeout is 999 ms", () => {
    assert.strictEqual(measured().probeTimeout(), 999 * ms)
  })

  it("takes the first sample whole, without the peer's delay", () => {
    const rtt = measured([100 * ms, 30 * ms])
    assert.deepStrictEqual([rtt.latest, rtt.minimum], [100 * ms, 100 * ms])
    assert.deepStrictEqual([rtt.smoothed, rtt.variance], [100 * ms, 50 * ms])
    assert.strictEqual(rtt.probeTimeout(), 300 * ms)
  })

  const table: ReadonlyArray<readonly [string, number, number, number, number, number]> = [
    // sample, delay → smoothed, variance, minimum after a first sample of 100 ms
    ["a larger one moves the average by an eighth", 180, 0, 110, 57.5, 100],
    ["the peer's delay comes off", 180, 40, 105, 47.5, 100],
    ["a delay down to the minimum comes off", 140, 40, 100, 37.5, 100],
    ["a delay that would fall below the minimum does not", 130, 40, 103.75, 45, 100],
    ["a smaller one lowers the minimum, and keeps its delay", 60, 10, 95, 47.5, 60]
  ]
  for (const [name, sample, delay, smoothed, variance, minimum] of table) {
    it(`second sample: ${name}`, () => {
      const rtt = measured([100 * ms, 0], [sample * ms, delay * ms])
      assert.strictEqual(rtt.latest, sample * ms)
      assert.deepStrictEqual([rtt.smoothed, rtt.variance, rtt.minimum], [smoothed * ms, variance * ms, minimum * ms])
    })
  }

  it("adds at least the granularity of 1 ms to a steady path's timeout", () => {
    const rtt = measured(...Array.from({ length: 200 }, () => [20 * ms, 0] as const))
    assert.isBelow(rtt.variance, 1)
    assert.strictEqual(rtt.probeTimeout(), 21 * ms)
  })

  it("restarts the minimum from the newest sample", () => {
    const rtt = measured([10 * ms, 0], [50 * ms, 0])
    rtt.restartMinimum()
    assert.strictEqual(rtt.minimum, 50 * ms)
  })
})

import { assert, describe, it } from "@effect/vitest"
import { random } from "../test/random.ts"
import { cleanPath, datagram, type Path, second, ToyLink } from "../test/toyLink.ts"
import { type CongestionController, type ControllerOptions } from "./congestion/CongestionController.ts"
import { Cubic } from "./congestion/cubic.ts"
import { NewReno } from "./congestion/newReno.ts"

const makers: ReadonlyArray<readonly [string, (options: ControllerOptions) => CongestionController]> = [
  ["CUBIC", (o) => new Cubic(o)],
  ["NewReno", (o) => new NewReno(o)]
]
const options: ControllerOptions = { datagramSize: datagram, largestWindow: 10_000 * datagram }

/** The share of the bottleneck that a sender with endless data takes from the second to the tenth second. */
const share = (controller: CongestionController, path: Path): number => {
  const link = new ToyLink(controller, path)
  link.offer(1e9)
  link.run(2 * second)
  const before = link.delivered
  link.run(10 * second)
  return ((link.delivered - before) * datagram * 8) / (8 * path.bitsPerSecond)
}

for (const [name, make] of makers) {
  describe(`${name} on a bottleneck of 50 Mbit/s`, () => {
    it("fills it at an RTT of 20 ms and a queue of one round trip", () => {
      assert.isAbove(share(make(options), cleanPath), 0.98)
    })

    it("fills it behind timers that are 1.5 ms late", () => {
      assert.isAbove(share(make(options), { ...cleanPath, timerLate: 1_500 }), 0.98)
    })

    it("carries 10 MB at an RTT of 10 ms within 10 s, though 30 % are lost for the first 2 s", () => {
      for (let seed = 1; seed <= 20; seed++) {
        const coin = random(seed)
        const drops = (now: number): boolean => now < 2 * second && coin() < 0.3
        const link = new ToyLink(make(options), { ...cleanPath, rtt: 10_000, inPairs: true, drops })
        const datagrams = Math.ceil(10e6 / datagram)
        link.offer(datagrams)
        link.run(60 * second, datagrams)
        assert.isBelow(link.now, 10 * second, `seed ${seed}`)
      }
    })

    for (const [portion, period] of [
      [3, 1_000],
      [30, 10_000],
      [60, 20_000],
      [100, 100_000]
    ] as const) {
      it(`stops growing when the application sends ${portion} datagrams every ${period / 1_000} ms`, () => {
        const link = new ToyLink(make(options), cleanPath)
        let mostInFlight = 0
        for (let now = 0; now < 20 * second; now += period / 10) {
          if (now % period === 0) link.offer(portion)
          link.run(now + period / 10)
          mostInFlight = Math.max(mostInFlight, link.recovery.inFlightBytes)
        }
        assert.isAbove(link.delivered, (0.99 * portion * 20 * second) / period)
        assert.strictEqual(link.recovery.counters.lost, 0)
        assert.isAtMost(link.recovery.controller.window, 2.2 * mostInFlight)
      })
    }

    it("sends few probes into an outage of a minute, and is back within seconds after it", () => {
      const link = new ToyLink(make(options), { ...cleanPath, drops: (now) => now > second && now < 61 * second })
      link.offer(1e9)
      link.run(61 * second)
      const { delivered } = link
      assert.isBelow(link.recovery.counters.probes, 30)
      link.run(65 * second)
      assert.isAbove((link.delivered - delivered) * datagram * 8, 10e6)
      assert.strictEqual(link.recovery.counters.persistentCongestions, 1)
      link.run(70 * second)
      const soFar = link.delivered
      link.run(72 * second)
      assert.isAbove(((link.delivered - soFar) * datagram * 8) / 2, 0.9 * 50e6)
    })
  })
}

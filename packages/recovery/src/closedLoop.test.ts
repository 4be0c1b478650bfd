import { assert, describe, it } from "@effect/vitest"
import type { TraceEvent } from "@pure-link/trace"
import { loadCubic, unchanged } from "../test/changedCubic.ts"
import { reducedAt, roundTrip, roundTrips } from "../test/controllerDrives.ts"
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

    it("lets no episode stand after a delay step of a second, and has its window back within two", () => {
      const delay = (now: number): number => (now >= 3 * second && now < 4 * second ? 380_000 : 0)
      const link = new ToyLink(make(noOverflow), { ...cleanPath, delay })
      link.offer(1e9)
      link.run(3 * second)
      const { window } = link.recovery.controller
      link.run(6 * second)
      const { counters, controller } = link.recovery
      assert.isAbove(counters.late, 50)
      assert.deepStrictEqual([link.dropped.size, counters.givenUp, counters.persistentCongestions], [0, 0, 0])
      assert.isAbove(counters.episodes, 0)
      assert.strictEqual(counters.undone, counters.episodes)
      assert.isAtLeast(controller.window, window)
      const { delivered } = link
      link.run(8 * second)
      assert.isAbove((link.delivered - delivered) * datagram * 8, 0.98 * 2 * 50e6)
    })

    for (const jitter of [3_000, 5_000, 10_000]) {
      it(`gives up nothing that arrives under jitter of ±${jitter / 1_000} ms, and fills the path`, () => {
        const coin = random(jitter)
        const link = new ToyLink(make(noOverflow), { ...cleanPath, delay: () => coin() * 2 * jitter })
        link.offer(20_000)
        link.run(10 * second, 20_000)
        const { counters } = link.recovery
        // 20,000 packets of 1,200 B take 3.84 s of the bottleneck.
        assert.isBelow(link.now, 4.2 * second)
        link.run(12 * second)
        assert.deepStrictEqual([link.dropped.size, counters.givenUp], [0, 0])
        assert.isAbove(counters.late, 0)
        assert.strictEqual(counters.undone, counters.episodes)
        assert.isBelow(counters.late, 100, "the thresholds follow")
      })
    }

    for (const displaced of [70_000, 100_000, 300_000]) {
      it(`learns that one packet in a hundred comes ${displaced / 1_000} ms late, at an RTT of 20 ms`, () => {
        const coin = random(displaced)
        const delay = (): number => (coin() < 0.01 ? displaced : 0)
        const link = new ToyLink(make(noOverflow), { ...cleanPath, delay })
        link.offer(1e9)
        link.run(4 * second)
        const { counters } = link.recovery
        const { givenUp, givenUpTooSoon, episodes, undone } = counters
        link.run(8 * second)
        assert.strictEqual(link.dropped.size, 0)
        assert.isAbove(givenUpTooSoon, 0)
        assert.deepStrictEqual([counters.givenUp, counters.givenUpTooSoon], [givenUp, givenUpTooSoon])
        assert.isAtMost(counters.episodes - counters.undone, episodes - undone + 1, "the last may still be open")
      })
    }

    it("undoes no episode with a true loss, and gives up nothing else, under loss and jitter", () => {
      let [undone, givenUp] = [0, 0]
      for (let seed = 1; seed <= 12; seed++) {
        const coin = random(seed)
        const watch = new EpisodeWatch()
        const link = new ToyLink(
          make(options),
          { ...cleanPath, drops: () => coin() < 0.01, delay: () => coin() * 6_000 * (1 + (seed % 3)) },
          { trace: { packets: true, emit: (event) => watch.see(event, link) } }
        )
        link.offer(1e9)
        link.run(5 * second)
        assert.deepStrictEqual(watch.wrongs, [], `seed ${seed}`)
        undone += link.recovery.counters.undone
        givenUp += link.recovery.counters.givenUp
      }
      assert.isAbove(undone, 10)
      assert.isAbove(givenUp, 300)
    })
  })
}

/** So small that the queue of `cleanPath` never overflows. */
const noOverflow: ControllerOptions = { datagramSize: datagram, largestWindow: 200 * datagram }

/** Knows what the path really lost, and holds it against what recovery concludes. */
class EpisodeWatch {
  readonly wrongs: Array<string> = []
  #episode: Array<number> = []
  #unsettled = 0

  see(event: TraceEvent, link: ToyLink): void {
    if (event._tag === "FlightLost") {
      if (this.#unsettled++ === 0) this.#episode = []
      this.#episode.push(event.number)
    } else if (event._tag === "FlightLate") this.#unsettled--
    else if (event._tag === "FlightGivenUp") {
      this.#unsettled--
      if (!link.dropped.has(event.number)) this.wrongs.push(`gave up ${event.number}, which arrives`)
    } else if (event._tag === "EpisodeUndone") {
      const guilty = this.#episode.filter((number) => link.dropped.has(number))
      if (guilty.length > 0) this.wrongs.push(`undid an episode that lost ${guilty}`)
    }
  }
}

describe("the idle fault, put back into CUBIC on purpose (spec §14.5)", () => {
  /** Idle counts from the last send alone: every round trip whose answer empties the window looks idle. */
  const fromLastSend = ["Math.max(this.#acknowledgedAt, this.#sentAt)", "this.#sentAt"] as const
  /** And it moves the recovery start, which nothing may move but a reduction. */
  const movingRecovery = [
    "if (idle > 0) this.#skipTime(idle, now)",
    "if (idle > 0) { this.#skipTime(idle, now); this.#state.recoveryStart += idle }"
  ] as const

  /** How many of 30 transfers of 10 MB at an RTT of 10 ms, with 30 % lost for the first 2 s, are not done in 10 s. */
  const failures = (make: (options: ControllerOptions) => CongestionController, inPairs: boolean): number => {
    let failed = 0
    for (let seed = 1; seed <= 30; seed++) {
      const coin = random(seed)
      const drops = (now: number): boolean => now < 2 * second && coin() < 0.3
      const link = new ToyLink(make(options), { ...cleanPath, bitsPerSecond: 100e6, rtt: 10_000, inPairs, drops })
      const datagrams = Math.ceil(10e6 / datagram)
      link.offer(datagrams)
      link.run(10 * second, datagrams)
      if (link.delivered < datagrams) failed++
    }
    return failed
  }

  it("pins the window of two packets if every second packet is acknowledged, and shows in no other way", async () => {
    const Faulty = await loadCubic([fromLastSend, movingRecovery])
    assert.isAbove(
      failures((o) => new Faulty(o), true),
      10
    )
    assert.strictEqual(
      failures((o) => new Faulty(o), false),
      0
    )
    const Same = await loadCubic(unchanged)
    assert.strictEqual(
      failures((o) => new Same(o), true),
      0
    )
  })

  it("stops the curve even where the recovery start stays, when an answer empties the window", async () => {
    const Faulty = await loadCubic([fromLastSend])
    const [faulty, same] = [new Faulty(options), new Cubic(options)].map((controller) => {
      const rtt = roundTrip(100_000)
      reducedAt(controller, 1_000, second, rtt)
      return roundTrips(controller, second, 92, rtt)[91]!
    })
    assert.closeTo(same!, 1_000, 1)
    assert.isBelow(faulty!, 900)
  })
})

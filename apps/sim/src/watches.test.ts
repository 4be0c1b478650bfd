import { assert, describe, it } from "@effect/vitest"
import type { Fate } from "@pure-link/virtual-net"
import { writeLongHeader, writeShortHeader } from "@pure-link/wire"
import { Digest } from "./digest.ts"
import { EpisodeWatch } from "./episodeWatch.ts"
import { FlowWatch } from "./flowWatch.ts"
import { FlightTruth, Truth } from "./flightTruth.ts"
import { PacingWatch } from "./pacingWatch.ts"
import { median, percentile } from "./percentile.ts"
import { niceTop, plot } from "./plot.ts"
import { FlowStore } from "./storeWatch.ts"
import { TimeSeries } from "./timeSeries.ts"
import { readOptions } from "./options.ts"
import { WindowWatch } from "./windowWatch.ts"

const run = 0x1234_5678_9abc_def0n
const from = { host: "sender-1", port: 1 }

/** What the network shows of packet `number`, one fate after the other. */
const pass = (
  truth: FlightTruth | FlowWatch,
  number: number,
  fates: ReadonlyArray<Fate>,
  options = { run, long: false }
): void => {
  const bytes = new Uint8Array(100)
  if (options.long) writeLongHeader(bytes, 0, 0, 7, options.run, number)
  else writeShortHeader(bytes, 0, 1, 7, Number(options.run >> 32n), number)
  for (const fate of fates) truth.handlePassage({ at: 0, fate, from, to: from, bytes })
}

describe("FlightTruth", () => {
  it("knows what was dropped at once, what arrived, and what is under way", () => {
    const truth = new FlightTruth()
    pass(truth, 0, ["sent"], { run, long: true })
    pass(truth, 1, ["sent", "lost"])
    pass(truth, 2, ["sent"])
    pass(truth, 3, ["sent", "queueDropped"])
    pass(truth, 2, ["arrived"])
    const found = [0, 1, 2, 3, 4].map((number) => truth.of(truth.indexOf(number)))
    assert.deepStrictEqual(found, [Truth.underWay, Truth.dropped, Truth.arrived, Truth.dropped, Truth.unknown])
  })

  it("a damaged packet is lost, unless its copy is whole", () => {
    const truth = new FlightTruth()
    pass(truth, 0, ["sent", "corrupted"])
    pass(truth, 1, ["sent", "corrupted", "duplicated"])
    assert.deepStrictEqual([truth.of(0), truth.of(1)], [Truth.dropped, Truth.underWay])
  })

  it("counts the datagrams that bring what had arrived, and no others", () => {
    const truth = new FlightTruth()
    pass(truth, 0, ["sent", "duplicated", "arrived"])
    pass(truth, 1, ["sent", "lost"])
    pass(truth, 2, ["sent", "arrived"])
    assert.strictEqual(truth.arrivedAgain, 0)
    pass(truth, 0, ["arrived"])
    pass(truth, 1, ["arrived"])
    assert.strictEqual(truth.arrivedAgain, 1)
  })

  it("counts on over runs, whose packets begin at 0 again", () => {
    const truth = new FlightTruth()
    const next = { run: run + (1n << 32n), long: true }
    pass(truth, 0, ["sent"])
    pass(truth, 1, ["sent", "lost"])
    pass(truth, 0, ["sent"], next)
    pass(truth, 0, ["arrived"])
    assert.strictEqual(truth.indexOf(0), 2)
    assert.deepStrictEqual([truth.of(0), truth.of(1), truth.of(2)], [Truth.arrived, Truth.dropped, Truth.underWay])
  })
})

describe("EpisodeWatch", () => {
  const flights = (...fates: ReadonlyArray<Fate>) => {
    const truth = new FlightTruth()
    fates.forEach((fate, number) => pass(truth, number, fate === "arrived" ? ["sent", "arrived"] : ["sent", fate]))
    return new EpisodeWatch(truth)
  }

  it("finds an undo in spite of a true loss", () => {
    const watch = flights("arrived", "lost")
    watch.handleLost(0)
    watch.handleLost(1)
    watch.handleSettled(0)
    watch.handleSettled(1)
    watch.handleUndone()
    assert.deepStrictEqual(watch.judge(), {
      episodes: 1,
      undone: 1,
      undoneWithTrueLoss: 1,
      standingWithoutLoss: 0
    })
  })

  it("finds an episode that stands though all of it arrived, and keeps episodes apart", () => {
    const watch = flights("arrived", "arrived", "lost")
    watch.handleLost(0)
    watch.handleReduced()
    watch.handleSettled(0)
    watch.handleLost(1)
    watch.handleSettled(1)
    watch.handleUndone()
    watch.handleLost(2)
    watch.handleSettled(2)
    assert.deepStrictEqual(watch.judge(), {
      episodes: 3,
      undone: 1,
      undoneWithTrueLoss: 0,
      standingWithoutLoss: 1
    })
  })
})

describe("EpisodeWatch and reductions", () => {
  it("without one there is nothing that could stand", () => {
    const truth = new FlightTruth()
    pass(truth, 0, ["sent", "arrived"])
    const watch = new EpisodeWatch(truth)
    watch.handleLost(0)
    watch.handleSettled(0)
    assert.deepStrictEqual(watch.judge(), { episodes: 1, undone: 0, undoneWithTrueLoss: 0, standingWithoutLoss: 0 })
  })
})

describe("EpisodeWatch and black holes", () => {
  const suspected = (truth: FlightTruth): EpisodeWatch => {
    const watch = new EpisodeWatch(truth)
    for (const number of [0, 1]) pass(truth, number, ["sent", "tooLarge"])
    pass(truth, 2, ["sent", "arrived"])
    for (const number of [0, 1, 2]) watch.handleLost(number)
    watch.handleReduced()
    watch.handleSettled(2)
    return watch
  }

  it("what vanished for its size is no true loss when its episode is undone", () => {
    const watch = suspected(new FlightTruth())
    watch.handleUndone()
    assert.deepStrictEqual(watch.judge(), { episodes: 1, undone: 1, undoneWithTrueLoss: 0, standingWithoutLoss: 0 })
  })

  it("a loss after it is an episode of its own, though nothing tells what became of the vanished", () => {
    const truth = new FlightTruth()
    const watch = suspected(truth)
    pass(truth, 3, ["sent", "lost"])
    watch.handleLost(3)
    watch.handleSettled(3)
    pass(truth, 4, ["sent", "arrived"])
    watch.handleLost(4)
    watch.handleReduced()
    watch.handleSettled(4)
    watch.handleUndone()
    assert.deepStrictEqual(watch.judge(), { episodes: 3, undone: 1, undoneWithTrueLoss: 0, standingWithoutLoss: 0 })
  })
})

describe("FlowWatch", () => {
  it("counts what was given up and arrived, before or after", () => {
    const watch = new FlowWatch("flow-1", readOptions([])!, new Digest(), new TimeSeries(), () => {})
    const fate = (number: number, ...fates: ReadonlyArray<Fate>): void => pass(watch, number, fates)
    for (const number of [0, 1, 2]) fate(number, "sent")
    fate(0, "arrived")
    fate(3, "sent", "lost")
    for (const number of [0, 1, 2, 3]) watch.emit({ _tag: "FlightGivenUp", at: 1, number })
    assert.strictEqual(watch.givenUpThoughArrived, 1)
    fate(1, "arrived")
    assert.strictEqual(watch.givenUpThoughArrived, 2)
    assert.strictEqual(watch.trulyLost, 4)
  })
})

describe("FlowStore", () => {
  it("knows how old those records are that were appended and are not stored", () => {
    const store = new FlowStore()
    store.appendedAt.push(1_000, 2_000, 3_000)
    store.records = 1
    assert.deepStrictEqual(store.agesAt(10_000), [8_000, 7_000])
  })
})

describe("PacingWatch", () => {
  const paced = (): PacingWatch => {
    const watch = new PacingWatch()
    watch.handleRate(0, 120_000, 100_000, false) // 1.5 B per µs: 2 ms are 3,000 B, so the bucket holds 10 datagrams
    return watch
  }

  it("allows a burst of ten datagrams, and then the rate", () => {
    const watch = paced()
    for (let i = 0; i < 10; i++) watch.handleSent(0, 1_200, true)
    for (let i = 1; i < 50; i++) watch.handleSent(i * 800, 1_200, true)
    assert.strictEqual(watch.datagramsOverPacing, 0)
    assert.strictEqual(watch.maxBurst, 11)
  })

  it("counts whole datagrams beyond the rule", () => {
    const watch = paced()
    for (let i = 0; i < 13; i++) watch.handleSent(0, 1_200, true)
    assert.strictEqual(watch.datagramsOverPacing, 3)
    assert.strictEqual(watch.maxBurst, 13)
  })

  it("a rate that rises brings its burst at once, as after an undone episode", () => {
    const watch = paced()
    for (let i = 0; i < 10; i++) watch.handleSent(0, 1_200, true)
    watch.handleRate(20_000, 1_200_000, 100_000, false) // 15 B per µs: 25 datagrams in 2 ms
    for (let i = 0; i < 25; i++) watch.handleSent(20_000, 1_200, true)
    assert.strictEqual(watch.datagramsOverPacing, 0)
    for (let i = 0; i < 2; i++) watch.handleSent(20_000, 1_200, true)
    assert.strictEqual(watch.datagramsOverPacing, 2)
  })

  it("a probe is not judged, but takes its bytes", () => {
    const watch = paced()
    for (let i = 0; i < 10; i++) watch.handleSent(0, 1_200, true)
    watch.handleSent(0, 1_200, false)
    assert.strictEqual(watch.datagramsOverPacing, 0)
    watch.handleSent(0, 1_200, true)
    assert.strictEqual(watch.datagramsOverPacing, 2)
  })
})

describe("WindowWatch", () => {
  it("compares windows that are a round trip apart", () => {
    const watch = new WindowWatch(undefined)
    for (let at = 0; at <= 10; at++) watch.handleWindow(at * 1_000, 10_000 + at * 1_000, 5_000)
    assert.closeTo(watch.fastestGrowth, 1.5, 1e-9)
    assert.deepStrictEqual([watch.smallest, watch.largest], [10_000, 20_000])
  })

  it("an undo is no growth, and after an idle time counting begins anew", () => {
    const watch = new WindowWatch(undefined)
    watch.handleWindow(0, 10_000, 1_000)
    watch.handleUndone()
    watch.handleWindow(2_000, 40_000, 1_000)
    assert.strictEqual(watch.fastestGrowth, 0)
    watch.handleWindow(4_000, 80_000, 1_000)
    assert.strictEqual(watch.fastestGrowth, 2)
    watch.resume(5_000_000)
    watch.handleWindow(5_020_000, 88_000, 1_000)
    assert.strictEqual(watch.fastestGrowth, 1.1)
  })

  it("growth after a reduction by a timer is measured from the reduced window", () => {
    const watch = new WindowWatch(undefined)
    watch.handleWindow(0, 100_000, 1_000)
    watch.handleReduced(5_000, 10_000)
    watch.handleWindow(6_500, 20_000, 1_000)
    assert.strictEqual(watch.fastestGrowth, 2)
    assert.strictEqual(watch.smallest, 10_000)
  })

  it("says when the window is back after a delay step", () => {
    const watch = new WindowWatch({ at: 1_000, rttMicros: 400_000, duration: 1_000 })
    watch.handleWindow(900, 50_000, 100)
    watch.handleWindow(1_500, 60_000, 100)
    watch.handleWindow(2_100, 20_000, 100)
    assert.isNull(watch.backAfterStepMillis)
    watch.handleWindow(3_000, 50_000, 100)
    watch.handleWindow(4_000, 60_000, 100)
    assert.strictEqual(watch.backAfterStepMillis, 1)
  })
})

describe("Digest", () => {
  const of = (...values: ReadonlyArray<number>): string => {
    const digest = new Digest()
    for (const value of values) digest.add(value)
    return digest.text
  }

  it("tells order, fractions, large numbers and signs apart", () => {
    const texts = [of(), of(1), of(1, 2), of(2, 1), of(0.5), of(2 ** 53 - 1), of(2 ** 53 - 2), of(-1), of(0)]
    assert.strictEqual(new Set(texts).size, texts.length)
    for (const text of texts) assert.match(text, /^[0-9a-f]{16}$/)
  })

  it("takes in every field of an event", () => {
    const event = { _tag: "PacketSent", at: 1, probe: false, run: 5n }
    const texts = [
      event,
      { ...event, at: 2 },
      { ...event, probe: true },
      { ...event, run: 6n },
      { ...event, _tag: "X" }
    ]
    const digests = texts.map((each) => {
      const digest = new Digest()
      digest.addEvent(each)
      return digest.text
    })
    assert.strictEqual(new Set(digests).size, digests.length)
  })

  it("refuses a field that it would pass over", () => {
    assert.throws(() => new Digest().addEvent({ at: 1, ranges: [1, 2] }), "ranges")
    assert.throws(() => new Digest().addEvent({ at: undefined }), "at")
  })
})

describe("statistics", () => {
  it("percentiles are nearest ranks, medians split in the middle", () => {
    const values = Array.from({ length: 100 }, (_, i) => i + 1)
    assert.deepStrictEqual(
      [0, 0.5, 0.99, 1].map((fraction) => percentile(values, fraction)),
      [1, 50, 99, 100]
    )
    assert.strictEqual(percentile([7], 0.99), 7)
    assert.isNaN(percentile([], 0.5))
    assert.strictEqual(median([5, 1, 9]), 5)
    assert.strictEqual(median([4, 1, 9, 2]), 3)
  })
})

describe("TimeSeries", () => {
  it("keeps sums and last windows when its slices grow longer", () => {
    const series = new TimeSeries()
    for (let ms = 0; ms < 40_000; ms++) series.addBytes(ms * 1_000, 125)
    series.setWindow(0, 10_000)
    series.setWindow(30_000_000, 20_000)
    const points = series.points(40_000_000, 4)
    assert.deepStrictEqual(
      points.map(({ goodput, seconds, window }) => [seconds, Number(goodput.toFixed(6)), window]),
      [
        [10, 1, 10_000],
        [20, 1, 10_000],
        [30, 1, 10_000],
        [40, 1, 20_000]
      ].map(([seconds, goodput, window]) => [seconds, goodput, window])
    )
  })
})

describe("plot", () => {
  it("draws a column per point on a scale that a person can read", () => {
    const point = (goodput: number) => ({ seconds: 1, goodput, window: 0, tcp: 0 })
    const lines = plot("goodput", "Mbit/s", [0, 20, 40].map(point), ({ goodput }) => goodput)
    assert.strictEqual(lines[0], "goodput, Mbit/s")
    assert.strictEqual(lines[1], "      40 │  █")
    assert.strictEqual(lines[6], "       0 │ ██")
    assert.deepStrictEqual([0.3, 47, 101, 0].map(niceTop), [0.3, 50, 150, 1])
  })
})

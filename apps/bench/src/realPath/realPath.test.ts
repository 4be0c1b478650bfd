import { assert, describe, it } from "@effect/vitest"
import { realPath } from "../commands/realPath.ts"
import { readFlags } from "../flags.ts"
import { Pattern } from "../pattern.ts"
import { UsageError } from "../usageError.ts"
import type { SendReport } from "../ends/sendEnd.ts"
import type { DirectionCounters } from "./emulator.ts"
import { pathArguments } from "./emulator.ts"
import { sentPackets } from "./namespace.ts"
import type { RealRun } from "./realRun.ts"
import { outboxMib, recordBytes, type Row, rowsOf } from "./rows.ts"
import { meanOfSeconds, shareOf } from "./series.ts"
import { simArguments } from "./simRun.ts"
import { judgeRow, judgeRun } from "./verdict.ts"

describe("seconds of a series", () => {
  it("counts the seconds between two moments, and no others", () => {
    assert.strictEqual(meanOfSeconds([100, 100, 40, 50, 100], 2, 4), 45)
  })

  it("counts a second without records", () => {
    assert.strictEqual(meanOfSeconds([0, 0, 30, 0, 1], 2, 4), 15)
  })

  it("knows nothing of a last second that may not be whole", () => {
    assert.isUndefined(meanOfSeconds([0, 0, 30, 30], 2, 4))
  })

  it("knows nothing of no time at all", () => {
    assert.isUndefined(meanOfSeconds([1, 2, 3, 4], 2, 2))
  })

  it("shares what both have", () => {
    assert.strictEqual(shareOf(30, 10), 0.75)
  })
})

describe("rows", () => {
  it("are each name at each round-trip time", () => {
    assert.deepStrictEqual(
      rowsOf(["clean", "share"], [20, 100], undefined).map(({ name, path }) => `${name}-${path.rttMillis}`),
      ["clean-20", "clean-100", "share-20", "share-100"]
    )
  })

  it("take another length where goodput is measured, but not where a share is", () => {
    assert.deepStrictEqual(
      rowsOf(["loss", "share"], [20], 8).map(({ endSeconds }) => endSeconds),
      [8, 60]
    )
  })

  it("mean the same path to the emulator and to the simulator", () => {
    const [row] = rowsOf(["loss"], [100], undefined)
    const emulated = pathArguments(row!.path).join(" ")
    const simulated = simArguments(row!, 7).join(" ")
    assert.strictEqual(emulated, "--rate 50M --rtt 100 --jitter 0 --loss 0.01")
    assert.strictEqual(
      simulated,
      "--rate 50 --rtt 100 --jitter 0 --loss 0.01 --size 1013 --seconds 22 --skip 2 --seed 7 --json"
    )
  })

  it("share the simulator's path with one TCP flow when they are about a share", () => {
    const [row] = rowsOf(["share"], [20], undefined)
    assert.include(simArguments(row!, 1).join(" "), "--tcp 1")
  })

  it("have an outbox of more than all that is under way and several batches of the feed", () => {
    for (const rtt of [20, 100]) {
      const [row] = rowsOf(["clean"], [rtt], undefined)
      const bytesOfPathAndQueue = (2 * 50e6 * rtt) / 8e3
      const { bytes } = new Pattern(recordBytes)
      assert.isAbove(outboxMib(row!.path) * 1_048_576, bytesOfPathAndQueue + 4 * bytes.length)
    }
  })
})

describe("a run", () => {
  const [clean] = rowsOf(["clean"], [20], 4)
  const whole = [9, 9, 40, 44, 1]

  it("says the goodput after its first two seconds", () => {
    const judged = judgeRun(clean!, 3, runOf({ ours: whole }))
    assert.strictEqual(judged.value, 42)
    assert.isTrue(judged.counts)
    assert.isNull(judged.why)
    assert.strictEqual(judged.seed, 3)
  })

  for (const spoilt of ["tun_ring_drops", "udp_rcvbuf_errors", "write_errors"] as const) {
    for (const direction of ["fwd", "rev"] as const) {
      it(`does not count with ${spoilt} ${direction}`, () => {
        const judged = judgeRun(clean!, 1, runOf({ ours: whole, [direction]: { [spoilt]: 1 } }))
        assert.isFalse(judged.counts)
        assert.isNotNull(judged.why)
      })
    }
  }

  it("does not count when one packet in a hundred was written late", () => {
    const late = (p99: number) =>
      judgeRun(clean!, 1, runOf({ ours: whole, rev: { late_us: { p50: 9, p99, max: 9e4 } } }))
    assert.isTrue(late(2_000).counts)
    assert.isFalse(late(2_001).counts)
  })

  it("counts with losses of the path", () => {
    assert.isTrue(judgeRun(clean!, 1, runOf({ ours: whole, fwd: { queue_drops: 9, random_drops: 9 } })).counts)
  })

  it("does not count when it ended early", () => {
    const judged = judgeRun(clean!, 1, runOf({ ours: [9, 9, 40] }))
    assert.isNull(judged.value)
    assert.isFalse(judged.counts)
  })

  it("does not count when a record was not as it was sent", () => {
    assert.isFalse(judgeRun(clean!, 1, runOf({ ours: whole, bad: 1 })).counts)
  })

  it("says the share from 20 s to 60 s beside TCP", () => {
    const [share] = rowsOf(["share"], [20], undefined)
    const steady = (early: number, later: number) => Array.from({ length: 61 }, (_, i) => (i < 20 ? early : later))
    const judged = judgeRun(share!, 1, runOf({ ours: steady(40, 12), theirs: steady(1, 36) }))
    assert.strictEqual(judged.value, 0.25)
    assert.strictEqual(judged.tcp_mbit_s, 36)
  })

  it("says no share when TCP ended early", () => {
    const [share] = rowsOf(["share"], [20], undefined)
    const judged = judgeRun(share!, 1, runOf({ ours: Array.from({ length: 61 }, () => 1), theirs: [1, 2] }))
    assert.isFalse(judged.counts)
  })
})

describe("a row", () => {
  const [clean, , share] = rowsOf(["clean", "jitter", "share"], [20], 4)
  const run = (row: Row, value: number, spoilt = false) =>
    judgeRun(row, 1, runOf({ ours: [0, 0, value, value, 0], ...(spoilt && { fwd: { tun_ring_drops: 2 } }) }))
  const runs = (...values: ReadonlyArray<number>) => values.map((value) => run(clean!, value))

  it("holds when the medians are as near as the bar", () => {
    const judged = judgeRow(clean!, runs(1, 97, 120), [100, 100, 90], 3)
    assert.strictEqual(judged.realMedian, 97)
    assert.strictEqual(judged.simMedian, 100)
    assert.strictEqual(judged.difference, -0.03)
    assert.isTrue(judged.holds)
  })

  it("misses when they are farther apart, slower or faster", () => {
    assert.isFalse(judgeRow(clean!, runs(96.9), [100], 1).holds)
    assert.isFalse(judgeRow(clean!, runs(103.1), [100], 1).holds)
  })

  it("leaves out runs that do not count, and tells of their losses", () => {
    const judged = judgeRow(clean!, [run(clean!, 10, true), ...runs(100)], [100], 1)
    assert.deepStrictEqual(judged.real, [100])
    assert.strictEqual(judged.tun_ring_drops, 2)
    assert.isTrue(judged.holds)
  })

  it("is undecided with too few runs, or without the simulator", () => {
    assert.isNull(judgeRow(clean!, runs(100), [100], 2).holds)
    assert.isNull(judgeRow(clean!, runs(100), [], 1).holds)
    assert.isNull(judgeRow(clean!, [], [], 1).realMedian)
  })

  it("holds a share by where it lies, whatever the simulator says", () => {
    const judged = (value: number) => {
      const [one] = runs(value)
      return judgeRow(share!, [one!], [0.9], 1)
    }
    assert.isTrue(judged(0.4).holds)
    assert.isTrue(judged(0.6).holds)
    assert.isFalse(judged(0.39).holds)
    assert.isFalse(judged(0.61).holds)
    assert.strictEqual(judged(0.5).difference, -0.4)
  })
})

describe("the command line", () => {
  const refused: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
    ["no folder of an emulator", []],
    ["a row that there is not", ["--path", "x", "--rows", "clean,dirty"]],
    ["a round-trip time that is no number", ["--path", "x", "--rtt", "20,long"]],
    ["no runs", ["--path", "x", "--runs", "0"]],
    ["runs too short to count anything", ["--path", "x", "--seconds", "2"]],
    ["a folder that has no emulator", ["--path", "/proc"]]
  ]
  for (const [what, argv] of refused) {
    it(`refuses ${what}`, () => {
      assert.throws(() => realPath.prepare(readFlags(realPath.flags, argv)), UsageError)
    })
  }
})

describe("the kernel's counters", () => {
  const table =
    "Inter-|   Receive                            |  Transmit\n" +
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n" +
    "    lo:     900      9    0    0    0     0          0         0      900      9    0\n" +
    "  r7a0:     100      1    0    0    0     0          0         0     4000      3    0\n"

  it("tell what left by a device, and not by others", () => {
    assert.strictEqual(sentPackets(table, "r7a0"), 3)
    assert.strictEqual(sentPackets(table, "a0"), 0)
    assert.strictEqual(sentPackets(table, "r8a0"), 0)
  })
})

interface Happened {
  readonly ours: ReadonlyArray<number>
  readonly theirs?: ReadonlyArray<number>
  readonly fwd?: Partial<DirectionCounters>
  readonly rev?: Partial<DirectionCounters>
  readonly bad?: number
}

const runOf = ({ bad = 0, fwd, ours, rev, theirs }: Happened): RealRun => ({
  ours,
  theirs,
  path: { fwd: { ...nothing, ...fwd }, rev: { ...nothing, ...rev } },
  send: { ...end, role: "send", appended: 0 },
  receive: { ...end, role: "recv", bad, after_skip: null }
})

const nothing: DirectionCounters = {
  in_pkts: 0,
  queue_drops: 0,
  random_drops: 0,
  reordered: 0,
  max_queue_bytes: 0,
  qdelay_mean_ms: 0,
  max_ip_len: 0,
  write_errors: 0,
  tun_ring_drops: 0,
  udp_rcvbuf_errors: 0,
  late_us: { p50: 0, p99: 0, max: 0 }
}

const end: Omit<SendReport, "role" | "appended"> = {
  messages: 0,
  bytes: 0,
  seconds: 0,
  mbit_s: 0,
  user_s: 0,
  sys_s: 0,
  rss_max_mib: 0,
  store_max_mib: 0,
  timer_late_max_ms: 0,
  bad: 0,
  packets: 0,
  answers: 0
}

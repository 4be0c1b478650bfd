import type { Check, Known, Row } from "./row.ts"

/**
 * All rows: the paths and bars of step 2 of the project, and what is told beside them. 50 Mbit/s, a queue of one RTT
 * and records of 1,013 B, if a row says nothing else.
 */

const goodput = (least: number): Check => ({
  what: "goodput, Mbit/s",
  of: (result) => result.goodput_mbit_s,
  judged: "median",
  least,
  digits: 3
})

const every = (what: string, of: Check["of"], bounds: { least?: number; most?: number }, digits = 0): Check => ({
  what,
  of,
  judged: "every",
  ...bounds,
  digits
})

/** Above the rate that is left after headers and 41 B of framing nothing honest can be measured, but for rounding. */
const largestGoodput = Number(((50 * (1_452 - 41)) / 1_480 + 0.005).toFixed(3))
const withinLimit = every("goodput at most, Mbit/s", (result) => result.goodput_mbit_s, { most: largestGoodput }, 3)
const partOfLimit: Check = {
  what: "goodput / limit by framing",
  of: ({ goodput_limit_mbit_s: limit, goodput_mbit_s }) => (limit === null ? null : goodput_mbit_s / limit),
  judged: "every",
  digits: 4
}
const framing = every("framing of a full packet, B", (result) => result.framing_bytes_full_packet, { most: 41 })
const noneGivenUp = every("arrived, and yet given up", (result) => result.given_up_though_arrived, { most: 0 })
const noPathDrops = every("dropped by the path", (result) => result.path_drops, { most: 0 })
const noWrongUndo = every("undone in spite of a true loss", (result) => result.undone_with_true_loss, { most: 0 })
const sameAs = (row: Row): Check => ({
  what: "goodput, Mbit/s",
  of: (result) => result.goodput_mbit_s,
  judged: "median",
  leastOf: { row, factor: 0.95 },
  digits: 3
})

const words = (text: string): ReadonlyArray<string> => text.trim().split(/ +/)
/** The same arguments for every seed. */
const always = (text: string): Row["argsOf"] => {
  const args = words(text)
  return () => args
}

/** When an event comes: `at` with seed 1, and spread evenly over `span` seconds more with the others. */
const later = (seed: number, at: number, span: number): string =>
  String(Number((at + span * (((seed - 1) * 0.618034) % 1)).toFixed(4)))

const withoutDetector = { what: "digest without the black-hole detector", args: ["--no-blackhole-detection"] }
const known = (quinn: string, ngtcp2: string, tcp: string): Known => ({ quinn, ngtcp2, tcp })
const drain = (rtt: number, more = ""): Row["argsOf"] => always(`--rtt ${rtt} --seconds 22 --skip 2 ${more}`)

const clean: ReadonlyArray<Row> = [
  {
    id: "clean-20",
    group: "clean",
    title: "RTT 20",
    argsOf: drain(20),
    seeds: 5,
    twin: withoutDetector,
    plotted: true,
    checks: [goodput(47.3), withinLimit, partOfLimit, framing],
    known: known("46.8", "47.2", "47.8")
  },
  {
    id: "clean-100",
    group: "clean",
    title: "RTT 100",
    argsOf: drain(100),
    seeds: 5,
    twin: withoutDetector,
    checks: [goodput(47.3), withinLimit, partOfLimit, framing],
    known: known("47.3", "47.2", "45.9")
  },
  ...(
    [
      [20, 3, known("1.9–2.2", "40", "44.1")],
      [100, 3, known("1.0–1.3", "29–47", "45.0")],
      [20, 5, known("–", "–", "–")],
      [20, 10, known("–", "–", "–")]
    ] as const
  ).map(([rtt, jitter, others]): Row => ({
    id: `jitter-${jitter}-rtt-${rtt}`,
    group: "clean",
    title: `RTT ${rtt}, jitter ± ${jitter} ms`,
    argsOf: drain(rtt, `--jitter ${jitter}`),
    seeds: 5,
    twin: withoutDetector,
    plotted: rtt === 20 && jitter === 3,
    checks: [goodput(47), withinLimit, partOfLimit, noneGivenUp, noPathDrops, noWrongUndo],
    known: others
  }))
]

const lossRow = (rtt: 20 | 100, loss: 1 | 5, checks: ReadonlyArray<Check>, others: Known, jitter = 0): Row => ({
  id: `loss-${loss}-rtt-${rtt}${jitter > 0 ? `-jitter-${jitter}` : ""}`,
  group: "loss",
  title: `RTT ${rtt}, loss ${loss} %${jitter > 0 ? `, jitter ± ${jitter} ms` : ""}`,
  argsOf: always(
    `--rtt ${rtt} --loss ${loss / 100} --seconds ${rtt === 20 ? 60 : 200} --skip 2 ` +
      (jitter > 0 ? `--jitter ${jitter}` : "")
  ),
  seeds: rtt === 20 ? 5 : 10,
  twin: withoutDetector,
  plotted: rtt === 20 && loss === 1,
  checks,
  known: others
})

const plainLoss = {
  1: {
    20: lossRow(20, 1, [goodput(6.6), noWrongUndo], known("6.5–7.6", "7.2–7.5", "6.0")),
    100: lossRow(100, 1, [goodput(1.28), noWrongUndo], known("1.3–1.6", "1.2–1.7", "1.3"))
  },
  5: {
    20: lossRow(20, 5, [goodput(2.65), noWrongUndo], known("2.8–3.1", "3.0–3.3", "1.8")),
    100: lossRow(100, 5, [goodput(0.52), noWrongUndo], known("0.5–0.6", "0.6–0.7", "0.6"))
  }
}
const jitteredLoss = (rtt: 20 | 100, loss: 1 | 5, others: Known): Row =>
  lossRow(rtt, loss, [sameAs(plainLoss[loss][rtt]), noWrongUndo], others, 3)

const loss: ReadonlyArray<Row> = [
  plainLoss[1][20],
  plainLoss[5][20],
  plainLoss[1][100],
  plainLoss[5][100],
  jitteredLoss(20, 1, known("1.6–2.1", "25.5 ¹", "6.3")),
  jitteredLoss(20, 5, known("1.4–1.7", "6.0–9.3 ¹", "–")),
  jitteredLoss(100, 1, known("0.8", "1.8–2.5 ¹", "–")),
  jitteredLoss(100, 5, known("0.4–0.5", "0.9–1.2 ¹", "–")),
  {
    id: "small-records",
    group: "loss",
    title: "RTT 100, records of 61 B, no loss",
    argsOf: drain(100, "--size 61"),
    seeds: 5,
    twin: withoutDetector,
    checks: [{ what: "records/s", of: (r) => r.records_per_s, judged: "median", least: 90_000, digits: 0 }, partOfLimit]
  }
]

const shareOf = (rtt: number, others: Known): Row => ({
  id: `share-rtt-${rtt}`,
  group: "share",
  title: `RTT ${rtt}, jitter ± 1 ms, one TCP CUBIC flow, 20–60 s`,
  argsOf: always(`--rtt ${rtt} --jitter 1 --tcp 1 --seconds 60 --skip 20`),
  seeds: 5,
  twin: withoutDetector,
  plotted: true,
  checks: [
    { what: "share", of: (result) => result.share, judged: "median", least: 0.4, most: 0.6, digits: 3 },
    noWrongUndo
  ],
  known: others
})

const share: ReadonlyArray<Row> = [
  shareOf(20, known("0.065", "0.47–0.52", "0.44–0.58")),
  shareOf(100, known("0.02", "0.56–0.61", "0.47–0.49"))
]

const stormChecks: ReadonlyArray<Check> = [
  every("done within, s", (result) => (result.complete ? result.virtual_seconds : null), { most: 10 }, 2),
  { what: "done, s", of: (result) => result.virtual_seconds, judged: "median", most: 5, digits: 2 }
]
const storm = "--rate 100 --rtt 10 --records 9872 --loss 0.3 --loss-until 2 --limit 120"

const recovery: ReadonlyArray<Row> = [
  {
    id: "storm",
    group: "recovery",
    title: "100 Mbit/s, RTT 10, 10 MB, 30 % loss for 2 s",
    argsOf: always(storm),
    seeds: 100,
    checks: stormChecks
  },
  {
    id: "storm-newreno",
    group: "recovery",
    title: "the same with NewReno, as the control",
    argsOf: always(`${storm} --controller newreno`),
    seeds: 100,
    checks: stormChecks
  },
  {
    id: "delay-step",
    group: "recovery",
    title: "RTT 20 → 400 ms for 1 s",
    argsOf: (seed) => words(`--rtt 20 --delay-step ${later(seed, 10, 1)}:400:1 --seconds 16`),
    seeds: 5,
    twin: withoutDetector,
    checks: [
      every("episodes that stand without a loss", (result) => result.episodes_standing_without_loss, { most: 0 }),
      // Of the median: a seed whose step meets a full queue has a true loss of its own to recover from.
      {
        what: "window back after, ms",
        of: (result) => result.window_back_after_step_ms,
        judged: "median",
        most: 2_000,
        digits: 0
      }
    ]
  },
  {
    id: "blackout",
    group: "recovery",
    title: "RTT 20, nothing passes for 60 s",
    argsOf: (seed) => words(`--rtt 20 --blackout ${later(seed, 10, 1)}:60 --seconds 76`),
    seeds: 5,
    checks: [
      every("first STORED after, ms", (result) => result.stored_after_blackout_ms, { most: 3_000 }),
      every("packets after the first PTO", (result) => result.packets_into_blackout_after_first_pto, { most: 30 })
    ]
  }
]

const size: ReadonlyArray<Row> = [
  {
    id: "blackhole",
    group: "size",
    title: "RTT 20, above 1,300 B all vanishes once it is used, 3,000 records",
    argsOf: (seed) => {
      const at = seed === 1 ? "growth" : `growth+${later(seed, 0, 0.06)}`
      return words(`--rtt 20 --blackhole-at ${at} --blackhole-mtu 1300 --records 3000 --limit 120`)
    },
    seeds: 5,
    checks: [every("all stored after, ms", (result) => result.all_stored_after_blackhole_ms, { most: 1_200 })]
  },
  {
    id: "no-false-blackhole",
    group: "size",
    title: "200 Mbit/s, RTT 80, loss 0.5 %, 5 min",
    argsOf: always("--rate 200 --rtt 80 --loss 0.005 --seconds 300"),
    seeds: 5,
    twin: withoutDetector,
    checks: [
      every("smallest size after growth, B", (result) => result.smallest_datagram_size_after_growth, {
        least: 1_452,
        most: 1_452
      })
    ]
  }
]

const idleRow = (id: string, title: string, args: (seed: number) => string): Row => ({
  id,
  group: "time",
  title,
  argsOf: (seed) => words(`--rtt 20 ${args(seed)}`),
  seeds: 5,
  twin: withoutDetector,
  checks: [
    every("window growth per RTT", (result) => result.max_window_growth_per_rtt, { most: 1.5 }, 3),
    every("datagrams beyond pacing", (result) => result.max_burst_over_pacing, { most: 0 })
  ]
})

const time: ReadonlyArray<Row> = [
  idleRow(
    "idle",
    "RTT 20, 10 minutes of idle, then a drain",
    (seed) => `--idle ${later(seed, 10, 1)}:600 --seconds 620`
  ),
  idleRow(
    "idle-slow-start",
    "idle in slow start, large queue",
    (seed) => `--idle ${later(seed, 0.05, 0.3)}:600 --queue 10000000 --seconds 605`
  ),
  {
    id: "displacement",
    group: "time",
    title: "1 Gbit/s, RTT 20, 1 % of packets 20 ms late",
    argsOf: always("--rate 1000 --rtt 20 --displace 20:0.01 --seconds 2"),
    seeds: 5,
    twin: withoutDetector,
    checks: [every("packets dropped as too old", (result) => result.dropped_too_old, { most: 0 }), noneGivenUp]
  },
  {
    id: "repeat",
    group: "time",
    title: "the same seed twice: jitter, loss, duplicates, damage, TCP",
    argsOf: always("--jitter 3 --loss 0.005 --duplicate 0.01 --corrupt 0.001 --tcp 1 --seconds 10"),
    seeds: 1,
    twin: { what: "digest of the second run", args: [] },
    checks: []
  },
  {
    id: "wall-time",
    group: "time",
    title: "30,000 records, RTT 20",
    argsOf: always("--rtt 20 --records 30000"),
    seeds: 5,
    twin: withoutDetector,
    alone: true,
    checks: [{ what: "wall time, s", of: (result) => result.wall_seconds, judged: "median", most: 3, digits: 2 }]
  }
]

const latency: ReadonlyArray<Row> = (
  [
    [20, 1, known("10 / 50 / 70", "10 / 40 / 53", "– / 51 / –")],
    [20, 5, known("10 / 84–96 / 123–137", "10 / 71 / 111", "– / 200 / –")],
    [100, 1, known("50 / 180–196 / 236–282", "50 / 174 / 211", "– / 172 / –")],
    [100, 5, known("71–110 / 406–547 / 491–686", "72 / 292 / 367", "– / 437 / –")]
  ] as const
).map(([rtt, percent, others]): Row => ({
  id: `latency-loss-${percent}-rtt-${rtt}`,
  group: "latency",
  title: `RTT ${rtt}, loss ${percent} %`,
  argsOf: always(`--rtt ${rtt} --loss ${percent / 100} --every 20 --seconds 60 --skip 1`),
  seeds: 5,
  twin: withoutDetector,
  checks: [
    { what: "p50, ms", of: (result) => result.latency_ms?.p50 ?? null, judged: "median", digits: 1 },
    { what: "p99, ms", of: (result) => result.latency_ms?.p99 ?? null, judged: "median", digits: 1 },
    { what: "max, ms", of: (result) => result.latency_ms?.max ?? null, judged: "median", digits: 1 }
  ],
  known: others
}))

export const rows: ReadonlyArray<Row> = [...clean, ...loss, ...share, ...recovery, ...size, ...time, ...latency]

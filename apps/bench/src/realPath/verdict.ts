import { median, rounded } from "../verdict.ts"
import type { DirectionCounters, PathCounters } from "./emulator.ts"
import type { RealRun } from "./realRun.ts"
import { recordBytes, type Row } from "./rows.ts"
import { meanOfSeconds, shareOf } from "./series.ts"

/**
 * What a run says and whether it counts, and what a row of runs says beside the simulator. Losses that are not the
 * path's, of the emulator's own rings or of a full socket buffer, spoil a run.
 */

export interface JudgedRun {
  readonly seed: number
  /** Mbit/s, or the share; null when the run was too short to know. */
  readonly value: number | null
  readonly tcp_mbit_s?: number
  readonly counts: boolean
  /** Why it does not count. */
  readonly why: string | null
  readonly tun_ring_drops: number
  readonly udp_rcvbuf_errors: number
  readonly late_us: { readonly p99: number; readonly max: number }
  readonly queue_drops: number
  readonly random_drops: number
  readonly reordered: number
  readonly qdelay_mean_ms: number
  readonly max_ip_len: number
  readonly packets: number
  readonly answers: number
  readonly timer_late_max_ms: { readonly send: number; readonly receive: number }
}

export const judgeRun = (row: Row, seed: number, run: RealRun): JudgedRun => {
  const { fwd, rev } = run.path
  const both = (of: (direction: DirectionCounters) => number): number => of(fwd) + of(rev)
  const ours = meanOfSeconds(run.ours, row.skipSeconds, row.endSeconds)
  const theirs = run.theirs === undefined ? undefined : meanOfSeconds(run.theirs, row.skipSeconds, row.endSeconds)
  const value = row.name === "share" ? bothOrNone(ours, theirs) : ours
  const why = whyNot(run, value)
  return {
    seed,
    value: value === undefined ? null : rounded(value, 4),
    ...(theirs !== undefined && { tcp_mbit_s: rounded(theirs, 4) }),
    counts: why === null,
    why,
    tun_ring_drops: both(({ tun_ring_drops }) => tun_ring_drops),
    udp_rcvbuf_errors: both(({ udp_rcvbuf_errors }) => udp_rcvbuf_errors),
    late_us: lateness(run.path),
    queue_drops: fwd.queue_drops,
    random_drops: both(({ random_drops }) => random_drops),
    reordered: both(({ reordered }) => reordered),
    qdelay_mean_ms: fwd.qdelay_mean_ms,
    max_ip_len: fwd.max_ip_len,
    packets: run.send.packets,
    answers: run.receive.answers,
    timer_late_max_ms: { send: run.send.timer_late_max_ms, receive: run.receive.timer_late_max_ms }
  }
}

const bothOrNone = (ours: number | undefined, theirs: number | undefined): number | undefined =>
  ours === undefined || theirs === undefined ? undefined : shareOf(ours, theirs)

const lateness = ({ fwd, rev }: PathCounters) => ({
  p99: Math.max(fwd.late_us.p99, rev.late_us.p99),
  max: Math.max(fwd.late_us.max, rev.late_us.max)
})

/** The emulator may write one packet in a hundred this late; beyond that the path was not what it was to be. */
const latestMicros = 2_000

const whyNot = ({ path, receive }: RealRun, value: number | undefined): string | null => {
  const sum = (of: (direction: DirectionCounters) => number): number => of(path.fwd) + of(path.rev)
  if (sum(({ tun_ring_drops }) => tun_ring_drops) > 0) return "the emulator was too slow: its rings dropped packets"
  if (sum(({ udp_rcvbuf_errors }) => udp_rcvbuf_errors) > 0) return "a socket's receive buffer was full"
  if (sum(({ write_errors }) => write_errors) > 0) return "the emulator could not write packets"
  const { p99 } = lateness(path)
  if (p99 > latestMicros) return `the machine stood still: one packet in a hundred was ${p99} µs late or more`
  if (receive.bad > 0) return `${receive.bad} records were not as they were sent`
  return value === undefined ? "it ended early" : null
}

export interface JudgedRow {
  readonly event: "row"
  readonly row: string
  readonly rtt: number
  readonly jitter_ms: number
  readonly loss: number
  readonly rate_mbit_s: number
  readonly record_bytes: number
  readonly counted_s: readonly [number, number]
  /** Mbit/s or shares of the runs that count, in their order. */
  readonly real: ReadonlyArray<number>
  readonly realMedian: number | null
  readonly sim: ReadonlyArray<number>
  readonly simMedian: number | null
  /** Of the real median from the simulator's, as a fraction of that; of shares the plain difference. */
  readonly difference: number | null
  readonly bar: number | readonly [number, number]
  /** Null when too few runs count. */
  readonly holds: boolean | null
  readonly tun_ring_drops: number
  readonly udp_rcvbuf_errors: number
  /** The worst of all runs. */
  readonly late_us: { readonly p99: number; readonly max: number }
  readonly runs: ReadonlyArray<JudgedRun>
}

export const judgeRow = (
  row: Row,
  runs: ReadonlyArray<JudgedRun>,
  sim: ReadonlyArray<number>,
  needed: number
): JudgedRow => {
  const real = runs.flatMap(({ counts, value }) => (counts && value !== null ? [value] : []))
  const realMedian = real.length === 0 ? null : rounded(median(real), 4)
  const simMedian = sim.length === 0 ? null : rounded(median(sim), 4)
  const difference = realMedian === null || simMedian === null ? null : differenceOf(row, realMedian, simMedian)
  const sum = (of: (run: JudgedRun) => number): number => runs.reduce((total, run) => total + of(run), 0)
  return {
    event: "row",
    row: row.name,
    rtt: row.path.rttMillis,
    jitter_ms: row.path.jitterMillis,
    loss: row.path.loss,
    rate_mbit_s: row.path.rateMbit,
    record_bytes: recordBytes,
    counted_s: [row.skipSeconds, row.endSeconds],
    real,
    realMedian,
    sim,
    simMedian,
    difference,
    bar: row.bar,
    holds: real.length < needed || realMedian === null ? null : holds(row, realMedian, difference),
    tun_ring_drops: sum(({ tun_ring_drops }) => tun_ring_drops),
    udp_rcvbuf_errors: sum(({ udp_rcvbuf_errors }) => udp_rcvbuf_errors),
    late_us: {
      p99: Math.max(0, ...runs.map(({ late_us }) => late_us.p99)),
      max: Math.max(0, ...runs.map(({ late_us }) => late_us.max))
    },
    runs
  }
}

const differenceOf = ({ name }: Row, real: number, sim: number): number =>
  rounded(name === "share" ? real - sim : real / sim - 1, 4)

/** Faster than the simulator by more than the bar is as far off as slower. */
const holds = ({ bar }: Row, real: number, difference: number | null): boolean | null => {
  if (typeof bar !== "number") return real >= bar[0] && real <= bar[1]
  return difference === null ? null : Math.abs(difference) <= bar
}

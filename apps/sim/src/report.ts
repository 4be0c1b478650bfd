import type { SimOptions } from "./options.ts"
import { plot } from "./plot.ts"
import type { SimResult } from "./result.ts"
import type { Point } from "./timeSeries.ts"

/** A run as a person reads it: what counts first, then how it came about, then window and goodput over time. */
export const report = (options: SimOptions, result: SimResult, points: ReadonlyArray<Point>): string => {
  const sections = [...rowsOf(options, result)].map(([name, value]) => `${name.padEnd(22)}${value}`)
  const plots = [
    ...plot("goodput", "Mbit/s", points, (point) => point.goodput),
    "",
    ...(options.tcpFlows > 0 ? [...plot("TCP", "Mbit/s", points, (point) => point.tcp), ""] : []),
    ...plot("congestion window", "KiB", points, (point) => point.window / 1_024)
  ]
  return [pathLine(options), "", ...sections, "", ...plots].join("\n")
}

/** Columns of the plots. */
export const plotPoints = 70

const pathLine = (options: SimOptions): string => {
  const { burstLoss, flows, jitterMicros, loss, queueBytes, rateBitsPerSecond, rttMicros, seed, tcpFlows } = options
  const parts = [
    `${rateBitsPerSecond / 1e6} Mbit/s`,
    `RTT ${rttMicros / 1_000} ms`,
    `queue ${grouped(queueBytes)} B`,
    jitterMicros > 0 ? `jitter ± ${jitterMicros / 1_000} ms` : "",
    loss > 0 ? `loss ${Number((100 * loss).toPrecision(3))} %` : "",
    burstLoss === undefined ? "" : "loss in bursts",
    flows > 1 ? `${flows} flows` : "",
    tcpFlows > 0 ? `${tcpFlows} TCP` : "",
    `seed ${seed}`
  ]
  return parts.filter((part) => part !== "").join(", ")
}

function* rowsOf(options: SimOptions, result: SimResult): Generator<readonly [string, string]> {
  const { latency_ms: latency } = result
  yield [
    "goodput",
    `${result.goodput_mbit_s.toFixed(3)} Mbit/s, ${grouped(Math.round(result.records_per_s))} records/s`
  ]
  const all = result.complete === false ? " (NOT all in time)" : ""
  yield ["records stored", `${grouped(result.records_stored)} of ${options.recordBytes} B${all}`]
  yield ["time", `${result.virtual_seconds} s virtual, ${result.wall_seconds} s wall`]
  if (latency) yield ["latency", `p50 ${latency.p50} ms, p99 ${latency.p99} ms, max ${latency.max} ms`]
  if (result.share !== null) yield ["share", `${result.share}, TCP ${result.tcp_goodput_mbit_s} Mbit/s`]
  yield ["packets", `${grouped(result.packets_sent)} of at most ${result.datagram_size} B (${framing(result)})`]
  const { declared_lost, late, path_drops, queue_drops, truly_lost } = result
  yield ["dropped", `${grouped(queue_drops)} by the queue, ${grouped(path_drops)} by the path${others(result)}`]
  yield ["judged lost", `${grouped(declared_lost)}: ${grouped(late)} late, ${grouped(truly_lost)} truly`]
  const { episodes, undone, undone_with_true_loss: wrongly } = result
  yield ["episodes", `${episodes}, ${undone} undone${wrongly > 0 ? `, ${wrongly} OF THEM WRONGLY` : ""}`]
  yield ["window", `${grouped(result.smallest_window)} to ${grouped(result.largest_window)} B`]
  yield ["growth per RTT", `at most ${result.max_window_growth_per_rtt} ×`]
  yield ["bursts", `at most ${result.max_burst} in 1 ms, ${result.max_burst_over_pacing} beyond pacing`]
  yield* aftermath(result)
  yield ["digest", result.trace_digest]
}

function* aftermath(result: SimResult): Generator<readonly [string, string]> {
  const rows = [
    ["after the delay step", "window back after", result.window_back_after_step_ms],
    ["after the blackout", "first STORED after", result.stored_after_blackout_ms],
    ["after the black hole", "all stored after", result.all_stored_after_blackhole_ms]
  ] as const
  for (const [name, what, millis] of rows) if (millis !== null) yield [name, `${what} ${millis} ms`]
  const probes = result.packets_into_blackout_after_first_pto
  if (probes !== null) yield ["into the blackout", `${probes} packets after the first probe timeout`]
}

const framing = (result: SimResult): string =>
  result.framing_bytes_full_packet > 0 ? `framing ${result.framing_bytes_full_packet} B when full` : "none of them full"

const others = ({ other_drops }: SimResult): string =>
  other_drops > 0 ? `, ${grouped(other_drops)} by its events` : ""

export const grouped = (value: number): string => String(value).replace(/\B(?=(\d{3})+$)/g, ",")

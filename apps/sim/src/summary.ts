import { type Bytes, type Micros, never } from "@pure-link/wire"
import type { FlowWatch } from "./flowWatch.ts"
import { percentile } from "./percentile.ts"
import type { SimResult } from "./result.ts"
import type { Observation } from "./simulation.ts"

/** Sums up what was seen in a run. Counts are those of all flows together, extremes those of the worst. */
export const summarize = (observation: Observation, wallSeconds: number): SimResult => {
  const { complete, digest, flows, options, series, store } = observation
  const end = endOf(observation)
  const sum = (of: (flow: FlowWatch) => number) => flows.reduce((total, flow) => total + of(flow), 0)
  const most = (of: (flow: FlowWatch) => number) => Math.max(...flows.map(of))
  const counted = countedBytes(observation)
  const seconds = Math.max(end - options.skip, 1) / 1e6
  const episodes = flows.map((flow) => flow.episodes.judge())
  const ofEpisodes = (of: (verdicts: (typeof episodes)[number]) => number) =>
    episodes.reduce((total, verdicts) => total + of(verdicts), 0)
  const datagramSize = Math.min(...flows.map((flow) => flow.datagramSize))
  const fullPackets = sum((flow) => flow.fullPackets)
  const framing = sum((flow) => flow.framingSum) / Math.max(1, fullPackets)
  const largestDatagram = most((flow) => flow.largestDatagram)
  const afterGrowth = flows.flatMap((flow) => flow.smallestAfterGrowth ?? [])
  return {
    goodput_mbit_s: rounded((8 * counted) / seconds / 1e6, 4),
    goodput_limit_mbit_s:
      fullPackets === 0 ? null : rounded(limitOf(options.rateBitsPerSecond, largestDatagram, framing), 4),
    records_per_s: rounded(countedRecords(observation, counted) / seconds, 1),
    records_stored: store.flows.reduce((total, flow) => total + flow.records, 0),
    complete,
    virtual_seconds: rounded(end / 1e6, 6),
    wall_seconds: rounded(wallSeconds, 3),
    packets_sent: sum((flow) => flow.packetsSent),
    declared_lost: sum((flow) => flow.declaredLost),
    truly_lost: sum((flow) => flow.trulyLost),
    given_up_though_arrived: sum((flow) => flow.givenUpThoughArrived),
    queue_drops: sum((flow) => flow.queueDrops),
    path_drops: sum((flow) => flow.pathDrops),
    other_drops: sum((flow) => flow.otherDrops),
    late: sum((flow) => flow.late),
    episodes: ofEpisodes((verdicts) => verdicts.episodes),
    undone: ofEpisodes((verdicts) => verdicts.undone),
    undone_with_true_loss: ofEpisodes((verdicts) => verdicts.undoneWithTrueLoss),
    episodes_standing_without_loss: ofEpisodes((verdicts) => verdicts.standingWithoutLoss),
    smallest_window: Math.min(...flows.map((flow) => flow.window.smallest)),
    largest_window: most((flow) => flow.window.largest),
    max_burst: most((flow) => flow.pacing.maxBurst),
    max_burst_over_pacing: most((flow) => flow.pacing.datagramsOverPacing),
    max_window_growth_per_rtt: rounded(
      most((flow) => flow.window.fastestGrowth),
      4
    ),
    datagram_size: datagramSize,
    smallest_datagram_size_after_growth: afterGrowth.length === 0 ? null : Math.min(...afterGrowth),
    framing_bytes_full_packet: most((flow) => flow.framingBytes),
    framing_bytes_mean: rounded(framing, 3),
    latency_ms: latency(observation),
    ...shares(observation, counted, seconds),
    ...aftermath(observation),
    dropped_too_old: tooOld(observation),
    trace_digest: digest,
    ...(options.series > 0 && { series: series.points(end, options.series) })
  }
}

/** Mbit/s of record bytes at a full bottleneck, whose packets have 28 B of IP and UDP headers besides. */
const limitOf = (rateBitsPerSecond: number, datagramSize: Bytes, framing: Bytes): number =>
  ((rateBitsPerSecond / 1e6) * (datagramSize - framing)) / (datagramSize + 28)

/** Record bytes that were first received from `skip` on: stored since, without those held then, with those held now. */
const countedBytes = ({ heldBytes, store }: Observation): Bytes =>
  store.flows.reduce((total, flow) => total + flow.countedBytes, heldBytes.atEnd - heldBytes.atSkip)

const countedRecords = ({ options, store }: Observation, counted: Bytes): number =>
  options.recordBytes > 0
    ? counted / options.recordBytes
    : store.flows.reduce((total, flow) => total + flow.countedRecords, 0)

/** A run of records ends when the last was stored; what comes later is only its echo. */
export const endOf = ({ complete, end, store }: Observation): Micros =>
  complete === true ? Math.max(...store.flows.map((flow) => flow.lastAt)) : end

/** Records that are not stored when the run ends count with their age: they took longer. */
const latency = ({ end, options, store }: Observation): SimResult["latency_ms"] => {
  if (options.every === 0) return null
  const latencies = store.flows.flatMap((flow) => [...flow.latencies, ...flow.agesAt(end)])
  const sorted = Float64Array.from(latencies).sort()
  if (sorted.length === 0) return null
  const millis = (micros: number) => rounded(micros / 1_000, 3)
  return {
    p50: millis(percentile(sorted, 0.5)),
    p99: millis(percentile(sorted, 0.99)),
    max: millis(sorted[sorted.length - 1]!)
  }
}

/** Goodput of one flow of ours among one of ours and one of TCP's, on average. */
const shares = ({ options, tcp }: Observation, counted: number, seconds: number) => {
  if (options.tcpFlows === 0) return { share: null, tcp_goodput_mbit_s: null }
  const ours = counted / options.flows
  const theirs = tcp.countedBytes / options.tcpFlows
  return {
    share: rounded(ours / (ours + theirs), 4),
    tcp_goodput_mbit_s: rounded((8 * tcp.countedBytes) / seconds / 1e6, 4)
  }
}

/** What came after the events of the path; null for those that were not asked for. */
const aftermath = (observation: Observation) => {
  const { blackHoleAt, flows, options, store } = observation
  const millis = (at: Micros, since: Micros) => (at === never ? null : rounded((at - since) / 1_000, 3))
  const { blackout } = options
  const lastStored = Math.max(...store.flows.map((flow) => flow.lastAt))
  const back = flows.map((flow) => flow.window.backAfterStepMillis)
  return {
    window_back_after_step_ms: back.includes(null) ? null : Math.max(...(back as Array<number>)),
    stored_after_blackout_ms:
      blackout === undefined
        ? null
        : millis(Math.max(...flows.map((flow) => flow.storedAfterBlackoutAt)), blackout.at + blackout.duration),
    packets_into_blackout_after_first_pto:
      blackout === undefined ? null : flows.reduce((total, flow) => total + flow.packetsIntoBlackout, 0),
    all_stored_after_blackhole_ms:
      options.blackHole === undefined || blackHoleAt === never || observation.complete !== true
        ? null
        : millis(lastStored, blackHoleAt)
  }
}

/** Packets that the receiver refused as below its replay window, or for want of room for their acknowledgement. */
const tooOld = ({ flows, receiver: { receiver } }: Observation): number => {
  const dropped = (reason: string) => receiver?.[`dropped: ${reason}`] ?? 0
  const again = flows.reduce((total, { truth }) => total + truth.arrivedAgain, 0)
  return Math.max(0, dropped("replayed") - again) + dropped("limit")
}

const rounded = (value: number, digits: number): number => Number(value.toFixed(digits))

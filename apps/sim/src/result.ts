import type { Point } from "./timeSeries.ts"

/**
 * What a run came to. Field names and units are those of the JSON result, which scripts rely on;
 * docs/measurements/README.md tells what each means.
 */
export interface SimResult {
  readonly goodput_mbit_s: number
  /**
   * What the bottleneck leaves of its rate to record bytes, by the mean framing of this run's full packets; null when
   * there were none.
   */
  readonly goodput_limit_mbit_s: number | null
  readonly records_per_s: number
  readonly records_stored: number
  /** Whether all records were stored in time; null with --seconds, whose records have no end. */
  readonly complete: boolean | null
  readonly virtual_seconds: number
  readonly wall_seconds: number
  readonly packets_sent: number
  readonly declared_lost: number
  readonly truly_lost: number
  readonly given_up_though_arrived: number
  readonly queue_drops: number
  readonly path_drops: number
  readonly other_drops: number
  readonly late: number
  readonly episodes: number
  readonly undone: number
  readonly undone_with_true_loss: number
  readonly episodes_standing_without_loss: number
  readonly smallest_window: number
  readonly largest_window: number
  readonly max_burst: number
  readonly max_burst_over_pacing: number
  readonly max_window_growth_per_rtt: number
  readonly datagram_size: number
  readonly smallest_datagram_size_after_growth: number | null
  readonly framing_bytes_full_packet: number
  readonly framing_bytes_mean: number
  readonly latency_ms: { readonly p50: number; readonly p99: number; readonly max: number } | null
  readonly share: number | null
  readonly tcp_goodput_mbit_s: number | null
  readonly window_back_after_step_ms: number | null
  readonly stored_after_blackout_ms: number | null
  readonly packets_into_blackout_after_first_pto: number | null
  readonly all_stored_after_blackhole_ms: number | null
  readonly dropped_too_old: number
  readonly trace_digest: string
  readonly series?: ReadonlyArray<Point>
}

import type { Allocation } from "../allocationWatch.ts"
import type { Window } from "../meter.ts"
import type { EndMeasurement } from "../sample.ts"
import type { ReceiveOptions, ReceiveReport } from "./receiveEnd.ts"
import type { SendOptions, SendReport } from "./sendEnd.ts"

/**
 * What a command and the processes of its ends tell each other.
 */

export type EndOrder =
  | { readonly role: "recv"; readonly options: ReceiveOptions }
  | { readonly role: "send"; readonly options: SendOptions }
  | { readonly role: "floor-recv"; readonly options: { readonly size: number } }
  | { readonly role: "floor-send"; readonly options: { readonly size: number; readonly port: number } }

/** How an end is to be started. */
export interface EndSetting {
  readonly order: EndOrder
  /** When it measures itself; not at all without. */
  readonly window?: Window | undefined
  readonly allocations?: boolean | undefined
}

export type EndReport = ReceiveReport | SendReport | FloorReport

export interface FloorReport {
  readonly role: "floor"
  readonly bad: number
}

/** The most that an end took of memory and disk; the floor does not tell. */
export const peaksOf = (report: EndReport): { readonly rss_max_mib: number; readonly store_max_mib: number } | null =>
  report.role === "floor" ? null : { rss_max_mib: report.rss_max_mib, store_max_mib: report.store_max_mib }

export interface EndStatus {
  readonly event: "status"
  /** Milliseconds of its monotonic clock. */
  readonly at: number
  /** STORED at a sender, read at a receiver. */
  readonly records: number
  /** On the sender's own disk. */
  readonly appended: number
  readonly datagrams_received: number
  readonly datagrams_dropped: number
  /** The latest timer since the status before. */
  readonly timer_late_ms: number
  readonly rss_mib: number
  readonly rss_max_mib: number
  readonly store_max_mib: number
  /** Of a sender's present run; 0 at a receiver. */
  readonly run_prefix: number
}

/** From an end. */
export type EndEvent =
  | { readonly event: "ready"; readonly port: number }
  | { readonly event: "measured"; readonly measurement: EndMeasurement; readonly allocation: Allocation | null }
  /** The answer to `status`. */
  | EndStatus
  | { readonly event: "ended"; readonly report: EndReport; readonly memory_series: ReadonlyArray<number> }
  | { readonly event: "failed"; readonly message: string }

/** To an end. */
export type EndRequest = "stop" | "status"

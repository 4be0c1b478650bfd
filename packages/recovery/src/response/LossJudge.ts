import type { Bytes, Micros } from "@pure-link/wire"
import type { RoundTripTime } from "../roundTripTime.ts"

/**
 * How much of a reduction losses are worth (spec §14.9): loss without a queue is not congestion, if one can tell. It hears
 * of every acknowledged flight, as the delay before the loss and the rate of delivery may tell; the controller takes the
 * part that it is told.
 */
export interface LossJudge {
  readonly name: string
  /** A flight that was in flight is acknowledged. */
  handleAcknowledged(now: Micros, bytes: Bytes, sentAt: Micros, rtt: RoundTripTime): void
  /**
   * The part of the full reduction to make, above 0 and up to 1, for losses whose newest flight was sent at `sentAt`, with
   * the window as it is.
   */
  partOf(now: Micros, sentAt: Micros, window: Bytes, rtt: RoundTripTime): number
}

import type { Bytes, Micros } from "@pure-link/wire"
import type { RoundTripTime } from "../roundTripTime.ts"

/** All of a controller's state at one moment, for that controller to return to; to anybody else it is opaque. */
export type CongestionState = object

/**
 * How many bytes may be in the air (spec §14.4). A controller hears of every packet that was sent, acknowledged or
 * lost, in plain calls, and holds nothing but its state.
 */
export interface CongestionController {
  readonly name: string
  /** Bytes that may be in flight: at least two datagrams, at most the configured largest window. */
  readonly window: Bytes
  readonly inSlowStart: boolean
  /** One packet, or several at once, of so many bytes were sent; `inFlightBefore` is what was in flight without them. */
  handleSent(now: Micros, bytes: Bytes, inFlightBefore: Bytes): void
  /**
   * A packet that was in flight is acknowledged. `windowLimited`: the window, or the pacer, and not a want of data or
   * credit, held the sender back; else nothing grows (RFC 9002 §7.8).
   */
  handleAcknowledged(now: Micros, bytes: Bytes, sentAt: Micros, rtt: RoundTripTime, windowLimited: boolean): void
  /** Packets declared lost were acknowledged after all: that grows nothing, but the path is in use. */
  handleLate(now: Micros): void
  /**
   * Congestion was found; `sentAt` is when the newest lost packet was sent, and `part` how much of a full reduction it is
   * worth. If it made a reduction, and there is one per round trip, returns the state from just before.
   */
  handleCongestion(now: Micros, sentAt: Micros, part: number): CongestionState | undefined
  /**
   * All losses since `before` was returned proved late: goes back to it whole, but never below the present window. The
   * time since then counts for no growth (spec §14.3).
   */
  undo(now: Micros, before: CongestionState): void
  /** Nothing got through for three probe timeouts (RFC 9002 §7.6). Follows a `handleCongestion` for the same losses. */
  handlePersistentCongestion(now: Micros): void
  setDatagramSize(bytes: Bytes): void
  /** Another path: everything is as at first, for datagrams of the present size. Flights of the former path are not told of. */
  restart(): void
}

export interface ControllerOptions {
  readonly datagramSize: Bytes
  readonly largestWindow: Bytes
}

/** RFC 9002 §7.2. */
export const initialWindow = (datagramSize: Bytes): Bytes =>
  Math.min(10 * datagramSize, Math.max(2 * datagramSize, 14_720))

/** RFC 9002 §7.2. */
export const minimumWindow = (datagramSize: Bytes): Bytes => 2 * datagramSize

/** A window within its bounds; the lower one wins. */
export const boundWindow = (window: number, datagramSize: Bytes, largestWindow: Bytes): number =>
  Math.max(minimumWindow(datagramSize), Math.min(window, largestWindow))

import type { Bytes, Micros } from "@pure-link/wire"
import type { CongestionController } from "../congestion/CongestionController.ts"
import type { RoundTripTime } from "../roundTripTime.ts"

/** When the next datagram may go, by pacing (spec §14.7). It reads window and round-trip time, and changes neither. */
export interface Pacer {
  readonly name: string
  /** When a datagram may go: at most `now` if at once, else a later time to come back at. */
  paceAt(now: Micros): Micros
  /** How many datagrams of this length may go now, one after the other, if each is asked for. */
  roomFor(now: Micros, bytes: Bytes): number
  /** Datagrams of so many bytes went, allowed or (a probe) unasked. */
  handleSent(now: Micros, bytes: Bytes): void
  /** The sender has nothing to send: no timer can miss anything for it. */
  rest(now: Micros): void
  /**
   * The window has no room for what is to go: an answer, not time, will let it go. Returns when to come back all the same,
   * to find out whether the process is served in time; never if it need not.
   */
  waitForRoom(now: Micros): Micros
  setDatagramSize(bytes: Bytes): void
  /** Another path: a first burst may go, as at first. */
  restart(now: Micros): void
}

export interface PacerOptions {
  /** What is to be spread. */
  readonly controller: Pick<CongestionController, "window" | "inSlowStart">
  readonly rtt: RoundTripTime
  readonly datagramSize: Bytes
}

import { type Micros, never } from "@pure-link/wire"
import type { RoundTrip } from "./RoundTrip.ts"
import type { Scoreboard } from "./Scoreboard.ts"

/**
 * TCP's one timer, set for one of three things: RACK's reordering window, a tail loss probe (RFC 8985 §7), or the
 * retransmission timeout (RFC 6298), as in Linux's `icsk_pending`.
 */

export type TimerPurpose = "none" | "reordering" | "probe" | "timeout"

/** `TCP_TIMEOUT_MIN_US`: two jiffies. */
const margin: Micros = 2_000
const leastTimeout: Micros = 200_000
const firstTimeout: Micros = 1_000_000

export class RetransmissionTimer {
  purpose: TimerPurpose = "none"
  at: Micros = never
  readonly #board: Scoreboard
  readonly #roundTrips: RoundTrip

  constructor(board: Scoreboard, roundTrips: RoundTrip) {
    this.#board = board
    this.#roundTrips = roundTrips
  }

  clear(): void {
    this.#set("none", never)
  }

  setReordering(now: Micros, wait: Micros): void {
    this.#set("reordering", now + Math.min(wait + margin, this.#roundTrips.timeout))
  }

  /** The whole timeout from now. */
  armTimeout(now: Micros): void {
    this.#set("timeout", now + this.#roundTrips.timeout)
  }

  /** Linux `tcp_rearm_rto`: what another purpose used of the timeout counts. */
  rearm(now: Micros): void {
    if (this.#board.outstanding === 0) this.clear()
    else if (this.purpose === "reordering" || this.purpose === "probe") {
      this.#set("timeout", Math.max(now + 1, this.#timeoutOfFirst))
    } else this.armTimeout(now)
  }

  /** After an acknowledgement, a probe if one is of use (`tcp_set_xmit_timer`). */
  restart(now: Micros, mayProbe: boolean): void {
    if (!this.scheduleProbe(now, mayProbe, this.#roundTrips.timeout)) this.rearm(now)
  }

  /** After sending, a probe in place of the timeout, which it never outlasts (`tcp_schedule_loss_probe`). */
  scheduleProbe(now: Micros, mayProbe: boolean, timeout: Micros = this.#timeoutOfFirst - now): boolean {
    const { outstanding } = this.#board
    if (!mayProbe || outstanding === 0) return false
    const { smoothed } = this.#roundTrips
    const wait = smoothed > 0 ? 2 * smoothed + (outstanding === 1 ? leastTimeout : margin) : firstTimeout
    this.#set("probe", now + (timeout > 0 ? Math.min(wait, timeout) : wait))
    return true
  }

  /** When the timeout of the first unacknowledged segment comes. */
  get #timeoutOfFirst(): Micros {
    return this.#board.sentAt(this.#board.unacknowledged) + this.#roundTrips.timeout
  }

  #set(purpose: TimerPurpose, at: Micros): void {
    this.purpose = purpose
    this.at = Math.ceil(at)
  }
}

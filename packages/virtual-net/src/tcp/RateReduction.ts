import type { Cubic } from "./Cubic.ts"
import type { Scoreboard } from "./Scoreboard.ts"

/**
 * Proportional Rate Reduction (RFC 6937, Linux `tcp_cwnd_reduction`): during a recovery the window goes from what it
 * was to the new threshold in proportion to what is delivered. It keeps what an undo restores.
 */
export class RateReduction {
  #windowBefore = 0
  /** The threshold to restore, 0 if it is not to be (`prior_ssthresh`). */
  #thresholdBefore = 0
  #delivered = 0
  #sent = 0
  readonly #board: Scoreboard
  readonly #cubic: Cubic

  constructor(board: Scoreboard, cubic: Cubic) {
    this.#board = board
    this.#cubic = cubic
  }

  /** Sets the new threshold (`tcp_init_cwnd_reduction`, and `tcp_enter_loss`, whose window then is the caller's). */
  begin(): void {
    const cubic = this.#cubic
    this.#thresholdBefore = Math.max(cubic.threshold, (cubic.window >> 1) + (cubic.window >> 2))
    this.#windowBefore = cubic.window
    this.#delivered = this.#sent = 0
    cubic.forgetCredit()
    cubic.reduce()
  }

  noteSent(): void {
    this.#sent++
  }

  /** The window after an acknowledgement that delivered something. */
  adjust(delivered: number, newlyLost: number, acknowledges: boolean): void {
    if (delivered <= 0) return
    const { inFlight } = this.#board
    const { threshold } = this.#cubic
    const room = threshold - inFlight
    this.#delivered += delivered
    let send: number
    if (room < 0) send = Math.ceil((threshold * this.#delivered) / this.#windowBefore) - this.#sent
    else {
      send = Math.max(this.#delivered - this.#sent, delivered)
      if (acknowledges && newlyLost === 0) send++
      send = Math.min(room, send)
    }
    this.#cubic.window = inFlight + Math.max(send, this.#sent > 0 ? 0 : 1)
  }

  /** Linux `tcp_end_cwnd_reduction`. */
  complete(): void {
    this.#cubic.window = this.#cubic.threshold
  }

  /** Linux `tcp_undo_cwnd_reduction`. */
  undo(): void {
    if (this.#thresholdBefore === 0) return
    this.#cubic.window = Math.max(this.#cubic.window, this.#windowBefore)
    this.#cubic.threshold = Math.max(this.#cubic.threshold, this.#thresholdBefore)
  }

  forget(): void {
    this.#thresholdBefore = 0
  }
}

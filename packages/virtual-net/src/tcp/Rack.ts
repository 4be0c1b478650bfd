import type { Micros } from "@pure-link/wire"
import type { RoundTrip } from "./RoundTrip.ts"
import { Mark, type Scoreboard } from "./Scoreboard.ts"

/**
 * RACK (RFC 8985, Linux tcp_recovery.c): a segment is lost when one that was sent after it has been delivered and a
 * reordering window has passed as well. The window is nothing before reordering was seen and three segments were
 * SACKed; else a quarter of the minimal round trip, times the rounds in which D-SACKs told of needless copies, at most
 * the smoothed round trip.
 */

/** Recoveries without such a D-SACK after which the window is back at a quarter (`TCP_RACK_RECOVERY_THRESH`). */
const windowPersistence = 16
const mostSteps = 255

export class Rack {
  /** Something was delivered since losses were last looked for. */
  advanced = false
  /** A D-SACK told of a copy that reordering, not a probe, had caused. */
  dsackSeen = false
  /** Recoveries for which the widened window lasts. */
  persistence = 0
  #steps = 1
  #deliveredAtStep = 0
  /** Of the segment sent last among those delivered. */
  #roundTrip: Micros = 0
  #sentAt: Micros = Number.NEGATIVE_INFINITY
  #segment = -1
  readonly #board: Scoreboard
  readonly #roundTrips: RoundTrip

  constructor(board: Scoreboard, roundTrips: RoundTrip) {
    this.#board = board
    this.#roundTrips = roundTrips
  }

  /** A segment was delivered. If it is rather an earlier copy of it, this says nothing (`tcp_rack_advance`). */
  noteDelivered(now: Micros, segment: number): void {
    const sentAt = this.#board.sentAt(segment)
    const wasResent = (this.#board.marksOf(segment) & (Mark.retransmitted | Mark.everRetransmitted)) !== 0
    if (wasResent && now - sentAt < this.#roundTrips.minimum) return
    this.advanced = true
    this.#roundTrip = now - sentAt
    if (!isSentAfter(sentAt, segment, this.#sentAt, this.#segment)) return
    this.#sentAt = sentAt
    this.#segment = segment
  }

  /**
   * Marks what is lost and returns the longest wait after which what is doubtful will be, 0 if nothing is
   * (`tcp_rack_detect_loss`).
   */
  detect(now: Micros, inRecovery: boolean): Micros {
    this.advanced = false
    const window = this.#window(inRecovery)
    const board = this.#board
    let longestWait = 0
    for (let segment = board.sentFirst(), next = -1; segment >= 0; segment = next) {
      next = board.sentAfter(segment)
      if ((board.marksOf(segment) & (Mark.lost | Mark.retransmitted)) === Mark.lost) continue
      if (!isSentAfter(this.#sentAt, this.#segment, board.sentAt(segment), segment)) break
      const wait = this.wait(now, segment, window)
      if (wait <= 0) {
        board.markLost(segment)
        board.leaveOrder(segment)
      } else longestWait = Math.max(longestWait, wait)
    }
    return longestWait
  }

  /** How long until the segment counts as lost, given a reordering window (`tcp_rack_skb_timeout`). */
  wait(now: Micros, segment: number, window: Micros): Micros {
    return this.#roundTrip + window - (now - this.#board.sentAt(segment))
  }

  /**
   * Widens or resets the window, once per round (`tcp_rack_update_reo_wnd`); `deliveredThen` is what had been delivered
   * when the newest segment that the acknowledgement delivers was sent, −1 if it delivers none.
   */
  adaptWindow(deliveredThen: number): void {
    if (deliveredThen < 0) return
    if (deliveredThen < this.#deliveredAtStep) this.dsackSeen = false
    if (this.dsackSeen) {
      this.#steps = Math.min(mostSteps, this.#steps + 1)
      this.dsackSeen = false
      this.#deliveredAtStep = this.#board.delivered
      this.persistence = windowPersistence
    } else if (this.persistence === 0) this.#steps = 1
  }

  #window(inRecovery: boolean): Micros {
    const board = this.#board
    if (board.reorderingsSeen === 0 && (inRecovery || board.sacked >= board.reordering)) return 0
    const { minimum, smoothed } = this.#roundTrips
    return Math.min((minimum / 4) * this.#steps, smoothed)
  }
}

/** Order of sending: by time, and by number within a microsecond. */
const isSentAfter = (sentAt: Micros, segment: number, otherSentAt: Micros, other: number): boolean =>
  sentAt > otherSentAt || (sentAt === otherSentAt && segment > other)

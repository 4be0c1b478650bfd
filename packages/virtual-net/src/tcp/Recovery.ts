import type { Micros } from "@pure-link/wire"
import type { AckDigest } from "./AckDigest.ts"
import type { Cubic } from "./Cubic.ts"
import type { Rack } from "./Rack.ts"
import { RateReduction } from "./RateReduction.ts"
import type { RetransmissionTimer } from "./RetransmissionTimer.ts"
import { initialReordering, Mark, type Scoreboard } from "./Scoreboard.ts"
import type { Undo } from "./Undo.ts"

/**
 * Linux's congestion states and the ways between them (`tcp_fastretrans_alert`, `tcp_process_loss`,
 * `tcp_enter_recovery`, `tcp_enter_loss`): open; disorder, in which something is out of order but nothing lost;
 * recovery, one reduction until all is acknowledged that was under way when it began; loss, after a timeout, with F-RTO
 * (RFC 5682); and the undoing of what was for nothing.
 */

export const State = { open: 0, disorder: 1, recovery: 2, loss: 3 } as const

/**
 * What may be sent after an acknowledgement: new segments only; lost ones first; a new one first, to see what comes.
 */
export type Resending = "none" | "lost" | "new"

export interface RecoveryCounters {
  /** Recoveries by fast retransmit, retransmission timeouts, reductions after a loss probe, and undone reductions. */
  fastRecoveries: number
  timeouts: number
  probeReductions: number
  undone: number
}

interface Parts {
  readonly board: Scoreboard
  readonly rack: Rack
  readonly cubic: Cubic
  readonly undo: Undo
  readonly digest: AckDigest
  readonly timer: RetransmissionTimer
}

export class Recovery {
  readonly counters: RecoveryCounters = { fastRecoveries: 0, timeouts: 0, probeReductions: 0, undone: 0 }
  readonly reduction: RateReduction
  state: number = State.open
  /** Recovery and loss end when everything before this is acknowledged (`high_seq`). */
  end = 0
  resending: Resending = "none"
  /** End of the outstanding loss probe, −1 for none (`tlp_high_seq`), and whether it was a copy. */
  probeEnd = -1
  probeIsCopy = false
  #testsTimeout = false
  /** Timeouts since the first unacknowledged segment moved on (`icsk_retransmits`). */
  #timeoutsInRow = 0
  #copyWasLost = false
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
    this.reduction = new RateReduction(parts.board, parts.cubic)
  }

  /** After the digest of an acknowledgement (`tcp_fastretrans_alert`). */
  handleAcknowledgement(now: Micros, unacknowledgedBefore: number, hasSegments: boolean): void {
    const { digest, undo } = this.#parts
    this.resending = "none"
    this.#copyWasLost = false
    if (digest.acknowledges) this.#timeoutsInRow = 0
    if (hasSegments) this.#endProbe()
    if (digest.acknowledges && !digest.sacks && !digest.tellsNeedless && this.state === State.open) return
    if (this.state === State.open) undo.firstCopyAt = 0
    else if (this.state === State.recovery && this.#isOver) this.#endRecovery()
    if (this.state === State.recovery) this.#continueRecovery(now, unacknowledgedBefore)
    else if (this.state === State.loss) this.#continueLoss(now)
    else this.#watch(now)
  }

  /** Growth or reduction (`tcp_cong_control`). */
  adjustWindow(now: Micros, delivered: number, newlyLost: number, isWindowLimited: boolean): void {
    const { board, cubic, digest } = this.#parts
    if (this.state === State.recovery) this.reduction.adjust(delivered, newlyLost, digest.acknowledges)
    else if (!isWindowLimited || delivered <= 0) return
    else if (digest.acknowledges || (digest.sacks && board.reordering > initialReordering)) cubic.grow(now, delivered)
  }

  /** RACK's reordering window is over (`tcp_rack_reo_timeout`). */
  handleReorderingTimeout(now: Micros): void {
    const { board, rack, timer } = this.#parts
    const inFlight = board.inFlight
    const lost = board.lostEver
    rack.detect(now, this.state >= State.recovery)
    if (board.inFlight !== inFlight) {
      if (this.state !== State.recovery) {
        this.#enterRecovery()
        this.reduction.adjust(1, board.lostEver - lost, false)
      }
      this.resending = "lost"
    }
    timer.rearm(now)
  }

  /** The retransmission timeout; the first unacknowledged segment is to be sent again (`tcp_enter_loss`). */
  handleTimeout(now: Micros): void {
    const { board, cubic, undo } = this.#parts
    const isNew = this.state < State.recovery
    this.#markTimedOut(now)
    if (isNew || this.#isOver || (this.state === State.loss && this.#timeoutsInRow === 0)) {
      this.reduction.begin()
      undo.begin(board.unacknowledged, board.retransmitted)
    }
    cubic.window = board.inFlight + 1
    cubic.forgetCredit()
    if (isNew && board.sacked >= initialReordering) board.reordering = initialReordering
    this.state = State.loss
    cubic.reset(now, board.next)
    this.end = board.next
    this.probeEnd = -1
    this.#testsTimeout = isNew || this.#timeoutsInRow > 0
    this.#timeoutsInRow++
    this.counters.timeouts++
    this.resending = "lost"
  }

  /** F-RTO's new segments are out, or could not be. */
  endTest(): void {
    if (this.#parts.board.next > this.end) this.resending = "none"
    else {
      this.#testsTimeout = false
      this.resending = "lost"
    }
  }

  get #isOver(): boolean {
    return this.#parts.board.unacknowledged >= this.end
  }

  #continueRecovery(now: Micros, unacknowledgedBefore: number): void {
    if (this.#parts.digest.acknowledges && this.#undoPartly(unacknowledgedBefore)) return
    if (this.#undoNeedless()) this.#keepOpen()
    this.#detectLosses(now)
    if (this.state === State.recovery || this.#recoverIfLost()) this.resending = "lost"
  }

  #continueLoss(now: Micros): void {
    this.#processLoss()
    this.#detectLosses(now)
    if (this.state === State.open || this.#copyWasLost) this.#watch(now)
  }

  /** Open or in disorder. */
  #watch(now: Micros): void {
    if (this.state <= State.disorder) this.#undoNeedless()
    this.#detectLosses(now)
    if (this.#recoverIfLost()) this.resending = "lost"
    else this.#keepOpen()
  }

  #recoverIfLost(): boolean {
    if (this.#parts.board.lost === 0) return false
    this.#enterRecovery()
    return true
  }

  #enterRecovery(): void {
    const { board, undo } = this.#parts
    this.#forgetCopyTime()
    undo.begin(board.unacknowledged, board.retransmitted + (this.probeEnd >= 0 && this.probeIsCopy ? 1 : 0))
    this.end = board.next
    this.probeEnd = -1
    this.reduction.begin()
    this.state = State.recovery
    this.counters.fastRecoveries++
  }

  /** Linux `tcp_try_undo_recovery` and `tcp_end_cwnd_reduction`. */
  #endRecovery(): void {
    this.#undoOrAge()
    this.state = State.open
    if (this.#parts.undo.marker >= 0) this.reduction.complete()
  }

  #undoOrAge(): void {
    const { digest, rack, undo } = this.#parts
    if (undo.isDue(digest.echo)) this.#undoReduction(false)
    else if (rack.persistence > 0) rack.persistence--
  }

  /** A hole was filled by a late original: it was no loss (`tcp_try_undo_partial`). True while copies are under way. */
  #undoPartly(unacknowledgedBefore: number): boolean {
    const { board, digest, undo } = this.#parts
    if (!undo.isDelayed(digest.echo)) return false
    board.noteReordering(unacknowledgedBefore)
    if (board.retransmitted > 0) return true
    this.#forgetCopyTime()
    this.#undoReduction(true)
    this.#keepOpen()
    return false
  }

  /** Linux `tcp_try_undo_dsack`. */
  #undoNeedless(): boolean {
    const { rack, undo } = this.#parts
    if (!undo.allNeedless) return false
    rack.persistence = Math.min(16, rack.persistence + 1)
    this.#undoReduction(false)
    return true
  }

  /** Linux `tcp_process_loss`. */
  #processLoss(): void {
    const { board, digest, undo } = this.#parts
    if (digest.acknowledges && undo.isDue(digest.echo)) return this.#undoLoss()
    if (this.#testsTimeout) {
      if (digest.deliversOriginal) return this.#undoLoss()
      if (board.next > this.end) {
        if (digest.sacks || !(digest.acknowledges || digest.tellsNeedless)) this.#testsTimeout = false
      } else if (digest.acknowledges && !this.#isOver) {
        this.end = board.next
        this.resending = "new"
        return
      }
    }
    if (this.#isOver) {
      this.#undoOrAge()
      this.state = State.open
    } else this.resending = "lost"
  }

  #undoLoss(): void {
    this.#undoReduction(true)
    this.#timeoutsInRow = 0
    this.state = State.open
  }

  #undoReduction(forgetsLosses: boolean): void {
    const { board, rack, undo } = this.#parts
    if (forgetsLosses) board.forgetLosses()
    this.reduction.undo()
    undo.end()
    rack.advanced = true
    this.counters.undone++
  }

  /** Linux `tcp_try_to_open`. */
  #keepOpen(): void {
    this.#forgetCopyTime()
    const { board } = this.#parts
    const state = board.sacked + board.lost > 0 || board.hasResent ? State.disorder : State.open
    if (state === this.state) return
    this.state = state
    this.end = board.next
  }

  #forgetCopyTime(): void {
    if (!this.#parts.board.hasResent) this.#parts.undo.firstCopyAt = 0
  }

  /** Linux `tcp_identify_packet_loss`. */
  #detectLosses(now: Micros): void {
    const { board, digest, rack, timer } = this.#parts
    if (!rack.advanced || board.outstanding === 0) return
    const copies = board.retransmitted
    const wait = rack.detect(now, this.state >= State.recovery)
    if (board.retransmitted < copies) this.#copyWasLost = true
    if (wait === 0) return
    timer.setReordering(now, wait)
    digest.restartsTimer = false
  }

  /** All that was sent long enough ago is lost, and the first segment in any case (`tcp_timeout_mark_lost`). */
  #markTimedOut(now: Micros): void {
    const { board, rack } = this.#parts
    for (let segment = board.unacknowledged; segment < board.next; segment++) {
      const isRecent = segment > board.unacknowledged && rack.wait(now, segment, 0) > 0
      if (!isRecent && (board.marksOf(segment) & Mark.sacked) === 0) board.markLost(segment)
    }
  }

  /** Linux `tcp_process_tlp_ack`: a loss that only the probe repaired is a congestion too. */
  #endProbe(): void {
    const { board, digest } = this.#parts
    if (this.probeEnd < 0 || board.unacknowledged < this.probeEnd) return
    const isNothing = !digest.acknowledges && !digest.sacks
    if (!this.probeIsCopy || digest.tellsNeedlessProbe) this.probeEnd = -1
    else if (board.unacknowledged > this.probeEnd) {
      this.probeEnd = -1
      this.end = board.next
      this.reduction.begin()
      this.reduction.complete()
      this.reduction.forget()
      this.counters.probeReductions++
      this.#keepOpen()
    } else if (isNothing) this.probeEnd = -1
  }
}

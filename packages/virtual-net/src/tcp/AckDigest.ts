import { type Micros, never } from "@pure-link/wire"
import type { Rack } from "./Rack.ts"
import type { RoundTrip } from "./RoundTrip.ts"
import { Mark, type Scoreboard } from "./Scoreboard.ts"
import { mostBlocks, type Segment, timestampAt } from "./segment.ts"
import type { Undo } from "./Undo.ts"

/**
 * What one acknowledgement says, entered into the scoreboard: SACK blocks (`tcp_sacktag_write_queue`), D-SACK (RFC
 * 2883), the cumulative number (`tcp_clean_rtx_queue`), and the round trip that it measures (`tcp_ack_update_rtt`). The
 * fields are the flags that Linux hands from one to the next; one instance, reused.
 */
export class AckDigest {
  /** The timestamp that it answers. */
  echo = 0
  /** It moved the first unacknowledged segment on; it delivered segments by SACK; it told of a needless copy. */
  acknowledges = false
  sacks = false
  tellsNeedless = false
  /** That copy was the loss probe. */
  tellsNeedlessProbe = false
  /** It delivered an original sent before `recoveryEnd`. */
  deliversOriginal = false
  /** It acknowledges a copy, or what may be one. */
  acknowledgesCopy = false
  /** The retransmission timer is to start anew. */
  restartsTimer = false
  /** Round trip of the segment sent last among those delivered first time, −1 if none (`ca_rtt_us`). */
  roundTrip = -1
  /** What had been delivered when the segment sent last among those delivered was sent, −1 if none. */
  deliveredThen = -1
  #newestSentAt: Micros = 0
  #lowestOvertaken = never
  #firstSackedSentAt = -1
  #lastSackedSentAt = -1
  #firstAckedSentAt = -1
  #lastAckedSentAt = -1
  #needlessEver = 0
  /** The blocks of the last acknowledgement: what lies in them is tagged already. */
  readonly #knownStarts = new Float64Array(mostBlocks)
  readonly #knownEnds = new Float64Array(mostBlocks)
  readonly #board: Scoreboard
  readonly #rack: Rack
  readonly #roundTrips: RoundTrip
  readonly #undo: Undo

  constructor(board: Scoreboard, rack: Rack, roundTrips: RoundTrip, undo: Undo) {
    this.#board = board
    this.#rack = rack
    this.#roundTrips = roundTrips
    this.#undo = undo
  }

  begin(ack: Segment): void {
    this.echo = ack.echo
    this.acknowledges = ack.number > this.#board.unacknowledged
    this.sacks = this.tellsNeedless = this.tellsNeedlessProbe = false
    this.deliversOriginal = this.acknowledgesCopy = this.restartsTimer = false
    this.roundTrip = this.deliveredThen = -1
    this.#lowestOvertaken = never
    this.#firstSackedSentAt = this.#lastSackedSentAt = this.#firstAckedSentAt = this.#lastAckedSentAt = -1
  }

  /** Tags what the blocks name, in ascending order; `probeEnd` is the end of an outstanding loss probe, −1 for none. */
  readBlocks(now: Micros, ack: Segment, recoveryEnd: number, probeEnd: number, countsReordering: boolean): void {
    const isDsack = this.#readDsack(ack, probeEnd)
    const first = isDsack ? 1 : 0
    for (let i = first, after = -1; i < ack.blocks; i++) {
      const block = lowestAfter(ack, first, after)
      after = ack.starts[block]!
      this.#tagBlock(now, ack, Math.max(after, ack.number), ack.ends[block]!, recoveryEnd)
    }
    if (isDsack) this.#tagNeedless(ack.starts[0]!, ack.ends[0]!)
    for (let i = 0; i < mostBlocks; i++) {
      this.#knownStarts[i] = i >= first && i < ack.blocks ? ack.starts[i]! : 0
      this.#knownEnds[i] = i >= first && i < ack.blocks ? ack.ends[i]! : 0
    }
    if (countsReordering && this.#lowestOvertaken !== never) this.#board.noteReordering(this.#lowestOvertaken)
  }

  /** Linux `tcp_clean_rtx_queue`, up to the round trip. */
  readNumber(now: Micros, number: number, recoveryEnd: number): void {
    const board = this.#board
    const sackedEndBefore = board.sackedEnd
    let lowestFilled = never
    while (board.unacknowledged < number) {
      const segment = board.unacknowledged
      const marks = board.marksOf(segment)
      if ((marks & anyCopy) !== 0) this.acknowledgesCopy ||= (marks & Mark.retransmitted) !== 0
      else if ((marks & Mark.sacked) === 0) {
        lowestFilled = Math.min(lowestFilled, segment)
        this.#noteOriginal(segment, recoveryEnd)
      }
      if ((marks & Mark.sacked) === 0) this.#noteDelivered(now, segment, marks)
      board.release()
    }
    if (this.acknowledges) this.restartsTimer = true
    this.#updateRoundTrip(now)
    if (lowestFilled < sackedEndBefore) board.noteReordering(lowestFilled)
  }

  #noteOriginal(segment: number, recoveryEnd: number): void {
    this.#lastAckedSentAt = this.#board.sentAt(segment)
    if (this.#firstAckedSentAt < 0) this.#firstAckedSentAt = this.#lastAckedSentAt
    if (segment < recoveryEnd) this.deliversOriginal = true
  }

  #noteDelivered(now: Micros, segment: number, marks: number): void {
    const board = this.#board
    board.delivered++
    this.#sampleDelivered(segment)
    const isOriginalOfCopy =
      (marks & anyCopy) !== 0 && this.echo !== 0 && this.echo < timestampAt(board.sentAt(segment))
    if (!isOriginalOfCopy) this.#rack.noteDelivered(now, segment)
  }

  #sampleDelivered(segment: number): void {
    const sentAt = this.#board.sentAt(segment)
    if (this.deliveredThen >= 0 && sentAt < this.#newestSentAt) return
    this.#newestSentAt = sentAt
    this.deliveredThen = this.#board.deliveredThen(segment)
  }

  /** Linux `tcp_check_dsack`. More D-SACKs than copies are the network's doing, and say nothing. */
  #readDsack(ack: Segment, probeEnd: number): boolean {
    const start = ack.starts[0]!
    const end = ack.ends[0]!
    const repeatsBlock = ack.blocks > 1 && start >= ack.starts[1]! && end <= ack.ends[1]!
    if (ack.blocks === 0 || !(start < ack.number || repeatsBlock)) return false
    const count = end - start
    this.#needlessEver += count
    if (this.#needlessEver > this.#board.retransmissions) return true
    this.tellsNeedless = true
    if (probeEnd >= 0 && probeEnd === end) this.tellsNeedlessProbe = true
    else if (this.#board.reorderingsSeen > 0) this.#rack.dsackSeen = true
    this.#board.delivered += count
    if (end <= this.#board.unacknowledged) this.#undo.noteNeedless(end, count)
    return true
  }

  /** What the scoreboard still holds of a D-SACK. */
  #tagNeedless(start: number, end: number): void {
    if (!this.tellsNeedless) return
    const board = this.#board
    for (let segment = Math.max(start, board.unacknowledged); segment < end && board.holds(segment); segment++) {
      const marks = board.marksOf(segment)
      if ((marks & anyCopy) === 0) continue
      this.#undo.noteNeedless(segment + 1, 1)
      if ((marks & Mark.sacked) !== 0) this.#lowestOvertaken = Math.min(this.#lowestOvertaken, segment)
      board.endRetransmission(segment)
    }
  }

  #tagBlock(now: Micros, ack: Segment, start: number, end: number, recoveryEnd: number): void {
    const board = this.#board
    let segment = Math.max(start, board.unacknowledged)
    while (segment < end && board.holds(segment)) {
      const known = this.#knownUntil(segment)
      if (known > segment) segment = known
      else this.#tag(now, segment++, recoveryEnd)
    }
  }

  #knownUntil(segment: number): number {
    for (let i = 0; i < mostBlocks; i++) {
      if (segment >= this.#knownStarts[i]! && segment < this.#knownEnds[i]!) return this.#knownEnds[i]!
    }
    return segment
  }

  /** Linux `tcp_sacktag_one`. */
  #tag(now: Micros, segment: number, recoveryEnd: number): void {
    const board = this.#board
    const marks = board.marksOf(segment)
    if ((marks & Mark.sacked) !== 0) return
    this.#rack.noteDelivered(now, segment)
    if ((marks & anyCopy) === 0) {
      if (segment < board.sackedEnd) this.#lowestOvertaken = Math.min(this.#lowestOvertaken, segment)
      if (segment < recoveryEnd) this.deliversOriginal = true
      this.#lastSackedSentAt = board.sentAt(segment)
      if (this.#firstSackedSentAt < 0) this.#firstSackedSentAt = this.#lastSackedSentAt
    }
    this.#sampleDelivered(segment)
    this.sacks = true
    board.sack(segment)
    board.delivered++
  }

  /** Never from a segment that was sent twice (Karn), unless its timestamp tells which copy it was (RFC 7323). */
  #updateRoundTrip(now: Micros): void {
    let roundTrip = -1
    if (this.#firstAckedSentAt >= 0 && !this.acknowledgesCopy) {
      roundTrip = now - this.#firstAckedSentAt
      this.roundTrip = now - this.#lastAckedSentAt
    }
    if (this.#firstSackedSentAt >= 0) {
      if (roundTrip < 0) roundTrip = now - this.#firstSackedSentAt
      this.roundTrip = now - this.#lastSackedSentAt
    }
    if (roundTrip < 0 && this.acknowledges && this.echo !== 0) {
      roundTrip = this.roundTrip = Math.max(1, timestampAt(now) - this.echo) * 1_000
    }
    if (roundTrip < 0) return
    const board = this.#board
    this.#roundTrips.noteMinimum(this.roundTrip)
    this.#roundTrips.update(roundTrip, board.unacknowledged, board.next)
    this.restartsTimer ||= this.#isOlderThanHead()
  }

  /** A SACKed segment sent after the first unacknowledged one must not put the timer off any longer. */
  #isOlderThanHead(): boolean {
    const board = this.#board
    if (this.#firstSackedSentAt < 0 || board.outstanding === 0) return false
    return this.#firstSackedSentAt < board.sentAt(board.unacknowledged)
  }
}

const anyCopy = Mark.retransmitted | Mark.everRetransmitted

/** The block with the lowest start beyond `after`, from block `first` on. */
const lowestAfter = (ack: Segment, first: number, after: number): number => {
  let lowest = -1
  for (let i = first; i < ack.blocks; i++) {
    const start = ack.starts[i]!
    if (start > after && (lowest < 0 || start < ack.starts[lowest]!)) lowest = i
  }
  return lowest < 0 ? first : lowest
}

import type { Micros } from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"

/**
 * What the sender knows of every segment between the first unacknowledged and the next new one: sent when, SACKed,
 * lost, sent again (RFC 6675's scoreboard, with the marks and counts of Linux's retransmission queue), and in which
 * order they were sent, which is what RACK goes by. A ring of typed arrays; the order is a doubly linked list through
 * its slots.
 */

export const Mark = {
  sacked: 1,
  lost: 2,
  /** Sent again, and that copy is thought to be under way. */
  retransmitted: 4,
  everRetransmitted: 8
} as const

/** Linux `tcp_reordering`: duplicate acknowledgements that make a loss, before reordering has been seen. */
export const initialReordering = 3
const mostReordering = 300

export class Scoreboard {
  /** The first segment not acknowledged cumulatively (`snd_una`), and the next new one (`snd_nxt`). */
  unacknowledged = 0
  next = 0
  /** Segments of that range that are marked so (`sacked_out`, `lost_out`, `retrans_out`). */
  sacked = 0
  lost = 0
  retransmitted = 0
  /** Ever: marked lost, delivered (spurious copies included), sent again. */
  lostEver = 0
  delivered = 0
  retransmissions = 0
  /** The largest distance, in segments, by which an original was overtaken, and how often one was. */
  reordering = initialReordering
  reorderingsSeen = 0
  readonly #mask: number
  readonly #marks: Uint8Array
  readonly #sentAt: Float64Array
  readonly #deliveredThen: Float64Array
  /** Neighbours in the order of sending; the slot after the last is both ends. A slot outside points to itself. */
  readonly #earlier: Int32Array
  readonly #later: Int32Array
  readonly #ends: number
  /** One past the highest SACKed segment. */
  #sackedEnd = 0
  /** No segment below it waits to be sent again. */
  #resendFrom = 0

  /** Holds up to `most` segments. */
  constructor(most: number) {
    const size = 2 ** Math.ceil(Math.log2(most))
    this.#mask = size - 1
    this.#marks = new Uint8Array(size)
    this.#sentAt = new Float64Array(size)
    this.#deliveredThen = new Float64Array(size)
    this.#earlier = Int32Array.from({ length: size + 1 }, (_, slot) => slot)
    this.#later = this.#earlier.slice()
    this.#ends = size
  }

  get outstanding(): number {
    return this.next - this.unacknowledged
  }

  /** RFC 6675's pipe (`tcp_packets_in_flight`). */
  get inFlight(): number {
    return this.outstanding - this.sacked - this.lost + this.retransmitted
  }

  /**
   * One past the highest SACKed segment, or the first unacknowledged one if none is SACKed (`tcp_highest_sack_seq`).
   */
  get sackedEnd(): number {
    return this.sacked === 0 ? this.unacknowledged : this.#sackedEnd
  }

  /** Segments that are lost and whose copies are not under way may be there. */
  get hasLostToResend(): boolean {
    return this.lost > this.retransmitted
  }

  /** Something was sent again and the first unacknowledged segment may be it (`tcp_any_retrans_done`). */
  get hasResent(): boolean {
    if (this.retransmitted > 0) return true
    return this.outstanding > 0 && (this.marksOf(this.unacknowledged) & Mark.everRetransmitted) !== 0
  }

  holds(segment: number): boolean {
    return segment >= this.unacknowledged && segment < this.next
  }

  marksOf(segment: number): number {
    return this.#marks[segment & this.#mask]!
  }

  /** When it was sent last. */
  sentAt(segment: number): Micros {
    return this.#sentAt[segment & this.#mask]!
  }

  /** How many segments had been delivered when it was sent last. */
  deliveredThen(segment: number): number {
    return this.#deliveredThen[segment & this.#mask]!
  }

  /** Takes the next new segment. */
  send(now: Micros): number {
    assert(this.outstanding <= this.#mask, "the window is larger than the scoreboard")
    this.#marks[this.next & this.#mask] = 0
    this.#note(this.next, now)
    return this.next++
  }

  /** Sends a lost segment again, or, `isProbe`, the last one, whose copy does not count as under way. */
  resend(segment: number, now: Micros, isProbe: boolean): void {
    const slot = segment & this.#mask
    if (isProbe) this.#marks[slot]! |= Mark.everRetransmitted
    else {
      assert((this.#marks[slot]! & Mark.retransmitted) === 0)
      this.#marks[slot]! |= Mark.everRetransmitted | Mark.retransmitted
      this.retransmitted++
    }
    this.retransmissions++
    this.#unlink(slot)
    this.#note(segment, now)
  }

  /** The lowest lost segment without a copy under way, or −1. */
  nextToResend(): number {
    if (!this.hasLostToResend) return -1
    let segment = Math.max(this.#resendFrom, this.unacknowledged)
    while (segment < this.next && (this.marksOf(segment) & unsettled) !== Mark.lost) segment++
    this.#resendFrom = segment
    return segment < this.next ? segment : -1
  }

  /** Linux `tcp_mark_skb_lost`; of a segment that was sent again, the copy is lost too. */
  markLost(segment: number): void {
    const slot = segment & this.#mask
    const marks = this.#marks[slot]!
    if ((marks & Mark.sacked) !== 0) return
    if ((marks & Mark.lost) === 0) {
      this.#marks[slot] = marks | Mark.lost
      this.lost++
      this.lostEver++
    } else if ((marks & Mark.retransmitted) !== 0) {
      this.#marks[slot] = marks & ~Mark.retransmitted
      this.retransmitted--
      this.lostEver++
    }
    this.#resendFrom = Math.min(this.#resendFrom, segment)
  }

  /** RACK need not look at it again, until it is sent again. */
  leaveOrder(segment: number): void {
    this.#unlink(segment & this.#mask)
  }

  /** Takes all losses back, for an undo. Segments that left the order of sending stay out of it, as in Linux. */
  forgetLosses(): void {
    for (let segment = this.unacknowledged; segment < this.next; segment++) {
      this.#marks[segment & this.#mask]! &= ~Mark.lost
    }
    this.lost = 0
    this.#resendFrom = this.unacknowledged
  }

  /** Linux `tcp_sacktag_one`, the counting part. A copy under way of a segment never thought lost stays so. */
  sack(segment: number): void {
    const slot = segment & this.#mask
    const marks = this.#marks[slot]!
    assert((marks & Mark.sacked) === 0)
    const isLost = (marks & Mark.lost) !== 0
    if (isLost) this.lost--
    if (isLost && (marks & Mark.retransmitted) !== 0) {
      this.retransmitted--
      this.#marks[slot] = (marks & ~(Mark.lost | Mark.retransmitted)) | Mark.sacked
    } else this.#marks[slot] = (marks & ~Mark.lost) | Mark.sacked
    if (segment >= this.sackedEnd) this.#sackedEnd = segment + 1
    this.sacked++
    this.#unlink(slot)
  }

  /** A D-SACK told that the copy of this segment arrived: it is under way no longer. */
  endRetransmission(segment: number): void {
    if ((this.marksOf(segment) & Mark.retransmitted) === 0) return
    this.#marks[segment & this.#mask]! &= ~Mark.retransmitted
    this.retransmitted--
  }

  /** The first unacknowledged segment is acknowledged cumulatively. */
  release(): void {
    const slot = this.unacknowledged & this.#mask
    const marks = this.#marks[slot]!
    if ((marks & Mark.retransmitted) !== 0) this.retransmitted--
    if ((marks & Mark.sacked) !== 0) this.sacked--
    if ((marks & Mark.lost) !== 0) this.lost--
    this.#unlink(slot)
    this.unacknowledged++
  }

  /** An original arrived after one that was sent as much as `low` segments later (`tcp_check_sack_reordering`). */
  noteReordering(low: number): void {
    const distance = this.sackedEnd - low
    if (distance <= 0) return
    this.reordering = Math.max(this.reordering, Math.min(distance, mostReordering))
    this.reorderingsSeen++
  }

  /** The segment sent first, of those that are neither SACKed nor left the order, or −1. */
  sentFirst(): number {
    return this.#segmentAt(this.#later[this.#ends]!)
  }

  /** The one sent after it, or −1. */
  sentAfter(segment: number): number {
    return this.#segmentAt(this.#later[segment & this.#mask]!)
  }

  #segmentAt(slot: number): number {
    return slot === this.#ends ? -1 : this.unacknowledged + ((slot - this.unacknowledged) & this.#mask)
  }

  #note(segment: number, now: Micros): void {
    const slot = segment & this.#mask
    this.#sentAt[slot] = now
    this.#deliveredThen[slot] = this.delivered
    const last = this.#earlier[this.#ends]!
    this.#later[last] = this.#earlier[this.#ends] = slot
    this.#earlier[slot] = last
    this.#later[slot] = this.#ends
  }

  #unlink(slot: number): void {
    const earlier = this.#earlier[slot]!
    const later = this.#later[slot]!
    this.#later[earlier] = later
    this.#earlier[later] = earlier
    this.#earlier[slot] = this.#later[slot] = slot
  }
}

const unsettled = Mark.lost | Mark.sacked | Mark.retransmitted

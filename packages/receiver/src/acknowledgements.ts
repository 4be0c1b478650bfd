import {
  acknowledgementReach,
  ackMapLength,
  ackRangesLength,
  ackRangesThatFit,
  longestAcknowledgementMap,
  type Micros,
  type PacketNumber,
  writeAckMap,
  writeAckRanges
} from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import { clearDown, NumberBits } from "./numberBits.ts"

/**
 * What a reply run has to say about packet numbers (spec §10.4): each opened number stands in ACK or in SEEN for ever.
 * An answer starts at the newest number that no answer reported yet and reaches down as far as it has room, in ranges
 * or as a map, whichever says more or is shorter. What did not fit stays unreported and goes into the next answer;
 * `canRecord` keeps it from being pushed out. The cost of an answer is bounded by the reach and by the datagram,
 * however the numbers look.
 */

/** Ranges that one frame of a datagram could hold at most: each takes 2 B. */
const mostRanges = 640
const lows = new Float64Array(mostRanges)
const highs = new Float64Array(mostRanges)
const map = new Uint8Array(longestAcknowledgementMap)

/** The bytes of a map frame that are not its map, at most: type, three varints. */
const mapOverhead = 1 + 8 + 4 + 2

export class Acknowledgements {
  /** The largest number recorded in this reply run; −1 before the first. */
  largest: PacketNumber = -1
  private readonly acked = new NumberBits(acknowledgementReach)
  private readonly seen = new NumberBits(acknowledgementReach)
  private readonly unreported = new NumberBits(acknowledgementReach)
  private unreportedCount = 0
  /** The lowest unreported number; meaningless when there is none. */
  private lowestUnreported: PacketNumber = 0
  private largestAcked: PacketNumber = -1
  private largestAckedAt: Micros = 0
  private largestSeen: PacketNumber = -1
  private largestSeenAt: Micros = 0
  /** Every number of the list just written, from here up to where it started, is in the frame. */
  private coveredFrom: PacketNumber = 0

  /** Whether some recorded number is in no answer yet. */
  get hasUnreported(): boolean {
    return this.unreportedCount > 0
  }

  /**
   * False when recording this number would push an unreported one out of the reach: the packet must wait for an answer.
   */
  canRecord(number: PacketNumber): boolean {
    return this.unreportedCount === 0 || number < this.lowestUnreported + acknowledgementReach
  }

  /**
   * An opened packet: all of its parts kept (ACK), or not (SEEN). Each number once, within the reach below the largest.
   */
  record(now: Micros, number: PacketNumber, kept: boolean): void {
    assert(number > this.largest - acknowledgementReach && this.canRecord(number))
    if (number > this.largest) this.advance(number)
    assert(!this.acked.has(number) && !this.seen.has(number))
    const list = kept ? this.acked : this.seen
    list.add(number)
    this.unreported.add(number)
    this.lowestUnreported = this.unreportedCount === 0 ? number : Math.min(this.lowestUnreported, number)
    this.unreportedCount += 1
    if (kept && number > this.largestAcked) {
      this.largestAcked = number
      this.largestAckedAt = now
    } else if (!kept && number > this.largestSeen) {
      this.largestSeen = number
      this.largestSeenAt = now
    }
  }

  /** The packets `first` to `last`, all above the largest number so far, were opened and kept (ACK). */
  recordAll(now: Micros, first: PacketNumber, last: PacketNumber): void {
    assert(first === this.largest + 1 && this.canRecord(last))
    this.advance(last)
    this.acked.addAll(first, last)
    this.unreported.addAll(first, last)
    this.lowestUnreported = this.unreportedCount === 0 ? first : Math.min(this.lowestUnreported, first)
    this.unreportedCount += last - first + 1
    this.largestAcked = last
    this.largestAckedAt = now
  }

  /** Writes the ACK and SEEN frames of one answer into `out[offset, limit)` and returns the offset after them. */
  write(now: Micros, out: Uint8Array, offset: number, limit: number): number {
    if (this.largest < 0) return offset
    const floor = Math.max(0, this.largest - acknowledgementReach + 1)
    const from = this.unreportedCount > 0 ? this.unreported.nextDown(this.largest, floor, true) : this.largest
    const hasSeen = this.seen.nextDown(from, floor, true) >= floor
    const hasAcked = this.acked.nextDown(from, floor, true) >= floor
    let at = offset
    let covered = floor
    if (hasSeen) {
      const share = hasAcked ? offset + Math.floor((limit - offset) / 2) : limit
      at = this.writeList(this.seen, true, delaySince(now, this.largestSeenAt), out, at, share, from, floor)
      covered = Math.max(covered, this.coveredFrom)
    }
    if (hasAcked) {
      at = this.writeList(this.acked, false, delaySince(now, this.largestAckedAt), out, at, limit, from, floor)
      covered = Math.max(covered, this.coveredFrom)
    }
    this.report(from, covered)
    return at
  }

  private advance(number: PacketNumber): void {
    this.acked.forget(this.largest, number)
    this.seen.forget(this.largest, number)
    this.unreported.forget(this.largest, number)
    this.largest = number
  }

  /** Writes one list from `from` down, in the form that reaches further down or is shorter, and sets `coveredFrom`. */
  private writeList(
    list: NumberBits,
    seen: boolean,
    delay: Micros,
    out: Uint8Array,
    offset: number,
    limit: number,
    from: PacketNumber,
    floor: PacketNumber
  ): number {
    const room = limit - offset
    const count = list.rangesDown(from, floor, lows, highs)
    const largest = highs[0]!
    const isWhole = count < mostRanges
    const lowest = isWhole ? lows[count - 1]! : floor
    const fit = ackRangesThatFit(room, delay, lows, highs, count)
    const rangesFrom = fit === 0 ? from + 1 : fit === count && isWhole ? floor : lows[fit - 1]!
    const mapBytes = Math.min(Math.ceil((largest - lowest + 1) / 8), room - mapOverhead, longestAcknowledgementMap)
    const mapLow = largest - 8 * mapBytes + 1
    const mapFrom = mapBytes < 1 ? from + 1 : mapLow <= lowest ? floor : mapLow
    if (fit === 0 && mapBytes < 1) {
      this.coveredFrom = from + 1
      return offset
    }
    if (mapFrom < rangesFrom || (mapFrom === rangesFrom && isShorterAsMap(delay, largest, mapBytes, fit))) {
      this.coveredFrom = mapFrom
      list.mapDown(largest, floor, map, mapBytes)
      return writeAckMap(out, offset, limit, seen, delay, largest, map, mapBytes)
    }
    this.coveredFrom = rangesFrom
    return writeAckRanges(out, offset, limit, seen, delay, lows, highs, fit)
  }

  /** Everything from `covered` to `from` is in an answer now. */
  private report(from: PacketNumber, covered: PacketNumber): void {
    if (this.unreportedCount === 0) return
    this.unreportedCount -= clearDown(this.unreported, from, Math.max(covered, this.lowestUnreported))
    assert(this.unreportedCount >= 0)
  }
}

const isShorterAsMap = (delay: Micros, largest: PacketNumber, mapBytes: number, ranges: number): boolean =>
  ackMapLength(delay, largest, mapBytes) < ackRangesLength(delay, lows, highs, ranges)

const delaySince = (now: Micros, at: Micros): Micros => Math.min(Math.max(0, Math.round(now - at)), 2 ** 30 - 1)

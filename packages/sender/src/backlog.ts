import type { Bytes, PacketNumber, RecordNumber } from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import { type FlightContents, Mark, spansInFlight } from "./flightContents.ts"
import type { PacketBuilder } from "./packetBuilder.ts"
import { type Position, RecordQueue } from "./recordQueue.ts"
import { Spans } from "./spans.ts"

/**
 * Everything unstored (spec §9.1): the queue, what of it needs sending again, what the current reply run
 * acknowledged, and the cursor of what was never sent. It turns verdicts on flights into spans, and fills packets
 * with the lowest numbers first.
 */

/** New records join what is sent again only if at least this part of the packet is left: each span costs a frame. */
const leastShared = 1 / 4

export class Backlog {
  readonly queue: RecordQueue
  /** The last record of the outbox, queued or not yet. */
  last: RecordNumber
  /** What needs sending again; every span lies below the cursor and outside `acknowledged`. */
  readonly again = new Spans()
  readonly acknowledged = new Spans()
  /** Nothing from here on was ever sent. */
  cursor: Position

  constructor(lowestHeld: RecordNumber, last: RecordNumber) {
    this.queue = new RecordQueue(lowestHeld)
    this.last = last
    this.cursor = this.queue.firstPosition
  }

  /** Whether the outbox holds anything that is not known to be stored. */
  get hasUnstored(): boolean {
    return this.queue.first <= this.last
  }

  /** Whether everything that the outbox holds was sent, so that only the application can bring more. */
  get isAllSent(): boolean {
    return this.nextStart === Infinity && this.queue.end > this.last
  }

  /** Whether anything below `reach` waits to be sent. */
  waitsBelow(reach: Position): boolean {
    return this.nextStart < reach
  }

  /** Where the next span to be sent begins. */
  get nextStart(): Position {
    return this.again.count > 0 ? this.again.start(0) : this.cursor < this.queue.endPosition ? this.cursor : Infinity
  }

  /** The records through n are stored. */
  dropThrough(n: RecordNumber): void {
    this.queue.dropThrough(n)
    const { firstPosition } = this.queue
    this.again.remove(0, firstPosition)
    this.acknowledged.remove(0, firstPosition)
    this.cursor = Math.max(this.cursor, firstPosition)
  }

  /**
   * The current reply run holds all that the flights from `from` on and below `to` carried, however it may have been cut
   * again since: what follows one another is taken at once. Returns the last of them that carried records; −1 if none did.
   */
  acknowledge(flights: FlightContents, from: PacketNumber, to: PacketNumber): PacketNumber {
    let last = -1
    let start: Position = 0
    let end: Position = 0
    for (let number = from; number < to; number++) {
      const count = flights.spanCount(number)
      for (let i = 0; i < count; i++) {
        const spanStart = flights.spanStart(number, i)
        if (spanStart !== end) {
          this.#acknowledgeSpan(start, end)
          start = spanStart
        }
        end = flights.spanEnd(number, i)
      }
      if (count > 0) last = number
    }
    this.#acknowledgeSpan(start, end)
    return last
  }

  #acknowledgeSpan(from: Position, end: Position): void {
    const start = Math.max(from, this.queue.firstPosition)
    this.acknowledged.merge(start, end)
    this.again.remove(start, end)
  }

  /** What a flight carried, and is not acknowledged, needs sending again, unless another has taken it over. */
  sendFlightAgain(flights: FlightContents, number: PacketNumber): void {
    if (flights.has(number, Mark.replaced)) return
    flights.mark(number, Mark.replaced)
    for (let i = 0; i < flights.spanCount(number); i++) {
      const start = Math.max(flights.spanStart(number, i), this.queue.firstPosition)
      this.again.addOutside(start, flights.spanEnd(number, i), this.acknowledged)
    }
  }

  /** Everything sent and not acknowledged needs sending again, cut anew. */
  sendUnacknowledgedAgain(): void {
    this.again.clear()
    this.again.addOutside(this.queue.firstPosition, this.cursor, this.acknowledged)
  }

  /** Another reply run: what the former one acknowledged may be gone (spec §9.5). */
  sendEverythingAgain(): void {
    this.acknowledged.clear()
    this.sendUnacknowledgedAgain()
  }

  /**
   * Fills a packet with what waits below `reach`. A span that was sent before stays whole, unless a packet of its own
   * has no room for it (spec §9.2); longer ones, and what was never sent, are cut where the packet ends. True: more
   * was waiting than fitted.
   */
  fill(
    builder: PacketBuilder,
    flights: FlightContents,
    number: PacketNumber,
    base: RecordNumber,
    reach: Position,
    size: Bytes
  ): boolean {
    const { queue, again } = this
    while (flights.spanCount(number) < spansInFlight) {
      const start = this.nextStart
      if (start >= reach) return false
      const isAgain = again.count > 0
      const end = Math.min(reach, isAgain ? again.end(0) : queue.endPosition)
      if (!isAgain && flights.spanCount(number) > 0 && builder.room < size * leastShared) return true
      const staysWhole = isAgain && end - start <= size && flights.spanCount(number) > 0
      if (staysWhole && !builder.addWholeSpan(queue, base, start, end)) return true
      const reached = staysWhole ? end : builder.addSpan(queue, base, start, end)
      if (reached === start) return true
      flights.addSpan(number, start, reached)
      if (isAgain) again.remove(start, reached)
      else this.cursor = reached
      if (reached < end) return true
    }
    return this.waitsBelow(reach)
  }

  /** The same where nothing waits to go again: with what was never sent, as far as `end`, in one span. */
  fillInOrder(
    builder: PacketBuilder,
    flights: FlightContents,
    number: PacketNumber,
    base: RecordNumber,
    end: Position
  ): void {
    const start = this.cursor
    this.cursor = builder.addSpan(this.queue, base, start, end)
    assert(this.cursor > start, "a packet has room for some of any record")
    flights.put(number, start, this.cursor)
  }

  /**
   * Fills a probe with the spans of the flight that carries the oldest unacknowledged position below `reach`, and
   * takes them over from it (spec §9.7). Only flights from `from` on count. False: no such flight.
   */
  fillWithOldest(
    builder: PacketBuilder,
    flights: FlightContents,
    from: PacketNumber,
    number: PacketNumber,
    base: RecordNumber,
    reach: Position
  ): boolean {
    const oldest = this.#oldestFlight(flights, from, number, reach)
    if (oldest === undefined) return false
    this.fillFrom(builder, flights, oldest, number, base, reach)
    return true
  }

  /** Fills a packet with what another flight carries below `reach`, and takes it over from that one. */
  fillFrom(
    builder: PacketBuilder,
    flights: FlightContents,
    other: PacketNumber,
    number: PacketNumber,
    base: RecordNumber,
    reach: Position
  ): void {
    flights.mark(other, Mark.replaced)
    let fits = true
    for (let i = 0; i < flights.spanCount(other); i++) {
      const start = Math.max(flights.spanStart(other, i), this.queue.firstPosition)
      const end = flights.spanEnd(other, i)
      if (start >= end || this.acknowledged.covers(start, end)) continue
      const reached: Position = fits && end <= reach ? builder.addSpan(this.queue, base, start, end) : start
      if (reached > start) flights.addSpan(number, start, reached)
      if (reached < end) this.again.addOutside(reached, end, this.acknowledged)
      fits &&= reached === end
    }
  }

  /** The flight in the air, from `from` to `next`, with the lowest unacknowledged position; below `reach`. */
  #oldestFlight(
    flights: FlightContents,
    from: PacketNumber,
    next: PacketNumber,
    reach: Position
  ): PacketNumber | undefined {
    let oldest: PacketNumber | undefined
    let lowest = reach
    for (let number = Math.max(from, next - flights.ringSize + 1); number < next; number++) {
      if (!flights.knows(number) || flights.has(number, Mark.replaced | Mark.settled)) continue
      for (let i = 0; i < flights.spanCount(number); i++) {
        const start = Math.max(flights.spanStart(number, i), this.queue.firstPosition)
        const end = flights.spanEnd(number, i)
        if (start >= end || start >= lowest || this.acknowledged.covers(start, end)) continue
        oldest = number
        lowest = start
      }
    }
    return oldest
  }
}

import { type Bytes, largestRecordCredit, longestRecord, type Micros, never } from "@pure-link/wire"
import { SpareBuffers } from "./spareBuffers.ts"

/**
 * What all streams hold together, and the one reserve beyond it (spec §10.7).
 *
 * What is held counts by extent, before a buffer for it is made. All of it stays within the total; only the holder of
 * the reserve may exceed it, by its record n+1 and nothing else, so that all of the excess goes when that record is
 * stored or dropped: the sum is never above the total and 16 MiB. Buffers are longer than what they hold only by a
 * share of it, but for a quarter of the total.
 */

/** What record n+1 of one starved stream may take beyond the total. */
export const reserveBytes: Bytes = longestRecord
/**
 * What a record costs beside its bytes while it is held: ahead of the first incomplete one, where it stands alone, and
 * complete, where only its length is kept. Empty records would else be kept without bound.
 */
export const overheadAhead: Bytes = 1_024
export const overheadComplete: Bytes = 8
/** Overhead that is always allowed: all records that credit lets one stream send may be held ahead. */
const leastOverhead: Bytes = overheadAhead * largestRecordCredit
const mostSpareBytes: Bytes = 16 * 1_048_576
/** A holder that keeps nothing new for this long loses the reserve to one that waits. */
export const reservePatience: Micros = 10_000_000

export class ReceiverMemory {
  /** What one stream may hold, and all of them. */
  readonly perStream: Bytes
  readonly total: Bytes
  /** What all streams hold. */
  used: Bytes = 0
  /** The bytes of all buffers. */
  allocated: Bytes = 0
  /** What keeping records costs beside their bytes, for all streams together, and its bound. */
  overhead: Bytes = 0
  /** Beyond the total: at most a sixteenth of it, and 16 MiB. */
  readonly spareBuffers: SpareBuffers
  private readonly mostOverhead: Bytes
  /** The starved stream that the reserve serves. */
  holder: MemoryShare | undefined
  /** Starved streams, in the order in which they began to wait. */
  private readonly waiting: Array<MemoryShare> = []

  constructor(perStream: Bytes, total: Bytes) {
    this.perStream = perStream
    this.total = total
    this.mostOverhead = Math.max(leastOverhead, total / 4)
    this.spareBuffers = new SpareBuffers(Math.min(mostSpareBytes, total / 16))
  }

  get overheadFree(): Bytes {
    return Math.max(0, this.mostOverhead - this.overhead)
  }

  get free(): Bytes {
    return Math.max(0, this.total - this.used)
  }

  /** Whether nobody holds the reserve, or waits for it before this stream. */
  isFreeFor(share: MemoryShare): boolean {
    return this.holder === undefined && (this.waiting[0] ?? share) === share
  }

  wait(share: MemoryShare): void {
    if (this.holder !== share && !this.waiting.includes(share)) this.waiting.push(share)
  }

  hold(share: MemoryShare, now: Micros): void {
    this.stopWaiting(share)
    this.holder = share
    share.progressAt = now
  }

  stopWaiting(share: MemoryShare): void {
    const index = this.waiting.indexOf(share)
    if (index >= 0) this.waiting.splice(index, 1)
  }

  /** Gives a free reserve to the first that waits and whose sender is not silent; undefined when nobody got it. */
  pass(now: Micros): MemoryShare | undefined {
    while (this.holder === undefined && this.waiting.length > 0) {
      const next = this.waiting[0]!
      if (now - next.heardAt <= reservePatience) {
        this.hold(next, now)
        return next
      }
      this.stopWaiting(next)
    }
    return undefined
  }

  /** When the holder loses the reserve, if it makes no progress. */
  deadline(): Micros {
    return this.holder === undefined || this.waiting.length === 0 ? never : this.holder.progressAt + reservePatience
  }
}

/** The part of a receiver's memory that one stream takes. */
export class MemoryShare {
  readonly memory: ReceiverMemory
  /** When the stream was heard last, and when it last kept something new of record n+1 as the reserve's holder. */
  heardAt: Micros = 0
  progressAt: Micros = 0
  /** What the last part of record n+1 that found no room would have taken; 0 since record n+1 is another. */
  lacking: Bytes = 0
  private held: Bytes = 0
  private overhead: Bytes = 0
  private buffers: Bytes = 0
  /** The batch of a commit under way that the stream does not hold any more, and its buffer. */
  private orphanedHeld: Bytes = 0
  private orphanedBuffer: Bytes = 0

  constructor(memory: ReceiverMemory) {
    this.memory = memory
  }

  /** What the stream may hold, by extent. */
  get limit(): Bytes {
    return this.memory.perStream
  }

  get isHolder(): boolean {
    return this.memory.holder === this
  }

  /** Whether record n+1 may have the reserve. A batch that is held by its commit only may still be in it. */
  get mayTakeReserve(): boolean {
    return this.orphanedHeld === 0 && (this.isHolder || this.memory.isFreeFor(this))
  }

  /** Whether the stream may hold this much more than now, without the reserve. */
  hasRoom(growth: Bytes): boolean {
    return growth === 0 || (this.held + growth <= this.limit && growth <= this.memory.free)
  }

  /** Whether records may be held whose keeping costs this much more than now. */
  hasRoomToKeep(growth: Bytes): boolean {
    return growth <= this.memory.overheadFree
  }

  /** The stream holds this much now, and keeping it costs this much. */
  setHeld(held: Bytes, overhead: Bytes): void {
    this.memory.used += held - this.held
    this.held = held
    this.memory.overhead += overhead - this.overhead
    this.overhead = overhead
  }

  /** The length of a buffer in place of one of `replaced` bytes: generous while that stays in a quarter of the total. */
  bufferLength(generous: Bytes, needed: Bytes, replaced: Bytes): Bytes {
    const { allocated, total } = this.memory
    return allocated - replaced + generous <= total / 4 ? Math.max(generous, needed) : needed
  }

  /** Buffers were made (more) or let go (less). */
  countBuffers(change: Bytes): void {
    this.buffers += change
    this.memory.allocated += change
  }

  /** Everything held was let go, but for what a commit under way still holds. */
  countNothing(): void {
    this.setHeld(0, 0)
    this.countBuffers(-this.buffers)
  }

  /** A batch under way that is held by its commit only; undefined for none. */
  setOrphaned(batch: Uint8Array | undefined): void {
    const held = batch?.length ?? 0
    const buffer = batch?.buffer.byteLength ?? 0
    const isOver = held === 0 && this.orphanedHeld > 0
    this.memory.used += held - this.orphanedHeld
    this.memory.allocated += buffer - this.orphanedBuffer
    this.orphanedHeld = held
    this.orphanedBuffer = buffer
    if (isOver) this.giveReserveBack()
  }

  /** The reserve, if it is to be had; else the stream waits for it, as starved. */
  takeReserve(): boolean {
    const { memory, isHolder, mayTakeReserve } = this
    if (!mayTakeReserve) memory.wait(this)
    else if (!isHolder) memory.hold(this, this.heardAt)
    return mayTakeReserve
  }

  /** Something new of record n+1 is held. */
  handleProgress(): void {
    if (this.orphanedHeld === 0) this.progressAt = this.heardAt
  }

  /** Record n+1 is complete: from now on it waits for the store only, and asks for no room. */
  handleNextComplete(): void {
    this.progressAt = never
    this.memory.stopWaiting(this)
  }

  /** Record n+1 was stored or dropped: the reserve is for another, and the next record waits anew. */
  endTurn(): void {
    this.lacking = 0
    this.memory.stopWaiting(this)
    this.giveReserveBack()
  }

  private giveReserveBack(): void {
    if (this.isHolder && this.orphanedHeld === 0) this.memory.holder = undefined
  }
}

import { type Bytes, longestRecord, type Micros, never } from "@pure-link/wire"

/**
 * What the buffers of all streams take together, and the one reserve beyond it (spec §10.7).
 *
 * Every buffer is counted in full before it is made. Together they stay within the total; only the holder of the
 * reserve may exceed it, by the buffer of its record n+1 and nothing else, so that all of it is given back when that
 * record is stored or dropped: the sum is never above the total and 16 MiB. (A buffer that is outgrown is let go once
 * it is copied; only one is at any time.)
 */

/** What record n+1 of one starved stream may take beyond the total. */
export const reserveBytes: Bytes = longestRecord
/** A holder that keeps nothing new for this long loses the reserve to one that waits. */
export const reservePatience: Micros = 10_000_000

export class ReceiverMemory {
  /** What one stream may hold, and all of them. */
  readonly perStream: Bytes
  readonly total: Bytes
  /** The bytes of all buffers. */
  used: Bytes = 0
  /** The starved stream that the reserve serves. */
  holder: MemoryShare | undefined
  /** Starved streams, in the order in which they began to wait. */
  private readonly waiting: Array<MemoryShare> = []

  constructor(perStream: Bytes, total: Bytes) {
    this.perStream = perStream
    this.total = total
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
  private bytes: Bytes = 0
  /** The buffer of a commit under way that the stream does not hold any more. */
  private orphaned: Bytes = 0

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

  /**
   * The length of a buffer that takes the place of one of `replaced` bytes: generous while half of the total is free,
   * else just what is needed; −1 when there is no room for it.
   */
  fit(generous: Bytes, needed: Bytes, replaced: Bytes, fromReserve: boolean): Bytes {
    const { used, total } = this.memory
    const others = used - replaced
    if (others + generous <= total / 2) return generous
    if (needed <= replaced || others + needed <= total) return needed
    return fromReserve && others + needed <= total + reserveBytes ? needed : -1
  }

  /** Buffers were made (more) or let go (less). */
  count(change: Bytes): void {
    this.bytes += change
    this.memory.used += change
  }

  /** Everything held was let go, but for what a commit under way still holds. */
  countNothing(): void {
    this.count(-this.bytes)
    this.endTurn()
  }

  setOrphaned(bytes: Bytes): void {
    this.memory.used += bytes - this.orphaned
    this.orphaned = bytes
  }

  /** The reserve, if it is to be had; else the stream waits for it, as starved. */
  takeReserve(): boolean {
    if (this.isHolder) return true
    if (this.memory.isFreeFor(this)) this.memory.hold(this, this.heardAt)
    else this.memory.wait(this)
    return this.isHolder
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
    if (this.isHolder) this.memory.holder = undefined
  }
}

import { type Bytes, type Id64, largestRecordCredit, type Life, lifeOf, longestRecord } from "@pure-link/wire"
import type { RecordBatch, RecordNumber, RecordsReader } from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import { Buffer } from "node:buffer"
import { Chunk } from "./chunk.ts"
import type { ReceiverFaults } from "./faults.ts"
import { HeldRecord, HeldRecords } from "./heldRecord.ts"
import { lifeBefore, mayFollow } from "./lives.ts"
import { adoptedBytes, neededLength } from "./bufferLengths.ts"
import { type MemoryShare, overheadAhead, overheadComplete } from "./memory.ts"
import { Verdict } from "./verdict.ts"

/**
 * The parts of one stream that are held until they are stored (spec §10.3, §10.5, §10.7). Three places, by number:
 *
 * - the *complete* records n+1 … `complete`, back to back in chunks from which batches are cut;
 * - the *head*, the first incomplete record, at the end of the last chunk, where parts in order are appended;
 * - records held *ahead* of it, each in a buffer of its own.
 *
 * Memory counts by extent (the furthest byte held of each record), which is never more than what credit let an honest
 * sender send. Only record n+1 may exceed what is free, by the reserve.
 */

/** Buffers of chunks are between these: a batch comes from one chunk, and an idle stream holds none. */
const smallestChunk = 4_096
const largestChunk = 1_048_576
/** A head may leave this much of its buffer unused, and as much as it holds, when all before it is stored. */
const spareBytes = 65_536
/**
 * Ranges beyond the first of a record that a stream holds at most: one per lost packet that a sender can have in the
 * air.
 */
const mostExtraRanges = 16_384

export class Assembly {
  /** The last stored record. */
  n: RecordNumber
  /** The last record of the complete ones; n when there is none. */
  complete: RecordNumber
  /**
   * A held record was dropped, because its life cannot follow: what was acknowledged is gone (spec §10.8). Its reader
   * clears it.
   */
  droppedHeld = false
  /** The life of record `complete`; 0n for 0. */
  completeLife: Id64
  private completeBytes: Bytes = 0
  private aheadBytes: Bytes = 0
  private extraRanges = 0
  private chunks: Array<Chunk> = []
  private chunkBytes = smallestChunk
  /** The most complete bytes since everything was stored last. */
  private mostComplete: Bytes = 0
  private head = new HeldRecord(0, noLife)
  private readonly ahead = new HeldRecords()
  private readonly share: MemoryShare
  private readonly faults: ReceiverFaults

  constructor(n: RecordNumber, life: Id64, share: MemoryShare, faults: ReceiverFaults = {}) {
    this.n = n
    this.complete = n
    this.completeLife = life
    this.share = share
    this.faults = faults
  }

  /** What is held, by extent; it counts until it is stored. */
  get heldBytes(): Bytes {
    return this.completeBytes + this.head.extent + this.aheadBytes
  }

  /** How many records are held, complete ones and those ahead. */
  get heldRecords(): number {
    return this.complete - this.n + this.ahead.count
  }

  /** What keeping the records costs beside their bytes. */
  get overhead(): Bytes {
    return overheadAhead * this.ahead.count + overheadComplete * (this.complete - this.n)
  }

  /** Whether anything is held that is not stored. */
  get isHolding(): boolean {
    return this.complete > this.n || !this.head.isEmpty || this.ahead.count > 0
  }

  /**
   * Takes the parts of a RECORDS or PART frame of records `first` …, by the lives of their run. `kept` when every part
   * is held or stored; else the first reason why not, and the other parts are kept all the same.
   */
  keep(lives: ReadonlyArray<Life>, first: RecordNumber, reader: RecordsReader, bytes: Uint8Array): Verdict {
    if (this.keepsNext(lives, first, reader, bytes)) return Verdict.kept
    let verdict: Verdict = Verdict.kept
    let start = reader.dataStart
    for (let i = 0; i < reader.count; i++) {
      const length = reader.length(i)
      const ends = i < reader.count - 1 || reader.endsRecord
      const part = this.keepPart(lives, first + i, i === 0 ? reader.offset : 0, bytes, start, length, ends)
      if (verdict === Verdict.kept) verdict = part
      start += length
    }
    return verdict
  }

  /** Takes parts that go on exactly where what is held ends; false, having done nothing, for any others (spec §10.3). */
  keepsNext(lives: ReadonlyArray<Life>, first: RecordNumber, reader: RecordsReader, bytes: Uint8Array): boolean {
    if (!this.appendInOrder(lives, first, reader, bytes)) return false
    this.count()
    return true
  }

  /** Whether what follows is of the last of these lives, as what is held or stored last is: no other begins (spec §8.4). */
  isInLast(lives: ReadonlyArray<Life>): boolean {
    const { life } = lives[lives.length - 1] ?? noLife
    return this.head.isEmpty ? this.completeLife === life : this.head.life.life === life
  }

  /** One part: its `length` bytes are at `start`. */
  keepPart(
    lives: ReadonlyArray<Life>,
    number: RecordNumber,
    offset: number,
    bytes: Uint8Array,
    start: number,
    length: number,
    ends: boolean
  ): Verdict {
    if (number <= this.n) return Verdict.kept
    if (number - this.n > largestRecordCredit) return Verdict.noRoom
    const life = lifeOf(lives, number)
    if (life === undefined) return Verdict.otherLife
    const end = offset + length
    if (number <= this.complete) return this.compareComplete(number, life, end, ends)
    const isHead = number === this.complete + 1
    const held = isHead ? this.head : this.ahead.get(number)
    if (held !== undefined && !held.isEmpty) {
      if (held.life.life !== life.life) return Verdict.otherLife
      if (held.contradicts(end, ends)) return Verdict.contradiction
      if ((length === 0 || held.ranges.covers(offset, end)) && (!ends || held.size >= 0)) return Verdict.kept
    } else if (isHead && !this.mayBeNext(life, lifeBefore(lives, life))) return Verdict.otherLife
    const addsRange = held !== undefined && !held.isEmpty && length > 0 && held.ranges.splits(offset, end)
    if (addsRange && this.extraRanges >= mostExtraRanges) return Verdict.noRoom
    if (!this.share.hasRoomToKeep(this.overheadOf(isHead, held))) return Verdict.noRoom
    const growth = Math.max(0, end - (held?.extent ?? 0))
    if (!this.share.hasRoom(growth) && !(isHead && this.takeReserve(growth))) return Verdict.noRoom
    if (isHead) this.placeInHead(life, offset, bytes, start, length, ends)
    else this.placeAhead(held ?? this.addAhead(number, life, lives), offset, bytes, start, length, ends)
    this.count()
    return Verdict.kept
  }

  /** Records from n+1 on for the inbox, at most `mostBytes` or one record; `undefined` when none is complete. */
  batch(mostBytes: Bytes): { readonly batch: RecordBatch; readonly lives: ReadonlyArray<Life> } | undefined {
    return this.complete > this.n ? this.chunks[0]!.batch(mostBytes) : undefined
  }

  /** Record n, and everything up to it, is stored. */
  advance(n: RecordNumber, life: Id64): void {
    assert(n >= this.n)
    this.n = n
    if (n > this.complete) this.skipTo(n, life)
    while (this.chunks.length > 0) {
      const chunk = this.chunks[0]!
      this.completeBytes -= chunk.release(n)
      if (chunk.count > 0) break
      if (this.chunks.length === 1 && !this.head.isEmpty) {
        this.moveHead(chunk)
        break
      }
      this.chunks.shift()
      this.recycle(chunk)
    }
    if (this.chunks.length === 0) {
      this.fitChunks()
      this.head = new HeldRecord(this.complete + 1, noLife)
    }
    if (this.head.isEmpty) this.promoteAhead()
    this.count()
  }

  /** Drops what is held of record n+1, which is not complete. True: something was, and may have been acknowledged. */
  dropHalfRecord(): boolean {
    assert(this.complete === this.n)
    const { head } = this
    this.extraRanges -= extraRanges(head.ranges.count)
    for (const chunk of this.chunks.splice(0)) this.dropChunk(chunk)
    this.head = new HeldRecord(this.n + 1, noLife)
    this.count()
    return !head.isEmpty
  }

  /** Drops everything held; the inbox stands at `n`. */
  reset(n: RecordNumber, life: Id64): void {
    this.n = n
    this.complete = n
    this.completeLife = life
    this.completeBytes = 0
    this.aheadBytes = 0
    this.extraRanges = 0
    this.chunks = []
    this.chunkBytes = smallestChunk
    this.head = new HeldRecord(n + 1, noLife)
    this.ahead.clear()
    this.share.countNothing()
  }

  private count(): void {
    this.share.setHeld(this.heldBytes, this.overhead)
  }

  /** What keeping one more part's record costs; record n+1 is always kept. */
  private overheadOf(isHead: boolean, held: HeldRecord | undefined): Bytes {
    if (isHead) return this.complete === this.n ? 0 : overheadComplete
    return held === undefined ? overheadAhead : 0
  }

  /** Room beyond what is free: for record n+1 only. */
  private takeReserve(growth: Bytes): boolean {
    if (this.complete > this.n) return false
    if (this.share.takeReserve()) return true
    this.share.lacking = growth
    return false
  }

  /** The fast path: whole records in order, and nothing held back, are checked and copied once (spec §10.3). */
  private appendInOrder(
    lives: ReadonlyArray<Life>,
    first: RecordNumber,
    reader: RecordsReader,
    bytes: Uint8Array
  ): boolean {
    const { head } = this
    if (first !== this.complete + 1 || reader.offset !== head.extent || !head.isInOrder) return false
    const { count, total } = reader
    const last = first + count - 1
    if (this.ahead.count > 0 || last - this.n > largestRecordCredit || last > Number.MAX_SAFE_INTEGER) return false
    const life = lifeOf(lives, first)
    if (life === undefined || lifeOf(lives, last) !== life) return false
    if (head.isEmpty ? !this.mayBeNext(life, lifeBefore(lives, life)) : head.life.life !== life.life) return false
    if (!this.share.hasRoom(total) || !this.share.hasRoomToKeep(count * overheadComplete)) return false
    this.copyInOrder(life, reader, bytes)
    return true
  }

  private copyInOrder(life: Life, reader: RecordsReader, bytes: Uint8Array): void {
    const { head } = this
    const { count, total, dataStart } = reader
    const chunk = this.makeRoom(head.extent + total, -1)
    if (this.complete === this.n) this.share.handleProgress()
    copyBytes.call(bytes, chunk.bytes, head.base + head.extent, dataStart, dataStart + total)
    const wholes = reader.endsRecord ? count : count - 1
    let left = total
    if (wholes > 0) {
      const completed = chunk.appendAll(reader, wholes, head.extent, life)
      left -= completed - head.extent
      this.countComplete(wholes, completed, life)
      this.emptyHead(chunk)
    }
    if (wholes === count) return
    head.life = life
    head.extent += left
    head.ranges.setWhole(head.extent)
  }

  /** A part of a record that is complete already: held, unless it says otherwise. */
  private compareComplete(number: RecordNumber, life: Life, end: number, ends: boolean): Verdict {
    const chunk = this.chunks.findLast((candidate) => candidate.count > 0 && candidate.first <= number)!
    if (chunk.lifeOf(number).life !== life.life) return Verdict.otherLife
    const size = chunk.sizeOf(number)
    return end > size || (ends && end !== size) ? Verdict.contradiction : Verdict.kept
  }

  private placeInHead(
    life: Life,
    offset: number,
    bytes: Uint8Array,
    start: number,
    length: number,
    ends: boolean
  ): void {
    const { head } = this
    const end = offset + length
    this.makeRoom(Math.max(end, head.extent), head.size >= 0 ? head.size : ends ? end : -1)
    head.life = life
    if (this.complete === this.n) this.share.handleProgress()
    this.place(head, offset, bytes, start, length, ends)
    if (head.isComplete) {
      this.completeHead()
      this.promoteAhead()
    }
  }

  private placeAhead(
    held: HeldRecord,
    offset: number,
    bytes: Uint8Array,
    start: number,
    length: number,
    ends: boolean
  ): void {
    this.growAhead(held, offset + length, ends)
    const before = held.extent
    this.place(held, offset, bytes, start, length, ends)
    this.aheadBytes += held.extent - before
    if (this.faults.acceptGap === true && this.head.isEmpty && held.isComplete) this.skipMissingHead(held)
  }

  /** Makes the buffer of a record held ahead long enough for bytes up to `end`. */
  private growAhead(held: HeldRecord, end: number, ends: boolean): void {
    const before = held.bytes.length
    if (end <= before) return
    const needed = neededLength(end, ends ? end : -1)
    const doubled = ends ? end : Math.min(longestRecord, 2 * before)
    held.resize(this.share.bufferLength(doubled, needed, before))
    this.share.countBuffers(held.bytes.length - before)
  }

  private place(
    held: HeldRecord,
    offset: number,
    bytes: Uint8Array,
    start: number,
    length: number,
    ends: boolean
  ): void {
    const before = held.ranges.count
    held.place(offset, bytes, start, length, ends)
    this.extraRanges += extraRanges(held.ranges.count) - extraRanges(before)
  }

  /**
   * Whether a record of a life may stand after the last complete one (spec §8.4). `before` is what its own run lists as
   * the life before this one: where the life begins right here, that must be the life it follows, or a restored or
   * cloned outbox whose life happens to begin at this number would be mixed in.
   */
  private mayBeNext(life: Life, before: Id64 | undefined): boolean {
    if (!mayFollow(this.complete, this.completeLife, life)) return false
    const begins = this.complete > 0 && life.first === this.complete + 1
    return !begins || before === undefined || before === this.completeLife
  }

  private addAhead(number: RecordNumber, life: Life, lives: ReadonlyArray<Life>): HeldRecord {
    const held = new HeldRecord(number, life)
    held.lifeBefore = lifeBefore(lives, life)
    this.ahead.add(held, this.complete + 1)
    return held
  }

  /** The head is complete: it becomes the last record of its chunk. */
  private completeHead(): void {
    const { head } = this
    const chunk = this.chunks[this.chunks.length - 1] ?? this.makeRoom(0, 0)
    this.appendComplete(chunk, head.size, head.life)
    this.emptyHead(chunk)
  }

  private appendComplete(chunk: Chunk, size: Bytes, life: Life): void {
    chunk.append(size, life)
    this.countComplete(1, size, life)
  }

  private countComplete(records: number, bytes: Bytes, life: Life): void {
    if (this.complete === this.n) this.share.handleNextComplete()
    this.complete += records
    this.completeLife = life.life
    this.completeBytes += bytes
    if (this.completeBytes > this.mostComplete) this.mostComplete = this.completeBytes
  }

  /** The next head starts where the last complete record ends. */
  private emptyHead(chunk: Chunk): void {
    const { head } = this
    head.number = this.complete + 1
    head.size = -1
    head.extent = 0
    head.bytes = chunk.bytes
    head.base = chunk.end
    head.ranges.clear()
  }

  /** Records held ahead that have become next: complete ones follow, the first incomplete one becomes the head. */
  private promoteAhead(): void {
    while (this.ahead.count > 0) {
      const next = this.ahead.remove(this.complete + 1)
      if (next === undefined) return
      this.aheadBytes -= next.extent
      if (!this.mayBeNext(next.life, next.lifeBefore)) {
        this.extraRanges -= extraRanges(next.ranges.count)
        this.share.countBuffers(-next.bytes.length)
        this.droppedHeld = true
        return
      }
      this.takeAsHead(next)
      if (!this.head.isComplete) return
      this.completeHead()
    }
  }

  /** The record moves into the last chunk; a large one brings its own buffer instead. */
  private takeAsHead(next: HeldRecord): void {
    if (next.extent > adoptedBytes) {
      if (this.chunks.at(-1)?.count === 0) this.dropChunk(this.chunks.pop())
      this.chunks.push(new Chunk(this.complete + 1, next.bytes, this.share.memory.spareBuffers.takeSizes()))
      this.head = next
      return
    }
    const chunk = this.makeRoom(next.extent, next.size)
    chunk.bytes.set(next.bytes.subarray(0, next.extent), this.head.base)
    this.share.countBuffers(-next.bytes.length)
    next.bytes = chunk.bytes
    next.base = this.head.base
    this.head = next
  }

  /** A chunk, the last one, whose buffer has room for the head's first `end` bytes; the head's bytes move along. */
  private makeRoom(end: number, size: number): Chunk {
    const last = this.chunks[this.chunks.length - 1]
    if (last !== undefined && this.head.base + end <= last.bytes.length) return last
    if (last !== undefined) this.chunkBytes = Math.min(2 * this.chunkBytes, largestChunk)
    return this.addChunk(end, size)
  }

  /** A new last chunk. Where memory is short it is longer than needed by a share of what waits before it. */
  private addChunk(end: number, size: number): Chunk {
    const { head, share, chunkBytes } = this
    const doubled = size >= 0 ? size : Math.min(2 * end, longestRecord)
    const needed = Math.max(neededLength(end, size), Math.min(chunkBytes, this.completeBytes >>> 3))
    const last = this.chunks[this.chunks.length - 1]
    const replaced = last?.count === 0 ? last.bytes.length : 0
    const bytes = share.memory.spareBuffers.take(share.bufferLength(Math.max(chunkBytes, doubled), needed, replaced))
    share.countBuffers(bytes.length)
    if (head.extent > 0) bytes.set(head.bytes.subarray(head.base, head.base + head.extent))
    if (last?.count === 0) this.recycle(this.chunks.pop()!)
    const chunk = new Chunk(this.complete + 1, bytes, share.memory.spareBuffers.takeSizes())
    this.chunks.push(chunk)
    head.bytes = bytes
    head.base = 0
    return chunk
  }

  /** Everything before the head is stored: it leaves a chunk that is far larger than it. */
  private moveHead(chunk: Chunk): void {
    if (chunk.bytes.length <= 2 * this.head.extent + spareBytes) return
    this.fitChunks()
    this.addChunk(this.head.extent, this.head.size)
  }

  private dropChunk(chunk: Chunk | undefined): void {
    this.share.countBuffers(-chunk!.bytes.length)
  }

  /** Every record of the chunk is stored, so that no batch shares its buffer. */
  private recycle(chunk: Chunk): void {
    this.dropChunk(chunk)
    const { spareBuffers } = this.share.memory
    spareBuffers.give(chunk.bytes)
    spareBuffers.giveSizes(chunk.spareSizes)
  }

  /** Everything is stored: the next chunk is made for as much as waited at most since this was so, in one batch. */
  private fitChunks(): void {
    let bytes = smallestChunk
    while (bytes < this.mostComplete && bytes < largestChunk) bytes *= 2
    this.chunkBytes = bytes
    this.mostComplete = 0
  }

  /** The inbox is further than what was held: what it stored is dropped here. */
  private skipTo(n: RecordNumber, life: Id64): void {
    for (const chunk of this.chunks.splice(0)) this.dropChunk(chunk)
    this.completeBytes = 0
    this.extraRanges -= extraRanges(this.head.ranges.count)
    this.complete = n
    this.completeLife = life
    this.head = new HeldRecord(n + 1, noLife)
    for (const held of this.ahead.upTo(n)) {
      this.ahead.remove(held.number)
      this.aheadBytes -= held.extent
      this.extraRanges -= extraRanges(held.ranges.count)
      this.share.countBuffers(-held.bytes.length)
    }
  }

  /** The fault `acceptGap`: a missing record counts as an empty one as soon as a later one is complete. Tests only. */
  private skipMissingHead(later: HeldRecord): void {
    this.makeRoom(0, 0)
    this.head.size = 0
    this.head.life = later.life
    this.completeHead()
    this.promoteAhead()
  }
}

/** Copies without making a view of the source first; works on any Uint8Array. */
const copyBytes = Buffer.prototype.copy

const noLife: Life = { life: 0n, first: 1 }

const extraRanges = (ranges: number): number => Math.max(0, ranges - 1)

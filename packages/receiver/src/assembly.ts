import { type Bytes, type Id64, largestRecordCredit, type Life, lifeOf, longestRecord } from "@pure-link/wire"
import type { RecordBatch, RecordNumber, RecordsReader } from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import { Chunk } from "./chunk.ts"
import type { ReceiverFaults } from "./faults.ts"
import { HeldRecord, HeldRecords } from "./heldRecord.ts"
import { mayFollow } from "./lives.ts"

/**
 * The parts of one stream that are held until they are stored (spec §10.3, §10.5, §10.7). Three places, by number:
 *
 * - the *complete* records n+1 … `complete`, back to back in chunks from which batches are cut;
 * - the *head*, the first incomplete record, at the end of the last chunk, where parts in order are appended;
 * - records held *ahead* of it, each in a buffer of its own.
 *
 * Memory is counted by extent (the furthest byte held of each record), which is never more than what credit let an
 * honest sender send. Held never exceeds the limit by more than one longest record, whatever comes in whatever order.
 */

/** What became of a part. Only `kept` lets its packet into ACK. */
export const Verdict = { kept: 0, noRoom: 1, otherLife: 2, contradiction: 3 } as const
export type Verdict = (typeof Verdict)[keyof typeof Verdict]

/** Buffers of chunks are between these: a batch comes from one chunk, and an idle stream holds none. */
const smallestChunk = 4_096
const largestChunk = 4 * 1_048_576
/** A record held ahead that is larger than this becomes the head with its buffer, instead of being copied. */
const adoptedBytes = 65_536
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
  /** Bytes that the stream may hold, but for the room of the head. */
  limit: Bytes
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
  private readonly faults: ReceiverFaults

  constructor(n: RecordNumber, life: Id64, limit: Bytes, faults: ReceiverFaults = {}) {
    this.n = n
    this.complete = n
    this.completeLife = life
    this.limit = limit
    this.faults = faults
  }

  /** What is held, by extent, and what a commit under way still holds. */
  get heldBytes(): Bytes {
    return this.completeBytes + this.head.extent + this.aheadBytes
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
    if (this.appendInOrder(lives, first, reader, bytes)) return Verdict.kept
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
    } else if (isHead && !mayFollow(this.complete, this.completeLife, life)) return Verdict.otherLife
    const growth = Math.max(0, end - (held?.extent ?? 0))
    if (!(isHead ? this.hasRoomInHead : this.heldBytes + growth <= this.limit)) return Verdict.noRoom
    const addsRange = held !== undefined && !held.isEmpty && length > 0 && held.ranges.splits(offset, end)
    if (addsRange && this.extraRanges >= mostExtraRanges) return Verdict.noRoom
    if (isHead) this.placeInHead(life, offset, bytes, start, length, ends)
    else this.placeAhead(held ?? this.addAhead(number, life), offset, bytes, start, length, ends)
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
      if (chunk.count > 0 || (this.chunks.length === 1 && !this.head.isEmpty)) break
      this.chunks.shift()
    }
    if (this.chunks.length === 0) this.fitChunks()
    if (this.head.isEmpty) this.promoteAhead()
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
  }

  /**
   * The head always has room when it is n+1. When complete records wait before it, it has room for all of its 16 MiB
   * while they and what is held ahead are below the limit, so that the bound holds when it completes and the next one
   * becomes the head.
   */
  private get hasRoomInHead(): boolean {
    return this.complete === this.n || this.completeBytes + this.aheadBytes < this.limit
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
    const { count } = reader
    const last = first + count - 1
    if (this.ahead.count > 0 || last - this.n > largestRecordCredit) return false
    const life = lifeOf(lives, first)
    if (life === undefined || lifeOf(lives, last) !== life) return false
    if (head.isEmpty ? !mayFollow(this.complete, this.completeLife, life) : head.life.life !== life.life) return false
    let total = 0
    for (let i = 0; i < count - 1; i++) total += reader.length(i)
    const beforeLast = count === 1 ? 0 : head.extent + total
    if (this.complete > this.n || count > 1 ? this.completeBytes + beforeLast >= this.limit : false) return false
    total += reader.length(count - 1)
    this.copyInOrder(life, reader, bytes, total)
    return true
  }

  private copyInOrder(life: Life, reader: RecordsReader, bytes: Uint8Array, total: number): void {
    const { head } = this
    const chunk = this.makeRoom(head.extent + total, -1)
    chunk.bytes.set(bytes.subarray(reader.dataStart, reader.dataStart + total), head.base + head.extent)
    const wholes = reader.endsRecord ? reader.count : reader.count - 1
    let left = total
    for (let i = 0; i < wholes; i++) {
      const length = reader.length(i)
      this.appendComplete(chunk, i === 0 ? head.extent + length : length, life)
      left -= length
    }
    if (wholes > 0) this.emptyHead(chunk)
    if (wholes === reader.count) return
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
    held.grow(offset + length, ends)
    const before = held.extent
    this.place(held, offset, bytes, start, length, ends)
    this.aheadBytes += held.extent - before
    if (this.faults.acceptGap === true && this.head.isEmpty && held.isComplete) this.skipMissingHead(held)
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

  private addAhead(number: RecordNumber, life: Life): HeldRecord {
    const held = new HeldRecord(number, life)
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
    this.complete += 1
    this.completeLife = life.life
    this.completeBytes += size
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
      if (!mayFollow(this.complete, this.completeLife, next.life)) {
        this.extraRanges -= extraRanges(next.ranges.count)
        this.droppedHeld = true
        return
      }
      this.takeAsHead(next)
      if (!this.head.isComplete) return
      this.completeHead()
    }
  }

  private takeAsHead(next: HeldRecord): void {
    if (next.extent > adoptedBytes) {
      const chunk = new Chunk(this.complete + 1, next.bytes)
      if (this.chunks[this.chunks.length - 1]?.count === 0) this.chunks.pop()
      this.chunks.push(chunk)
      this.head = next
      return
    }
    const chunk = this.makeRoom(next.extent, next.size)
    chunk.bytes.set(next.bytes.subarray(0, next.extent), this.head.base)
    next.bytes = chunk.bytes
    next.base = this.head.base
    this.head = next
  }

  /** A chunk, the last one, whose buffer has room for the head's first `end` bytes; the head's bytes move along. */
  private makeRoom(end: number, size: number): Chunk {
    const { head } = this
    const last = this.chunks[this.chunks.length - 1]
    if (last !== undefined && head.base + end <= last.bytes.length) return last
    const wanted = size >= 0 ? size : end <= longestRecord ? Math.min(2 * end, longestRecord) : end
    if (last !== undefined) this.chunkBytes = Math.min(2 * this.chunkBytes, largestChunk)
    const chunk = new Chunk(this.complete + 1, new Uint8Array(Math.max(this.chunkBytes, wanted, end)))
    if (last !== undefined && head.extent > 0) {
      chunk.bytes.set(last.bytes.subarray(head.base, head.base + head.extent))
    }
    if (last?.count === 0) this.chunks.pop()
    this.chunks.push(chunk)
    head.bytes = chunk.bytes
    head.base = 0
    return chunk
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
    this.chunks = []
    this.completeBytes = 0
    this.extraRanges -= extraRanges(this.head.ranges.count)
    this.complete = n
    this.completeLife = life
    this.head = new HeldRecord(n + 1, noLife)
    for (const held of this.ahead.upTo(n)) {
      this.ahead.remove(held.number)
      this.aheadBytes -= held.extent
      this.extraRanges -= extraRanges(held.ranges.count)
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

const noLife: Life = { life: 0n, first: 1 }

const extraRanges = (ranges: number): number => Math.max(0, ranges - 1)

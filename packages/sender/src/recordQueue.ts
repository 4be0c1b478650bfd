import { Buffer } from "node:buffer"
import { ok as assert } from "node:assert/strict"
import { type Bytes, endOf, longestRecord, type RecordBatch, type RecordNumber } from "@pure-link/wire"

/**
 * The bounded queue between outbox and packets (spec §9.1): batches as they were read, and the positions of their records
 * in a ring.
 *
 * Records are laid end to end along one axis of *positions*. A record of `length` bytes takes `length + 1` of them:
 * one for each byte and one for its end. So a span of parts (spec §1) is an interval of positions, an empty record
 * included, and whether something was acknowledged, lost or cancelled is a question about intervals of numbers.
 */

/** A place on the axis of a queue; only ever grows. */
export type Position = number

/** Records that a queue holds at most, however short they are. */
export const mostQueuedRecords = 131_072

interface QueuedBatch {
  readonly buffer: Buffer
  readonly first: RecordNumber
  readonly end: RecordNumber
  /** The position of the batch's first record; of records dropped before the batch came, as if they had been queued. */
  readonly firstPosition: Position
}

export class RecordQueue {
  /** The lowest number that was not dropped. */
  first: RecordNumber
  /** The number after the last record queued. */
  end: RecordNumber
  /** The bytes of all records queued. */
  bytes: Bytes = 0

  /** The positions of records first…end, by number; that of `end` is where the next record will begin. */
  #positions = new Float64Array(64)
  /** The ring's length, a power of two, less one. */
  #mask = 63
  #batches: Array<QueuedBatch> = []
  /** The batch and the record that were asked for last: the next question is likely about them or those after them. */
  #latestBatch = 0
  #latestRecord: RecordNumber

  constructor(first: RecordNumber) {
    this.first = first
    this.end = first
    this.#latestRecord = first
  }

  get records(): number {
    return this.end - this.first
  }

  get firstPosition(): Position {
    return this.positionOf(this.first)
  }

  get endPosition(): Position {
    return this.positionOf(this.end)
  }

  /** Where a record begins; `first` ≤ number ≤ `end`. */
  positionOf(number: RecordNumber): Position {
    return this.#positions[number & this.#mask]!
  }

  lengthOf(number: RecordNumber): Bytes {
    return this.positionOf(number + 1) - this.positionOf(number) - 1
  }

  /**
   * For the loop that cuts: how many whole records of up to 255 B follow one another from a position within record
   * `number`, all of them ending by `end`, until `room` bytes are full with a byte more for each; their lengths too.
   */
  wholeRecords(number: RecordNumber, from: Position, end: Position, room: Bytes, lengths: Uint16Array): number {
    const positions = this.#positions
    const mask = this.#mask
    let slot = number & mask
    let position = from
    let left = room
    let count = 0
    while (count < lengths.length && position < end) {
      slot = (slot + 1) & mask
      const next = positions[slot]!
      const length = next - position - 1
      left -= length + 1
      if (next > end || length > 255 || left < 0) break
      lengths[count++] = length
      position = next
    }
    return count
  }

  /** A packet ended in this record or before it: the next one likely begins there. */
  expect(number: RecordNumber): void {
    this.#latestRecord = number
  }

  /** The record that a position belongs to; `firstPosition` ≤ position < `endPosition`. */
  recordAt(position: Position): RecordNumber {
    const likely = this.#latestRecord
    if (likely >= this.first && likely < this.end && position >= this.positionOf(likely)) {
      if (position < this.positionOf(likely + 1)) return likely
      if (likely + 1 < this.end && position < this.positionOf(likely + 2)) return (this.#latestRecord = likely + 1)
    }
    return (this.#latestRecord = this.#findRecord(position))
  }

  #findRecord(position: Position): RecordNumber {
    let low = this.first
    let high = this.end - 1
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if (this.positionOf(middle) <= position) low = middle
      else high = middle - 1
    }
    return low
  }

  /** Queues the records of a batch from `end` on; those before it were stored while the batch was being read. */
  append(batch: RecordBatch): void {
    assert(batch.first <= this.end, "a batch must continue the queue")
    const { sizes, bytes } = batch
    const skipped = Math.min(this.end - batch.first, sizes.length)
    if (skipped === sizes.length) return
    this.#makeRoom(this.records + sizes.length - skipped + 1)
    let firstPosition = this.endPosition
    for (let i = 0; i < skipped; i++) firstPosition -= sizes[i]! + 1
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    this.#batches.push({ buffer, first: batch.first, end: endOf(batch), firstPosition })
    const from = this.endPosition
    const end = this.#lay(sizes, skipped)
    this.bytes += end - from - (sizes.length - skipped)
    this.end = endOf(batch)
    assert(end - firstPosition === bytes.length + sizes.length, "sizes of a batch must add up to its bytes")
  }

  /** Notes where the records of these sizes, from an index on, begin behind the queue's end; returns where they end. */
  #lay(sizes: Uint32Array, from: number): Position {
    const positions = this.#positions
    const mask = this.#mask
    let slot = this.end & mask
    let position = positions[slot]!
    let longest = 0
    for (let i = from; i < sizes.length; i++) {
      const size = sizes[i]!
      if (size > longest) longest = size
      position += size + 1
      slot = (slot + 1) & mask
      positions[slot] = position
    }
    assert(longest <= longestRecord, "a record of a batch is longer than 16 MiB")
    return position
  }

  /** Drops the records through n, queued or not. */
  dropThrough(n: RecordNumber): void {
    if (n < this.first) return
    const from = this.firstPosition
    const kept = Math.min(n + 1, this.end)
    this.bytes -= this.positionOf(kept) - from - (kept - this.first)
    if (n < this.end - 1) this.first = kept
    else {
      const position = this.endPosition
      this.first = this.end = n + 1
      this.#positions[this.end & this.#mask] = position
    }
    this.#dropBatches()
  }

  /** Copies consecutive record bytes, from `offset` in a record on, across records and batches. */
  copy(number: RecordNumber, offset: Bytes, length: Bytes, out: Uint8Array, at: number): void {
    let index = this.#batchOf(number)
    const { first, firstPosition } = this.#batches[index]!
    let { buffer } = this.#batches[index]!
    let start = this.positionOf(number) - firstPosition - (number - first) + offset
    let left = length
    while (left > buffer.length - start) {
      const piece = buffer.length - start
      buffer.copy(out, at, start, start + piece)
      left -= piece
      at += piece
      const { end } = this.#batches[index]!
      const next = this.#batches[++index]!
      // What of the next batch was dropped before it came is skipped.
      start = this.positionOf(end) - next.firstPosition - (end - next.first)
      buffer = next.buffer
    }
    buffer.copy(out, at, start, start + left)
    this.#latestBatch = index
  }

  /** The index of the batch that holds a record. */
  #batchOf(number: RecordNumber): number {
    const batches = this.#batches
    const likely = batches[this.#latestBatch]
    if (likely !== undefined && number >= likely.first && number < likely.end) {
      // Batches overlap where one was dropped in part before it came: the earlier one holds the record.
      if (this.#latestBatch === 0 || number >= batches[this.#latestBatch - 1]!.end) return this.#latestBatch
    }
    let low = 0
    let high = batches.length - 1
    while (low < high) {
      const middle = (low + high) >>> 1
      if (batches[middle]!.end > number) high = middle
      else low = middle + 1
    }
    return (this.#latestBatch = low)
  }

  #dropBatches(): void {
    let gone = 0
    while (gone < this.#batches.length && this.#batches[gone]!.end <= this.first) gone++
    if (gone === 0) return
    this.#batches.splice(0, gone)
    this.#latestBatch = Math.max(0, this.#latestBatch - gone)
  }

  #makeRoom(entries: number): void {
    const former = this.#positions
    if (entries <= former.length) return
    let length = former.length
    while (length < entries) length *= 2
    const positions = new Float64Array(length)
    for (let number = this.first; number <= this.end; number++) {
      positions[number & (length - 1)] = former[number & this.#mask]!
    }
    this.#positions = positions
    this.#mask = length - 1
  }
}

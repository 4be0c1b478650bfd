import { Buffer } from "node:buffer"
import { ok as assert } from "node:assert/strict"
import { type Bytes, endOf, longestRecord, type RecordBatch, type RecordNumber } from "@pure-link/wire"

/**
 * The bounded queue between outbox and packets (spec §9.1): batches as they were read, and an index of their records
 * in rings.
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
  readonly batch: RecordBatch
  readonly buffer: Buffer
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
  /** Which batch holds a record, counted from the first batch ever queued, by number. */
  #batchOf = new Uint32Array(64)
  #batches: Array<QueuedBatch> = []
  /** The count of batches that left `#batches`. */
  #batchesGone = 0

  constructor(first: RecordNumber) {
    this.first = first
    this.end = first
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
    return this.#positions[number % this.#positions.length]!
  }

  lengthOf(number: RecordNumber): Bytes {
    return this.positionOf(number + 1) - this.positionOf(number) - 1
  }

  /** The record that a position belongs to; `firstPosition` ≤ position < `endPosition`. */
  recordAt(position: Position): RecordNumber {
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
    const skipped = Math.min(this.end - batch.first, batch.sizes.length)
    if (skipped === batch.sizes.length) return
    this.#makeRoom(this.records + batch.sizes.length - skipped + 1)
    let position = this.endPosition
    let firstPosition = position
    for (let i = 0; i < skipped; i++) firstPosition -= batch.sizes[i]! + 1
    const index = this.#batchesGone + this.#batches.length
    const buffer = Buffer.from(batch.bytes.buffer, batch.bytes.byteOffset, batch.bytes.length)
    this.#batches.push({ batch, buffer, firstPosition })
    for (let i = skipped; i < batch.sizes.length; i++) {
      const size = batch.sizes[i]!
      assert(size <= longestRecord, "a record of a batch is longer than 16 MiB")
      this.#batchOf[this.end % this.#batchOf.length] = index
      this.end++
      this.bytes += size
      position += size + 1
      this.#positions[this.end % this.#positions.length] = position
    }
    const taken = position - firstPosition
    assert(taken === batch.bytes.length + batch.sizes.length, "sizes of a batch must add up to its bytes")
  }

  /** Drops the records through n, queued or not. */
  dropThrough(n: RecordNumber): void {
    if (n < this.first) return
    const from = this.firstPosition
    const kept = Math.min(n + 1, this.end)
    this.bytes -= this.positionOf(kept) - from - (kept - this.first)
    if (n < this.end - 1) {
      this.first = kept
      this.#dropBatchesBefore(this.#batchOf[kept % this.#batchOf.length]!)
    } else {
      const position = this.endPosition
      this.first = this.end = n + 1
      this.#positions[this.end % this.#positions.length] = position
      this.#dropBatchesBefore(this.#batchesGone + this.#batches.length)
    }
  }

  /** Copies consecutive record bytes, from `offset` in a record on, across records and batches. */
  copy(number: RecordNumber, offset: Bytes, length: Bytes, out: Uint8Array, at: number): void {
    let left = length
    let batchIndex = this.#batchOf[number % this.#batchOf.length]! - this.#batchesGone
    let queued = this.#batches[batchIndex]!
    let start = this.positionOf(number) - queued.firstPosition - (number - queued.batch.first) + offset
    for (;;) {
      const piece = Math.min(left, queued.buffer.length - start)
      queued.buffer.copy(out, at, start, start + piece)
      left -= piece
      if (left === 0) return
      at += piece
      const next = this.#batches[++batchIndex]!
      start = this.positionOf(endOf(queued.batch)) - next.firstPosition - (endOf(queued.batch) - next.batch.first)
      queued = next
    }
  }

  #dropBatchesBefore(index: number): void {
    const gone = index - this.#batchesGone
    if (gone === 0) return
    this.#batches.splice(0, gone)
    this.#batchesGone = index
  }

  #makeRoom(entries: number): void {
    const former = this.#positions.length
    if (entries <= former) return
    let length = former
    while (length < entries) length *= 2
    const positions = new Float64Array(length)
    const batchOf = new Uint32Array(length)
    for (let number = this.first; number <= this.end; number++) {
      positions[number % length] = this.#positions[number % former]!
      batchOf[number % length] = this.#batchOf[number % former]!
    }
    this.#positions = positions
    this.#batchOf = batchOf
  }
}

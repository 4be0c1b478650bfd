import type { Bytes } from "@pure-link/wire"

/**
 * What the records of a benchmark contain, and whether what arrived is that. Records repeat after `period` of them, so
 * that a sender hands one buffer over again and again and a receiver knows what record n must be without being told.
 *
 *     0   index of the record within the period, u32, below 2^14
 *     4   send time in milliseconds, f64 (rated runs; else 0)
 *     12  bytes that differ from record to record
 *
 * A short record holds what fits. All numbers are little-endian.
 */

const timeOffset = 4
export const timeEnd = 12

/** About this much is handed over at a time. */
const batchBytes: Bytes = 1_048_576
const mostPerBatch = 16_384

export class Pattern {
  readonly size: Bytes
  /** Records until the content repeats. */
  readonly period: number
  /** One period, and the sizes of its records. */
  readonly bytes: Uint8Array
  readonly sizes: Uint32Array
  /** The last byte of each. */
  readonly tails: Uint8Array
  readonly #buffer: Buffer

  constructor(size: Bytes) {
    this.size = size
    this.period = Math.max(1, Math.min(mostPerBatch, Math.floor(batchBytes / Math.max(1, size))))
    this.bytes = new Uint8Array(this.period * size)
    this.sizes = new Uint32Array(this.period).fill(size)
    this.#buffer = Buffer.from(this.bytes.buffer)
    for (let index = 0; index < this.period; index++) this.#fill(index)
    this.tails = Uint8Array.from({ length: this.period }, (_, index) => this.bytes[(index + 1) * size - 1] ?? 0)
  }

  /** The index of a record by its number in the stream, from 1. */
  indexOf(number: number): number {
    return (number - 1) % this.period
  }

  /** A copy of record `number` with its send time. */
  stamped(number: number, sentAt: number): Uint8Array {
    const start = this.indexOf(number) * this.size
    const record = this.bytes.slice(start, start + this.size)
    if (this.size >= timeEnd) new DataView(record.buffer).setFloat64(timeOffset, sentAt, true)
    return record
  }

  /** Every byte of `bytes[start, start + size)` but the send time. */
  isWhole(bytes: Uint8Array, start: number, index: number): boolean {
    const own = index * this.size
    return (
      this.#isSame(bytes, start, own, Math.min(timeOffset, this.size)) &&
      (this.size <= timeEnd || this.#isSame(bytes, start + timeEnd, own + timeEnd, this.size - timeEnd))
    )
  }

  #isSame(bytes: Uint8Array, start: number, own: number, length: number): boolean {
    return this.#buffer.compare(bytes, start, start + length, own, own + length) === 0
  }

  #fill(index: number): void {
    const start = index * this.size
    let state = (index + 1) * 2_654_435_761
    for (let at = timeEnd; at < this.size; at++) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      this.bytes[start + at] = state >>> 24
    }
    const head = [index & 255, (index >>> 8) & 255, (index >>> 16) & 255, index >>> 24]
    for (let at = 0; at < Math.min(timeOffset, this.size); at++) this.bytes[start + at] = head[at]!
  }
}

/** How many records in a row are looked at by length, index and last byte only, before one is compared whole. */
export type Strictness = "every" | "sampled"
const sampledEvery = 64

/**
 * Counts what is not as it was sent: length, number, order and content. The size is that of the first record, as a
 * receiver is not told it.
 */
export class RecordCheck {
  bad = 0
  records = 0
  bytes = 0
  #pattern: Pattern | undefined
  #next = 1
  #index = 0
  readonly #wholeEvery: number
  #untilWhole = 0

  constructor(strictness: Strictness, pattern?: Pattern) {
    this.#wholeEvery = strictness === "every" ? 1 : sampledEvery
    this.#pattern = pattern
  }

  /** Records one after another from `start` on, with the number of the first; returns where they end. */
  batch(bytes: Uint8Array, start: number, sizes: Uint32Array, from: number, to: number, first: number): number {
    if (from === to) return start
    const pattern = (this.#pattern ??= new Pattern(sizes[from]!))
    if (first !== this.#next) this.#jump(first, pattern)
    const { period, size, tails } = pattern
    let at = start
    let index = this.#index
    let untilWhole = this.#untilWhole
    for (let i = from; i < to; i++) {
      const length = sizes[i]!
      if (length !== size) this.bad++
      else if (--untilWhole <= 0 || size < timeOffset) {
        untilWhole = this.#wholeEvery
        if (!pattern.isWhole(bytes, at, index)) this.bad++
      } else if (
        bytes[at] !== (index & 255) ||
        bytes[at + 1] !== index >>> 8 ||
        bytes[at + size - 1] !== tails[index]
      ) {
        this.bad++
      }
      at += length
      if (++index === period) index = 0
    }
    this.#index = index
    this.#untilWhole = untilWhole
    this.#next += to - from
    this.records += to - from
    this.bytes += at - start
    return at
  }

  /** Record numbers begin anew with another outbox; any other jump lost or repeated records. */
  #jump(first: number, pattern: Pattern): void {
    if (first !== 1) this.bad++
    this.#next = first
    this.#index = pattern.indexOf(first)
  }
}

/** The send time that a record carries; 0 when it carries none. */
export const sentAtOf = (view: DataView, start: number, length: number): number =>
  length >= timeEnd ? view.getFloat64(start + timeOffset, true) : 0

/** Milliseconds of a clock that all processes of a machine share, and those of several as far as their clocks agree. */
export const sharedMillis = (): number => performance.timeOrigin + performance.now()

import type { Bytes, Id64, Life, RecordNumber } from "@pure-link/wire"
import { ByteRanges } from "./byteRanges.ts"

/**
 * A record of which some parts are held (spec §10.3): its bytes at their places, which of them are there, and its end
 * once a part told it. Its extent is everything up to the furthest byte held.
 */
export class HeldRecord {
  number: RecordNumber
  /** Held parts belong to (number, life) (spec §8.8). */
  life: Life
  /** The life before it, as the run that sent it lists it (spec §8.4). */
  lifeBefore: Id64 | undefined
  /** Its length; −1 until a part that ends it came. */
  size = -1
  /** The end of the furthest part: what it counts against the stream's limit. */
  extent: Bytes = 0
  /** Byte `offset` of the record is `bytes[base + offset]`. */
  bytes: Uint8Array = noBytes
  base = 0
  ranges = new ByteRanges()

  constructor(number: RecordNumber, life: Life) {
    this.number = number
    this.life = life
  }

  /** No part is held. An empty record, whose only part is empty, is held once its size is known. */
  get isEmpty(): boolean {
    return this.extent === 0 && this.size < 0
  }

  get isComplete(): boolean {
    return this.size >= 0 && this.ranges.isWhole(this.size)
  }

  /** Whether all that is held is one piece from its start, and its end is unknown: the next part can be appended. */
  get isInOrder(): boolean {
    return this.size < 0 && this.ranges.isWhole(this.extent)
  }

  /** Bytes beyond the known end, or a second end (spec §10.3). */
  contradicts(end: number, ends: boolean): boolean {
    if (this.size >= 0) return end > this.size || (ends && end !== this.size)
    return ends && end < this.extent
  }

  /** Takes a part whose room was made; `end` may equal `offset` only for a whole empty record. */
  place(offset: number, bytes: Uint8Array, start: number, length: number, ends: boolean): void {
    const end = offset + length
    if (length > 0) {
      this.bytes.set(bytes.subarray(start, start + length), this.base + offset)
      this.ranges.add(offset, end)
    }
    if (end > this.extent) this.extent = end
    if (ends) this.size = end
  }

  /** Moves to a buffer of its own of this length, if it is longer than the present one. */
  resize(length: Bytes): void {
    if (length <= this.bytes.length) return
    const larger = new Uint8Array(length)
    larger.set(this.bytes.subarray(0, Math.min(this.extent, this.bytes.length)))
    this.bytes = larger
  }
}

const noBytes = new Uint8Array(0)

/**
 * Held records beyond the first incomplete one, by number: a ring that grows with their span, at most to 65,536 slots.
 */
export class HeldRecords {
  count = 0
  private slots = emptyRing(smallestRing)

  /** The record of this number; all numbers asked for lie within the credit of one another. */
  get(number: RecordNumber): HeldRecord | undefined {
    const record = this.slots[number & (this.slots.length - 1)]
    return record !== undefined && record.number === number ? record : undefined
  }

  /** `from` is the lowest number that may be held: the span that the ring must tell apart starts there. */
  add(record: HeldRecord, from: RecordNumber): void {
    if (record.number - from >= this.slots.length) this.widen(record.number - from + 1)
    this.slots[record.number & (this.slots.length - 1)] = record
    this.count += 1
  }

  remove(number: RecordNumber): HeldRecord | undefined {
    const record = this.get(number)
    if (record === undefined) return undefined
    this.slots[number & (this.slots.length - 1)] = undefined
    this.count -= 1
    if (this.count === 0 && this.slots.length > smallestRing) this.clear()
    return record
  }

  clear(): void {
    this.count = 0
    this.slots = emptyRing(smallestRing)
  }

  /** The records up to `number`, in no order. */
  upTo(number: RecordNumber): ReadonlyArray<HeldRecord> {
    return this.slots.filter((record) => record !== undefined && record.number <= number) as ReadonlyArray<HeldRecord>
  }

  private widen(span: number): void {
    let length = this.slots.length
    while (length < span) length *= 2
    const wider = emptyRing(length)
    for (const record of this.slots) if (record !== undefined) wider[record.number & (length - 1)] = record
    this.slots = wider
  }
}

const smallestRing = 16

const emptyRing = (length: number): Array<HeldRecord | undefined> => Array.from({ length }, () => undefined)

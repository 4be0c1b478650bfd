import { type Bytes, type Life, lifeOf, type RecordBatch, type RecordNumber } from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"

/**
 * Complete records in order, back to back in one buffer: what a batch for the inbox is cut from without copying. The
 * buffer is only ever appended to, because a batch handed over shares it (spec §10.5).
 */
export class Chunk {
  readonly bytes: Uint8Array
  /** The first record that is not stored, and where its bytes start. */
  first: RecordNumber
  start: Bytes = 0
  /** Where the bytes of the last complete record end. */
  end: Bytes = 0
  /** The sizes of all records ever appended; the first `stored` of them are stored. */
  private sizes = new Uint32Array(16)
  private total = 0
  private stored = 0
  /** The life of the records from `first` of the entry's number on. */
  private readonly lifeStarts: Array<RecordNumber> = []
  private readonly lives: Array<Life> = []

  constructor(first: RecordNumber, bytes: Uint8Array) {
    this.first = first
    this.bytes = bytes
  }

  /** Complete records that are not stored. */
  get count(): number {
    return this.total - this.stored
  }

  /** The record whose `size` bytes stand at `end` is complete. */
  append(size: Bytes, life: Life): void {
    if (this.total === this.sizes.length) {
      const larger = new Uint32Array(2 * this.total)
      larger.set(this.sizes)
      this.sizes = larger
    }
    if (this.lives.length === 0 || this.lives[this.lives.length - 1]!.life !== life.life) {
      this.lifeStarts.push(this.first + this.count)
      this.lives.push(life)
    }
    this.sizes[this.total++] = size
    this.end += size
    assert(this.end <= this.bytes.length)
  }

  sizeOf(number: RecordNumber): Bytes {
    return this.sizes[this.stored + number - this.first]!
  }

  /** The life of a record of this chunk. */
  lifeOf(number: RecordNumber): Life {
    let i = this.lives.length - 1
    while (i > 0 && this.lifeStarts[i]! > number) i -= 1
    return this.lives[i]!
  }

  /** The records from the first unstored one on that fit `mostBytes`, at least one. */
  batch(mostBytes: Bytes): { readonly batch: RecordBatch; readonly lives: ReadonlyArray<Life> } {
    let bytes = this.sizes[this.stored]!
    let count = 1
    while (count < this.count && bytes + this.sizes[this.stored + count]! <= mostBytes) {
      bytes += this.sizes[this.stored + count]!
      count += 1
    }
    const { first, start, stored } = this
    const end = first + count
    const lives = this.lives.filter(
      (_, i) => this.lifeStarts[i]! < end && (i + 1 === this.lives.length || this.lifeStarts[i + 1]! > first)
    )
    const batch = {
      first,
      bytes: this.bytes.subarray(start, start + bytes),
      sizes: this.sizes.slice(stored, stored + count)
    }
    assert(batch.sizes.every((_, i) => lifeOf(lives, first + i) !== undefined))
    return { batch, lives }
  }

  /** The records up to `n` are stored; returns their bytes. */
  release(n: RecordNumber): Bytes {
    const { start } = this
    while (this.count > 0 && this.first <= n) {
      this.start += this.sizes[this.stored++]!
      this.first += 1
    }
    return this.start - start
  }
}

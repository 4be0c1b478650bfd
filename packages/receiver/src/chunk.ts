import { type Bytes, type Life, lifeOf, type RecordBatch, type RecordNumber, type RecordsReader } from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"

/**
 * Complete records in order, back to back in one buffer: what a batch for the inbox is cut from without copying. Buffer and
 * sizes are only ever appended to, because a batch handed over shares them until its outcome is told (spec §10.5).
 */
export class Chunk {
  readonly bytes: Uint8Array
  /** The first record that is not stored, and where its bytes start. */
  first: RecordNumber
  start: Bytes = 0
  /** Where the bytes of the last complete record end. */
  end: Bytes = 0
  /** The sizes of the records appended; the first `stored` of them are stored, and give way when there is no more room. */
  private sizes: Uint32Array
  private total = 0
  private stored = 0
  /** The life of the records from `first` of the entry's number on. */
  private readonly lifeStarts: Array<RecordNumber> = []
  private readonly lives: Array<Life> = []

  constructor(first: RecordNumber, bytes: Uint8Array, sizes: Uint32Array) {
    this.first = first
    this.bytes = bytes
    this.sizes = sizes
  }

  /** The array of sizes, when nobody needs them any more. */
  get spareSizes(): Uint32Array {
    return this.sizes
  }

  /** Complete records that are not stored. */
  get count(): number {
    return this.total - this.stored
  }

  /** The record whose `size` bytes stand at `end` is complete. */
  append(size: Bytes, life: Life): void {
    this.makeRoom(1)
    this.noteLife(life)
    this.sizes[this.total++] = size
    this.end += size
    assert(this.end <= this.bytes.length)
  }

  /** The first `count` parts of a frame complete as many records at `end`; `before` bytes of the first one stood there. */
  appendAll(reader: RecordsReader, count: number, before: Bytes, life: Life): Bytes {
    this.makeRoom(count)
    this.noteLife(life)
    const bytes = before + reader.copyLengths(this.sizes, this.total, count)
    this.sizes[this.total]! += before
    this.total += count
    this.end += bytes
    assert(this.end <= this.bytes.length)
    return bytes
  }

  /**
   * Makes room for the sizes of more records, in place of those that are stored: a chunk of short records may never be empty
   * when a commit ends. The former array stays as it is, because a batch under way may share it.
   */
  private makeRoom(records: number): void {
    const { count, sizes } = this
    if (this.total + records <= sizes.length) return
    this.sizes = new Uint32Array(Math.max(sizes.length, 2 * count, count + records))
    this.sizes.set(sizes.subarray(this.stored, this.total))
    this.total = count
    this.stored = 0
  }

  private noteLife(life: Life): void {
    if (this.lives.length > 0 && this.lives[this.lives.length - 1]!.life === life.life) return
    this.lifeStarts.push(this.first + this.count)
    this.lives.push(life)
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
    const { first, start, stored, sizes } = this
    let bytes = this.end - start
    let { count } = this
    if (bytes > mostBytes) {
      bytes = sizes[stored]!
      count = 1
      while (bytes + sizes[stored + count]! <= mostBytes) bytes += sizes[stored + count++]!
    }
    const end = first + count
    const lives = this.lives.filter(
      (_, i) => this.lifeStarts[i]! < end && (i + 1 === this.lives.length || this.lifeStarts[i + 1]! > first)
    )
    assert(lifeOf(lives, first) !== undefined, "lives begin at or before the first record of a batch")
    const batch = {
      first,
      bytes: this.bytes.subarray(start, start + bytes),
      sizes: sizes.subarray(stored, stored + count)
    }
    return { batch, lives }
  }

  /** The records up to `n` are stored; returns their bytes. */
  release(n: RecordNumber): Bytes {
    const { start, sizes, stored } = this
    const released = Math.max(0, Math.min(n - this.first + 1, this.count))
    let bytes = 0
    if (released === this.count) bytes = this.end - start
    else for (let i = stored; i < stored + released; i++) bytes += sizes[i]!
    this.stored += released
    this.first += released
    this.start += bytes
    while (this.lives.length > 1 && this.lifeStarts[1]! <= this.first) {
      this.lifeStarts.shift()
      this.lives.shift()
    }
    return bytes
  }
}

import type { RecordBatch } from "@pure-link/wire"
import { datagramBytes, headerBytes, tagBytes } from "./floor.ts"

/**
 * Records in columns, as the floor packs them: a packet has a table of lengths, then the bytes of all its parts in one
 * piece, so that it costs one copy on each side.
 *
 *     0   number of the record that the first part belongs to, u32
 *     4   where in it that part begins, u32
 *     8   how many parts, u16; the highest bit says that the last one ends its record
 *     10  their lengths, u16 each, then their bytes
 *
 * After a header of 12 B. All numbers are little-endian.
 */

const bodyOffset = headerBytes
export const tableOffset = bodyOffset + 10
const room = datagramBytes - tagBytes - tableOffset
const endsRecord = 0x8000

/** Packs records that go round and round: the same batch again and again. */
export class Packer {
  /** Records begun, from 1. */
  record = 1
  #offset = 0
  #index = 0
  #byte = 0
  readonly #sizes: Uint32Array
  readonly #bytes: Buffer
  readonly #length: number

  constructor({ bytes, sizes }: Pick<RecordBatch, "bytes" | "sizes">) {
    this.#sizes = sizes
    this.#length = bytes.length
    // A packet may reach beyond the end, into the next round.
    this.#bytes = Buffer.alloc(bytes.length + datagramBytes)
    for (let at = 0; at < this.#bytes.length; at += bytes.length)
      this.#bytes.set(bytes.subarray(0, this.#bytes.length - at), at)
  }

  /** Fills the body of a packet that starts at `start`. Every packet is full. */
  pack(slab: Uint8Array, start: number): void {
    const sizes = this.#sizes
    const count = sizes.length
    writeWord(slab, start + bodyOffset, this.record)
    writeWord(slab, start + bodyOffset + 4, this.#offset)
    let at = start + tableOffset
    let left = room
    let offset = this.#offset
    let index = this.#index
    let record = this.record
    let parts = 0
    let bytes = 0
    let ends = endsRecord
    while (left > 2) {
      let length = sizes[index]! - offset
      parts++
      if (length > left - 2) {
        length = left - 2
        offset += length
        ends = 0
      }
      slab[at] = length
      slab[at + 1] = length >>> 8
      at += 2
      left -= length + 2
      bytes += length
      if (ends === 0) break
      offset = 0
      record++
      if (++index === count) index = 0
    }
    const table = start + bodyOffset + 8
    slab[table] = parts
    slab[table + 1] = (parts | ends) >>> 8
    this.#bytes.copy(slab, at, this.#byte, this.#byte + bytes)
    this.#byte += bytes
    if (this.#byte >= this.#length) this.#byte -= this.#length
    this.#offset = offset
    this.#index = index
    this.record = record
  }
}

/** Takes records out of packets that come in order, and hands them over in batches. */
export class Unpacker {
  /** Whole records so far. */
  records = 0
  /** Packets that do not go on where the one before ended. */
  breaks = 0
  #bytes: Uint8Array
  readonly #sizes: Uint32Array
  #used = 0
  /** Records that are whole, and whether one more is begun, behind them. */
  #whole = 0
  #isBegun = false
  #first = 1
  readonly #handOver: (bytes: Uint8Array, sizes: Uint32Array, count: number, first: number) => void

  constructor(
    batchBytes: number,
    handOver: (bytes: Uint8Array, sizes: Uint32Array, count: number, first: number) => void
  ) {
    this.#bytes = new Uint8Array(batchBytes)
    this.#sizes = new Uint32Array(batchRecords)
    this.#handOver = handOver
  }

  /** Opened packet bytes, from the header on. */
  unpack(slab: Uint8Array, source: Buffer, start: number): void {
    const table = start + bodyOffset + 8
    const parts = slab[table]! | ((slab[table + 1]! & 0x7f) << 8)
    if (this.#whole + parts >= batchRecords || this.#used + datagramBytes > this.#bytes.length) this.flush()
    const begins = readWord(slab, start + bodyOffset + 4) === 0
    if (begins === this.#isBegun || readWord(slab, start + bodyOffset) !== this.#first + this.#whole) this.breaks++
    const sizes = this.#sizes
    let at = start + tableOffset
    let whole = this.#whole
    let bytes = slab[at]! | (slab[at + 1]! << 8)
    sizes[whole] = begins ? bytes : sizes[whole]! + bytes
    at += 2
    for (let part = 1; part < parts; part++) {
      const length = slab[at]! | (slab[at + 1]! << 8)
      sizes[++whole] = length
      bytes += length
      at += 2
    }
    source.copy(this.#bytes, this.#used, at, at + bytes)
    this.#used += bytes
    this.#isBegun = slab[table + 1]! < 0x80
    if (!this.#isBegun) whole++
    this.records += whole - this.#whole
    this.#whole = whole
  }

  /** Hands over what is whole and keeps what is begun. */
  flush(): void {
    const whole = this.#whole
    if (whole === 0) return this.#enlarge()
    const begun = this.#isBegun ? this.#sizes[whole]! : 0
    this.#handOver(this.#bytes, this.#sizes, whole, this.#first)
    this.#bytes.copyWithin(0, this.#used - begun, this.#used)
    this.#sizes[0] = begun
    this.#first += whole
    this.#used = begun
    this.#whole = 0
  }

  /** One record is longer than the whole buffer. */
  #enlarge(): void {
    const larger = new Uint8Array(this.#bytes.length * 2)
    larger.set(this.#bytes)
    this.#bytes = larger
  }
}

const batchRecords = 32_768

const writeWord = (slab: Uint8Array, at: number, value: number): void => {
  slab[at] = value
  slab[at + 1] = value >>> 8
  slab[at + 2] = value >>> 16
  slab[at + 3] = value >>> 24
}

const readWord = (slab: Uint8Array, at: number): number =>
  (slab[at]! | (slab[at + 1]! << 8) | (slab[at + 2]! << 16) | (slab[at + 3]! << 24)) >>> 0

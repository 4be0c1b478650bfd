import type { PacketNumber } from "@pure-link/wire"

/**
 * A set of packet numbers within a fixed reach below a moving largest one, as a ring of bits. Falling numbers stand at
 * rising positions, so that a piece of the ring is a piece of an ACK_MAP (spec §4.5). Whoever moves the largest number
 * forgets those that leave. All questions go downwards and word by word.
 */
export class NumberBits {
  private readonly words: Uint32Array
  private readonly mask: number

  /** `reach` is a power of two, at least 32. */
  constructor(reach: number) {
    this.words = new Uint32Array(reach / 32)
    this.mask = reach - 1
  }

  has(number: PacketNumber): boolean {
    const position = this.positionOf(number)
    return ((this.words[position >>> 5]! >>> (position & 31)) & 1) !== 0
  }

  add(number: PacketNumber): void {
    const position = this.positionOf(number)
    this.words[position >>> 5]! |= 1 << (position & 31)
  }

  /** Adds the numbers from `first` to `last`. */
  addAll(first: PacketNumber, last: PacketNumber): void {
    for (let number = first; number <= last;) {
      // Rising numbers stand at falling positions.
      const position = this.positionOf(number)
      const bit = position & 31
      const count = Math.min(bit + 1, last - number + 1)
      this.words[position >>> 5]! |= (count === 32 ? -1 : (1 << count) - 1) << (bit + 1 - count)
      number += count
    }
  }

  remove(number: PacketNumber): void {
    const position = this.positionOf(number)
    this.words[position >>> 5]! &= ~(1 << (position & 31))
  }

  /** Makes the positions of `largest + 1 … next` those of new numbers. */
  forget(largest: PacketNumber, next: PacketNumber): void {
    if (next - largest > this.mask) {
      this.words.fill(0)
      return
    }
    for (let number = largest + 1; number <= next;) {
      if ((number & 31) === 0 && number + 31 <= next) {
        this.words[this.positionOf(number) >>> 5] = 0
        number += 32
      } else {
        this.remove(number)
        number += 1
      }
    }
  }

  /**
   * The next number at or below `from` that is in the set (or, for `present` false, is not); `floor − 1` when none is.
   */
  nextDown(from: PacketNumber, floor: PacketNumber, present: boolean): PacketNumber {
    const flip = present ? 0 : -1
    for (let number = from; number >= floor;) {
      const position = this.positionOf(number)
      const word = (this.words[position >>> 5]! ^ flip) >>> (position & 31)
      if (word !== 0) return Math.max(floor - 1, number - (31 - Math.clz32(word & -word)))
      number -= 32 - (position & 31)
    }
    return floor - 1
  }

  /** Fills in the ranges between `from` and `floor`, newest first, as many as there is room for; returns how many. */
  rangesDown(from: PacketNumber, floor: PacketNumber, lows: Float64Array, highs: Float64Array): number {
    let count = 0
    let number = from
    while (count < lows.length) {
      const high = this.nextDown(number, floor, true)
      if (high < floor) break
      number = this.nextDown(high, floor, false)
      highs[count] = high
      lows[count] = number + 1
      count += 1
    }
    return count
  }

  /**
   * Copies the bits from `from` down into `byteCount` bytes, least significant bit first; those below `floor` are
   * clear.
   */
  mapDown(from: PacketNumber, floor: PacketNumber, out: Uint8Array, byteCount: number): void {
    const start = this.positionOf(from)
    const bits = from - floor + 1
    for (let i = 0; i < byteCount; i++) {
      const position = (start + 8 * i) & this.mask
      const shift = position & 31
      let byte = this.words[position >>> 5]! >>> shift
      if (shift > 24) byte |= this.words[((position + 8) & this.mask) >>> 5]! << (32 - shift)
      const left = bits - 8 * i
      out[i] = left >= 8 ? byte : byte & ((1 << Math.max(0, left)) - 1)
    }
  }

  /** `&` takes its operands modulo 2^32, which keeps the low bits of any number below 2^53. */
  private positionOf(number: PacketNumber): number {
    return ~number & this.mask
  }
}

/** Removes what is in the set from `from` down to `floor`, one step per number removed; returns how many. */
export const clearDown = (bits: NumberBits, from: PacketNumber, floor: PacketNumber): number => {
  let removed = 0
  for (let number = bits.nextDown(from, floor, true); number >= floor; number = bits.nextDown(number, floor, true)) {
    bits.remove(number)
    removed += 1
  }
  return removed
}

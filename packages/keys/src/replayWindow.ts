import type { PacketNumber } from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"

/**
 * Which packet numbers may still be new (spec §10.2, after RFC 6479): everything above the largest number marked, and
 * what was not marked of the `depth` numbers that end with it. Ask with `accepts` before opening; `mark` only once the
 * tag has verified.
 */
export class ReplayWindow {
  readonly depth: number
  private readonly words: Uint32Array
  private readonly wordMask: number
  private highest: PacketNumber

  /**
   * `depth` is a power of two, at least 32; a run's is at least the reach of acknowledgements (spec §17). A window that
   * begins in the middle of a run takes the largest number known of: what came before it, it lets in once.
   */
  constructor(depth: number, largest: PacketNumber = -1) {
    assert(depth >= 32 && depth <= 2 ** 30 && (depth & (depth - 1)) === 0)
    this.depth = depth
    this.highest = largest
    this.words = new Uint32Array(depth / 32)
    this.wordMask = depth / 32 - 1
  }

  /** The largest number marked; −1 before the first. */
  get largest(): number {
    return this.highest
  }

  /** Whether a packet of this number may be new. Changes nothing. */
  accepts(number: PacketNumber): boolean {
    if (number > this.highest) return true
    if (number <= this.highest - this.depth) return false
    return (this.words[this.wordOf(number)]! & (1 << (number & 31))) === 0
  }

  /** Remembers a number that `accepts` let in and whose packet opened. */
  mark(number: PacketNumber): void {
    assert(number > this.highest - this.depth && number >= 0)
    if (number > this.highest) this.advance(number)
    this.words[this.wordOf(number)]! |= 1 << (number & 31)
  }

  /** Remembers the numbers from `first` to `last`, all above the largest so far. */
  markAll(first: PacketNumber, last: PacketNumber): void {
    assert(first > this.highest && last >= first)
    this.advance(last)
    for (let number = first; number <= last;) {
      const bit = number & 31
      const count = Math.min(32 - bit, last - number + 1)
      this.words[this.wordOf(number)]! |= (count === 32 ? -1 : (1 << count) - 1) << bit
      number += count
    }
  }

  /** Forgets the numbers that the slots of highest + 1 … number stood for. */
  private advance(number: PacketNumber): void {
    if (number - this.highest >= this.depth) this.words.fill(0)
    else {
      for (let next = this.highest + 1; next <= number;) {
        const word = this.wordOf(next)
        if ((next & 31) === 0 && next + 31 <= number) {
          this.words[word] = 0
          next += 32
        } else {
          this.words[word]! &= ~(1 << (next & 31))
          next += 1
        }
      }
    }
    this.highest = number
  }

  /** `&` takes its operands modulo 2^32, which keeps the low bits that choose a word of any number below 2^53. */
  private wordOf(number: PacketNumber): number {
    return Math.floor(number / 32) & this.wordMask
  }
}

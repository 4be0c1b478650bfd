import { mostBlocks } from "./segment.ts"

/**
 * The receiver's SACK blocks, the one changed last first (RFC 2018 §4); four are kept and as many told as fit
 * (`tcp_sack_new_ofo_skb`). What falls off the end is forgotten, though the segments are not.
 */

const mostKept = 4
/** An acknowledgement that waits must go before there is more to tell than this (`TCP_SACK_BLOCKS_EXPECTED`). */
const mostUntold = 2

export class SackBlocks {
  count = 0
  readonly #starts = new Float64Array(mostKept + 1)
  readonly #ends = new Float64Array(mostKept + 1)

  /** A segment arrived out of order. False if the acknowledgement must not wait. */
  add(segment: number): boolean {
    let start = segment
    let end = segment + 1
    let kept = 0
    let extended = this.count
    for (let i = 0; i < this.count; i++) {
      if (this.#starts[i]! <= end && this.#ends[i]! >= start) {
        extended = Math.min(extended, i)
        start = Math.min(start, this.#starts[i]!)
        end = Math.max(end, this.#ends[i]!)
      } else this.#move(i, kept++)
    }
    for (let i = kept; i > 0; i--) this.#move(i - 1, i)
    this.#starts[0] = start
    this.#ends[0] = end
    this.count = Math.min(kept + 1, mostKept)
    return extended < mostUntold
  }

  /** Everything before `next` arrived in order. */
  removeBefore(next: number): void {
    let kept = 0
    for (let i = 0; i < this.count; i++) if (this.#ends[i]! > next) this.#move(i, kept++)
    this.count = kept
  }

  /** Copies as many as fit from `from` on; returns where they end. */
  copyTo(starts: Float64Array, ends: Float64Array, from: number): number {
    const count = Math.min(this.count, mostBlocks - from)
    for (let i = 0; i < count; i++) {
      starts[from + i] = this.#starts[i]!
      ends[from + i] = this.#ends[i]!
    }
    return from + count
  }

  #move(from: number, to: number): void {
    this.#starts[to] = this.#starts[from]!
    this.#ends[to] = this.#ends[from]!
  }
}

import type { Position } from "./recordQueue.ts"

/**
 * A sorted list of disjoint spans (spec §9.1, §9.2). One holds what needs sending again, with every span as it was
 * sent; another what the current reply run acknowledged, where neighbours merge. A late acknowledgement is a removal
 * from the first and an addition to the second, however the bytes were cut meanwhile.
 */
export class Spans {
  #starts = new Float64Array(64)
  #ends = new Float64Array(64)
  #head = 0
  #tail = 0

  get count(): number {
    return this.#tail - this.#head
  }

  /** Where span i begins; 0 is the lowest. */
  start(i: number): Position {
    return this.#starts[this.#head + i]!
  }

  end(i: number): Position {
    return this.#ends[this.#head + i]!
  }

  clear(): void {
    this.#head = this.#tail = 0
  }

  /** The index of the first span that ends beyond a position; `count` when none does. */
  firstBeyond(position: Position): number {
    let low = 0
    let high = this.count
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.end(middle) > position) high = middle
      else low = middle + 1
    }
    return low
  }

  /** Whether all of [start, end) lies in the list, pieces taken together. */
  covers(start: Position, end: Position): boolean {
    for (let i = this.firstBeyond(start); start < end; i++) {
      if (i >= this.count || this.start(i) > start) return false
      start = this.end(i)
    }
    return true
  }

  /** Adds what of [start, end) is not yet there, as spans of their own. */
  add(start: Position, end: Position): void {
    let i = this.firstBeyond(start)
    while (start < end) {
      const gapEnd = i < this.count ? Math.min(end, this.start(i)) : end
      if (start < gapEnd) {
        this.#replace(i, 0, start, gapEnd)
        i++
      }
      if (i >= this.count) return
      start = Math.max(gapEnd, this.end(i))
      i++
    }
  }

  /** Adds what of [start, end) lies outside `others`. */
  addOutside(start: Position, end: Position, others: Spans): void {
    for (let i = others.firstBeyond(start); start < end; i++) {
      const gapEnd = i < others.count ? Math.min(end, others.start(i)) : end
      if (start < gapEnd) this.add(start, gapEnd)
      if (i >= others.count) return
      start = Math.max(gapEnd, others.end(i))
    }
  }

  /** Adds [start, end) and merges it with every span that it meets or touches. */
  merge(start: Position, end: Position): void {
    if (start >= end) return
    let from = this.firstBeyond(start)
    if (from > 0 && this.end(from - 1) === start) from--
    let to = from
    while (to < this.count && this.start(to) <= end) {
      start = Math.min(start, this.start(to))
      end = Math.max(end, this.end(to))
      to++
    }
    this.#replace(from, to - from, start, end)
  }

  /** Takes [start, end) out, splitting spans that reach beyond it. */
  remove(start: Position, end: Position): void {
    if (start >= end) return
    let from = this.firstBeyond(start)
    if (from < this.count && this.start(from) < start) {
      const spanEnd = this.end(from)
      this.#ends[this.#head + from] = start
      from++
      if (spanEnd > end) {
        this.#replace(from, 0, end, spanEnd)
        return
      }
    }
    let to = from
    while (to < this.count && this.end(to) <= end) to++
    if (to < this.count && this.start(to) < end) this.#starts[this.#head + to] = end
    this.#cut(from, to - from)
  }

  /** Replaces `gone` spans at i by one. */
  #replace(i: number, gone: number, start: Position, end: Position): void {
    if (gone === 0) this.#open(i)
    else this.#cut(i + 1, gone - 1)
    this.#starts[this.#head + i] = start
    this.#ends[this.#head + i] = end
  }

  #open(i: number): void {
    if (this.#tail === this.#starts.length) this.#makeRoom()
    const at = this.#head + i
    this.#starts.copyWithin(at + 1, at, this.#tail)
    this.#ends.copyWithin(at + 1, at, this.#tail)
    this.#tail++
  }

  #cut(i: number, gone: number): void {
    if (gone <= 0) return
    if (i === 0) {
      this.#head += gone
    } else {
      const at = this.#head + i
      this.#starts.copyWithin(at, at + gone, this.#tail)
      this.#ends.copyWithin(at, at + gone, this.#tail)
      this.#tail -= gone
    }
    if (this.#head === this.#tail) this.#head = this.#tail = 0
  }

  /** Moves the list to the front, into longer arrays if they are more than half full. */
  #makeRoom(): void {
    const { count } = this
    const length = count * 2 > this.#starts.length ? this.#starts.length * 2 : this.#starts.length
    const starts = new Float64Array(length)
    const ends = new Float64Array(length)
    starts.set(this.#starts.subarray(this.#head, this.#tail))
    ends.set(this.#ends.subarray(this.#head, this.#tail))
    this.#starts = starts
    this.#ends = ends
    this.#head = 0
    this.#tail = count
  }
}

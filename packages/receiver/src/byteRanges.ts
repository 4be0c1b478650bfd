/**
 * Which bytes of a record are held: ranges that rise and do not touch. The usual record has one, which grows at its
 * end. Adding costs a binary search and one move within two arrays, whatever order the parts come in. They are plain
 * arrays, made when the first range is: typed ones cost more than what most records held ahead need.
 */
export class ByteRanges {
  private lows: Array<number> = nothing
  private highs: Array<number> = nothing
  private first = 0
  private last = 0

  get count(): number {
    return this.lows.length
  }

  clear(): void {
    if (this.count === 0) return
    this.lows.length = 0
    this.highs.length = 0
  }

  /** Holds exactly [0, end). */
  setWhole(end: number): void {
    this.make()
    this.lows.length = 1
    this.highs.length = 1
    this.lows[0] = 0
    this.highs[0] = end
  }

  /** Whether exactly [0, end) is held. */
  isWhole(end: number): boolean {
    return end === 0 ? this.count === 0 : this.count === 1 && this.lows[0] === 0 && this.highs[0] === end
  }

  /** Whether all of [low, high) is held. */
  covers(low: number, high: number): boolean {
    this.locate(low, high)
    return this.first < this.count && this.lows[this.first]! <= low && this.highs[this.first]! >= high
  }

  /** Whether adding [low, high) would leave one range more than now. */
  splits(low: number, high: number): boolean {
    this.locate(low, high)
    return this.first > this.last
  }

  /** Adds [low, high), which is not empty, and merges what it touches. */
  add(low: number, high: number): void {
    this.make()
    this.locate(low, high)
    const { first, highs, last, lows } = this
    if (first > last) {
      lows.splice(first, 0, low)
      highs.splice(first, 0, high)
      return
    }
    lows[first] = Math.min(lows[first]!, low)
    highs[first] = Math.max(highs[last]!, high)
    if (last === first) return
    lows.splice(first + 1, last - first)
    highs.splice(first + 1, last - first)
  }

  private make(): void {
    if (this.lows !== nothing) return
    this.lows = []
    this.highs = []
  }

  /** Finds the ranges that [low, high) overlaps or touches: `first` to `last`, none when `first > last`. */
  private locate(low: number, high: number): void {
    this.first = lowerBound(this.highs, low)
    this.last = lowerBound(this.lows, high + 1) - 1
  }
}

/** Shared by all that hold nothing. */
const nothing: Array<number> = []
Object.freeze(nothing)

/** The first index whose value is at least `value`; the length when none is. */
const lowerBound = (values: ReadonlyArray<number>, value: number): number => {
  let low = 0
  let high = values.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (values[middle]! < value) low = middle + 1
    else high = middle
  }
  return low
}

/**
 * Which bytes of a record are held: ranges that rise and do not touch. The usual record has one, which grows at its
 * end. Adding costs a binary search and one move within two arrays, whatever order the parts come in. They are plain
 * arrays, made when the first range is: typed ones cost more than what most records held ahead need. They keep their
 * length when ranges go, because cutting an array costs more than all else here.
 */
export class ByteRanges {
  /** Ranges held: the first so many of the arrays. */
  count = 0
  private lows: Array<number> = nothing
  private highs: Array<number> = nothing
  private first = 0
  private last = 0

  clear(): void {
    this.count = 0
  }

  /** Holds exactly [0, end). */
  setWhole(end: number): void {
    this.make()
    this.count = 1
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
    if (first > last) return this.insert(first, low, high)
    lows[first] = Math.min(lows[first]!, low)
    highs[first] = Math.max(highs[last]!, high)
    if (last > first) this.cut(first + 1, last - first)
  }

  private insert(at: number, low: number, high: number): void {
    this.lows.splice(at, 0, low)
    this.highs.splice(at, 0, high)
    this.count += 1
    if (this.lows.length <= 2 * this.count + mostUnused) return
    this.lows.length = this.highs.length = this.count
  }

  private cut(at: number, gone: number): void {
    this.lows.splice(at, gone)
    this.highs.splice(at, gone)
    this.count -= gone
  }

  private make(): void {
    if (this.lows !== nothing) return
    this.lows = []
    this.highs = []
  }

  /** Finds the ranges that [low, high) overlaps or touches: `first` to `last`, none when `first > last`. */
  private locate(low: number, high: number): void {
    this.first = lowerBound(this.highs, this.count, low)
    this.last = lowerBound(this.lows, this.count, high + 1) - 1
  }
}

/** Entries beyond those in use that an array may have. */
const mostUnused = 8

/** Shared by all that hold nothing. */
const nothing: Array<number> = []
Object.freeze(nothing)

/** The first index below `count` whose value is at least `value`; `count` when none is. */
const lowerBound = (values: ReadonlyArray<number>, count: number, value: number): number => {
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >>> 1
    if (values[middle]! < value) low = middle + 1
    else high = middle
  }
  return low
}

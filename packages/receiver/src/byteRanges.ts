/**
 * Which bytes of a record are held: ranges that rise and do not touch. The usual record has one, which grows at its
 * end. Adding costs a binary search and one move within two small typed arrays, whatever order the parts come in.
 */
export class ByteRanges {
  count = 0
  private lows = new Uint32Array(2)
  private highs = new Uint32Array(2)
  private first = 0
  private last = 0

  clear(): void {
    this.count = 0
  }

  /** Holds exactly [0, end). */
  setWhole(end: number): void {
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
    this.locate(low, high)
    const { first, last } = this
    if (first > last) this.insert(first, low, high)
    else {
      this.lows[first] = Math.min(this.lows[first]!, low)
      this.highs[first] = Math.max(this.highs[last]!, high)
      if (last > first) {
        this.lows.copyWithin(first + 1, last + 1, this.count)
        this.highs.copyWithin(first + 1, last + 1, this.count)
        this.count -= last - first
      }
    }
  }

  /** Finds the ranges that [low, high) overlaps or touches: `first` to `last`, none when `first > last`. */
  private locate(low: number, high: number): void {
    this.first = lowerBound(this.highs, this.count, low)
    this.last = lowerBound(this.lows, this.count, high + 1) - 1
  }

  private insert(index: number, low: number, high: number): void {
    if (this.count === this.lows.length) {
      this.lows = grown(this.lows)
      this.highs = grown(this.highs)
    }
    this.lows.copyWithin(index + 1, index, this.count)
    this.highs.copyWithin(index + 1, index, this.count)
    this.lows[index] = low
    this.highs[index] = high
    this.count += 1
  }
}

/** The first index whose value is at least `value`; `count` when none is. */
const lowerBound = (values: Uint32Array, count: number, value: number): number => {
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >>> 1
    if (values[middle]! < value) low = middle + 1
    else high = middle
  }
  return low
}

const grown = (values: Uint32Array): Uint32Array<ArrayBuffer> => {
  const larger = new Uint32Array(2 * values.length)
  larger.set(values)
  return larger
}

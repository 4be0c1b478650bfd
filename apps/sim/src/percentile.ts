/** The nearest-rank percentile: the smallest value that at least this fraction of all values do not exceed. */
export const percentile = (sorted: ArrayLike<number>, fraction: number): number => {
  if (sorted.length === 0) return Number.NaN
  const rank = Math.ceil(fraction * sorted.length)
  return sorted[Math.min(Math.max(rank, 1), sorted.length) - 1]!
}

/** The middle value, or the mean of the two middle ones. */
export const median = (values: ReadonlyArray<number>): number => {
  const sorted = Float64Array.from(values).sort()
  const middle = sorted.length >> 1
  if (sorted.length === 0) return Number.NaN
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

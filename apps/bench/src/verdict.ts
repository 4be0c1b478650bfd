/**
 * The arithmetic of a comparison: medians, the ratio to the floor, and whether a run counts. The guide is what the
 * floor took on a quiet machine of the kind (docs/bench.md); one so busy that the floor takes 1.7 times as long says nothing
 * about the link.
 */

export const median = (values: ReadonlyArray<number>): number => {
  if (values.length === 0) return Number.NaN
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** The value below which a fraction of all lies (nearest rank); NaN of none. */
export const percentile = (sorted: Float64Array, fraction: number): number =>
  sorted.length === 0 ? Number.NaN : sorted[Math.max(0, Math.ceil(fraction * sorted.length) - 1)]!

/** CPU of both ends for a record through the floor loop, microseconds, by record size. */
export const guideMicros: ReadonlyMap<number, number> = new Map([
  [61, 0.137],
  [1_013, 2.07],
  [16_384, 30.4]
])

/** The floor may be this much above the guide. */
const mostOverGuide = 1.7

export interface FloorVerdict {
  /** The median of the ratios pair by pair. */
  readonly ratio_to_floor: number
  readonly ratios: ReadonlyArray<number>
  readonly floor_us_per_record: number
  /** What the guide has for this size, and how far the floor is above it; null for a size that it has not. */
  readonly guide_us_per_record: number | null
  readonly floor_to_guide: number | null
  readonly counts: boolean
  readonly why: string | null
}

/** CPU per record of the link and of the floor, pair by pair as they alternated. */
export const judgeFloor = (
  size: number,
  link: ReadonlyArray<number>,
  floor: ReadonlyArray<number>,
  bad: number
): FloorVerdict => {
  const ratios = link.map((value, i) => value / floor[i]!)
  const floorMicros = median(floor)
  const guide = guideMicros.get(size) ?? null
  const over = guide === null ? null : floorMicros / guide
  const why =
    bad > 0
      ? `${bad} records were not as they were sent`
      : over !== null && over > mostOverGuide
        ? `the floor took ${over.toFixed(2)} times the guide's ${guide} µs: this machine is too busy or too slow now`
        : null
  return {
    ratio_to_floor: rounded(median(ratios), 3),
    ratios: ratios.map((ratio) => rounded(ratio, 3)),
    floor_us_per_record: rounded(floorMicros, 4),
    guide_us_per_record: guide,
    floor_to_guide: over === null ? null : rounded(over, 3),
    counts: why === null,
    why
  }
}

export const rounded = (value: number, digits: number): number => {
  const scale = 10 ** digits
  return Math.round(value * scale) / scale
}

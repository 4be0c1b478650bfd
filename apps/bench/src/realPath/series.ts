/**
 * Goodput out of a row of values second by second: what lies between two whole seconds, or nothing when the run was too
 * short to know it.
 */

/** The mean of the seconds [from, to). A second counts as whole when a later one has begun. */
export const meanOfSeconds = (series: ReadonlyArray<number>, from: number, to: number): number | undefined => {
  if (!(to > from) || series.length <= to) return undefined
  let sum = 0
  for (let second = from; second < to; second++) sum += series[second]!
  return sum / (to - from)
}

/** What one of two flows has of both. */
export const shareOf = (ours: number, theirs: number): number => ours / (ours + theirs)

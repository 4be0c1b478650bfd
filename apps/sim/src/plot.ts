import type { Point } from "./timeSeries.ts"

/**
 * A small plot of a row of numbers in block characters: a column per point, an eighth of a row per step.
 */

const blocks = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] as const
const rows = 6

/** Lines of text: a title with the top of the scale, the plot, and an axis of seconds. */
export const plot = (
  title: string,
  unit: string,
  points: ReadonlyArray<Point>,
  of: (point: Point) => number
): ReadonlyArray<string> => {
  const top = niceTop(Math.max(0, ...points.map(of)))
  const heights = points.map((point) => Math.round((of(point) / top) * rows * 8))
  const lines = Array.from({ length: rows }, (_, row) => {
    const below = (rows - 1 - row) * 8
    const label = row === 0 ? String(top) : row === rows - 1 ? "0" : ""
    return `${label.padStart(8)} │${heights.map((height) => blocks[clamp(height - below)]).join("")}`
  })
  const end = points[points.length - 1]?.seconds ?? 0
  const axis = `${" ".repeat(8)} └${"─".repeat(points.length)}`
  const seconds = `${" ".repeat(9)} 0${`${round(end)} s`.padStart(points.length - 1)}`
  return [`${title}, ${unit}`, ...lines, axis, seconds]
}

const clamp = (eighths: number): number => Math.max(0, Math.min(8, eighths))

/** The next of 1, 2, 2.5, 5 times a power of ten. */
export const niceTop = (value: number): number => {
  if (!(value > 0)) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  const factor = [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((step) => step * power >= value * (1 - 1e-9)) ?? 10
  return Number((factor * power).toPrecision(6))
}

const round = (seconds: number): number => Number(seconds.toPrecision(3))

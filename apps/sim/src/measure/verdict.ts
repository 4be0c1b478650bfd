import { median } from "../percentile.ts"
import type { Check, RawRun, Row } from "./row.ts"

/** Judges raw runs by the bars of their rows. */

export interface Verdict {
  readonly row: Row
  readonly what: string
  /** The bar in words; empty when the figure is only told. */
  readonly bar: string
  readonly median: number | string
  readonly least: number | string
  readonly most: number | string
  readonly seeds: number
  /** `told`: there is no bar. `missing`: there are no runs, or fewer than there should be. */
  readonly state: "holds" | "missed" | "missing" | "told"
}

export type RunsOf = (row: string) => ReadonlyArray<RawRun>

/** One verdict for each check of a row, and for its twin. */
export const judge = (row: Row, runsOf: RunsOf): ReadonlyArray<Verdict> => {
  const verdicts = row.checks.map((check) => judgeCheck(row, check, runsOf))
  return row.twin === undefined ? verdicts : [...verdicts, judgeTwin(row, row.twin.what, runsOf(row.id))]
}

const judgeCheck = (row: Row, check: Check, runsOf: RunsOf): Verdict => {
  const runs = mainRuns(runsOf(row.id))
  const found = runs.map(({ result }) => check.of(result))
  const values = found.filter((value) => value !== null)
  const bounds = boundsOf(check, runsOf)
  const shown = (value: number) => (values.length === 0 ? "–" : value.toFixed(check.digits))
  const [least, most] = [Math.min(...values), Math.max(...values)]
  const judged = check.judged === "median" ? [median(values)] : values
  const holds =
    values.length === found.length &&
    judged.every((value) => value >= (bounds?.least ?? -Infinity) && value <= (bounds?.most ?? Infinity))
  return {
    row,
    what: check.what,
    bar: barOf(check, bounds),
    median: shown(median(values)),
    least: shown(least),
    most: values.length < found.length ? "never" : shown(most),
    seeds: runs.length,
    state:
      runs.length < row.seeds || bounds === undefined
        ? "missing"
        : bounds.least === undefined && bounds.most === undefined
          ? "told"
          : holds
            ? "holds"
            : "missed"
  }
}

const judgeTwin = (row: Row, what: string, runs: ReadonlyArray<RawRun>): Verdict => {
  const main = mainRuns(runs).find(({ seed }) => seed === 1)?.result.trace_digest
  const twin = runs.find(({ variant }) => variant === "twin")?.result.trace_digest
  const state = main === undefined || twin === undefined ? "missing" : main === twin ? "holds" : "missed"
  return { row, what, bar: "equal", median: twin ?? "–", least: "", most: "", seeds: 1, state }
}

interface Bounds {
  readonly least?: number | undefined
  readonly most?: number | undefined
}

/** Undefined while the row that the bar depends on was not measured. */
const boundsOf = ({ least, leastOf, most, of }: Check, runsOf: RunsOf): Bounds | undefined => {
  if (leastOf === undefined) return { least, most }
  const others = mainRuns(runsOf(leastOf.row)).map(({ result }) => of(result) ?? Number.NaN)
  return others.length === 0 ? undefined : { least: leastOf.factor * median(others), most }
}

const barOf = ({ digits, judged, leastOf }: Check, bounds: Bounds | undefined): string => {
  const { least, most } = bounds ?? {}
  const text = (value: number) => (leastOf === undefined ? String(value) : value.toFixed(digits))
  const which = judged === "every" ? "each " : ""
  if (least !== undefined && least === most) return `${which}= ${least}`
  if (least !== undefined && most !== undefined) return `${which}${text(least)}–${text(most)}`
  if (least !== undefined)
    return `${which}≥ ${text(least)}${leastOf === undefined ? "" : ` (${leastOf.factor} of ${leastOf.row})`}`
  return most === undefined ? "" : `${which}≤ ${text(most)}`
}

const mainRuns = (runs: ReadonlyArray<RawRun>): ReadonlyArray<RawRun> =>
  runs.filter(({ variant }) => variant === "main")

import { median } from "../percentile.ts"
import type { Check, RawRun, Row, Twin } from "./row.ts"

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
  /** `told`: there is no bar. `missing`: a run of it, or of the row that its bar depends on, is not there. */
  readonly state: "holds" | "missed" | "missing" | "told"
}

export type RunsOf = (row: string) => ReadonlyArray<RawRun>

/** One verdict for each check of a row, and for its twin. */
export const judge = (row: Row, runsOf: RunsOf): ReadonlyArray<Verdict> => {
  const verdicts = row.checks.map((check) => judgeCheck(row, check, runsOf))
  return row.twin === undefined ? verdicts : [...verdicts, judgeTwin(row, row.twin, runsOf)]
}

const judgeCheck = (row: Row, check: Check, runsOf: RunsOf): Verdict => {
  const runs = mainRuns(row, runsOf)
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

const judgeTwin = (row: Row, { what }: Twin, runsOf: RunsOf): Verdict => {
  const main = mainRuns(row, runsOf).find(({ seed }) => seed === 1)?.result.trace_digest
  const twin = twinRun(row, runsOf)?.result.trace_digest
  const state = main === undefined || twin === undefined ? "missing" : main === twin ? "holds" : "missed"
  return { row, what, bar: "equal", median: twin ?? "–", least: "", most: "", seeds: 1, state }
}

interface Bounds {
  readonly least?: number | undefined
  readonly most?: number | undefined
}

/** Undefined while the row that the bar depends on was not measured whole. */
const boundsOf = ({ least, leastOf, most, of }: Check, runsOf: RunsOf): Bounds | undefined => {
  if (leastOf === undefined) return { least, most }
  const others = mainRuns(leastOf.row, runsOf).map(({ result }) => of(result) ?? Number.NaN)
  return others.length < leastOf.row.seeds ? undefined : { least: leastOf.factor * median(others), most }
}

const barOf = ({ digits, judged, leastOf }: Check, bounds: Bounds | undefined): string => {
  const { least, most } = bounds ?? {}
  const text = (value: number) => (leastOf === undefined ? String(value) : value.toFixed(digits))
  const which = judged === "every" ? "each " : ""
  if (least !== undefined && least === most) return `${which}= ${least}`
  if (least !== undefined && most !== undefined) return `${which}${text(least)}–${text(most)}`
  if (least !== undefined)
    return `${which}≥ ${text(least)}${leastOf === undefined ? "" : ` (${leastOf.factor} of ${leastOf.row.id})`}`
  return most === undefined ? "" : `${which}≤ ${text(most)}`
}

/** The runs of a row as it is now: of other arguments or seeds none counts, and of each seed one. */
export const mainRuns = (row: Row, runsOf: RunsOf): ReadonlyArray<RawRun> => {
  const runs = runsOf(row.id).filter(({ variant }) => variant === "main")
  return Array.from({ length: row.seeds }, (_, i) => i + 1).flatMap((seed) => {
    const args = row.argsOf(seed)
    return runs.find((run) => run.seed === seed && areEqual(run.args, args)) ?? []
  })
}

/** The run beside that of seed 1, if the row asks for one and it was made. */
export const twinRun = (row: Row, runsOf: RunsOf): RawRun | undefined => {
  if (row.twin === undefined) return undefined
  const args = [...row.argsOf(1), ...row.twin.args]
  return runsOf(row.id).find((run) => run.variant === "twin" && run.seed === 1 && areEqual(run.args, args))
}

const areEqual = (some: ReadonlyArray<string>, others: ReadonlyArray<string>): boolean =>
  some.length === others.length && some.every((word, i) => word === others[i])

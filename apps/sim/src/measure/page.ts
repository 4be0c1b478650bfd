import { median } from "../percentile.ts"
import { niceTop } from "../plot.ts"
import type { RawRun, Row } from "./row.ts"
import { type Group, groups } from "./row.ts"
import { type Bar, barPlot, linePlot } from "./svg.ts"
import { judge, mainRuns, type RunsOf, twinRun, type Verdict } from "./verdict.ts"

/**
 * The page of measurements and its plots, made from raw results alone: the same results give the same bytes.
 */

export interface Page {
  readonly markdown: string
  /** File names, beside the raw results, and their contents. */
  readonly plots: ReadonlyMap<string, string>
}

/** `remarks`: what is to be said about rows, in Markdown. */
export const makePage = (rows: ReadonlyArray<Row>, runsOf: RunsOf, remarks: string): Page => {
  const plots = plotsOf(rows, runsOf)
  const sections = (Object.keys(groups) as ReadonlyArray<Group>).flatMap((group) => {
    const ofGroup = rows.filter((row) => row.group === group)
    return ofGroup.length === 0 ? [] : [section(groups[group], ofGroup, runsOf)]
  })
  const pictures = [...plots.keys()].map((file) => `![${file.replace(/\.svg$/, "")}](lossy-paths/${file})`)
  const parts = [preface, summaryOf(rows, runsOf), codeOf(rows, runsOf), ...pictures, ...sections, remarks.trim()]
  return { markdown: `${parts.filter((part) => part !== "").join("\n\n")}\n`, plots }
}

const preface = `# Lossy paths

What the link does on paths that are slow, long, lossy, reordering or broken, measured in virtual time with the
production driver and machines. \`npm run --silent measure\` makes this page from runs of \`npm run --silent sim\`;
the raw results lie beside it, one file of JSON lines per row, with the arguments of each run. \`measure --only
ROW,ROW\` repeats rows, \`--page-only\` makes the page again from what is there.

If a row says nothing else: forward, all flows pass one bottleneck of 50 Mbit/s with a drop-tail queue of one RTT
(bytes on the wire, 28 B of IP and UDP headers per datagram included), then half the RTT ± jitter and random loss. The
way back has delay, jitter and loss and no bottleneck: answers do not queue behind data. Loss and jitter act in both
directions, as on the emulated path that the figures of others come from. Records have 1,013 B. Goodput counts record
bytes when they are first received; rows of goodput leave out the first 2 s.

"each" bars hold for every seed, the others for the median. Without jitter, loss and events the seeds of a row differ
in keys only. Delay steps, blackouts, black holes and idle times come a part of a second or some part of a few round
trips later with each seed, so that each meets the path in another state. The last columns are known figures of others
on the same kind of path: quinn 0.11, ngtcp2 1.25, TCP CUBIC of a Linux kernel.`

const summaryOf = (rows: ReadonlyArray<Row>, runsOf: RunsOf): string => {
  const verdicts = rows.flatMap((row) => judge(row, runsOf))
  const count = (state: Verdict["state"]) => verdicts.filter((verdict) => verdict.state === state).length
  const missed = verdicts.filter(({ state }) => state === "missed").map(({ row, what }) => `\`${row.id}\` (${what})`)
  const judged = count("holds") + missed.length
  const absent = count("missing") > 0 ? ` ${count("missing")} are not measured.` : ""
  const bad = missed.length > 0 ? ` Missed: ${missed.join(", ")}.` : ""
  return `**${count("holds")} of ${judged} bars hold.**${bad}${absent}`
}

/** With which code was measured; if it was not one for all, what with which. */
const codeOf = (rows: ReadonlyArray<Row>, runsOf: RunsOf): string => {
  const found = rows.flatMap((row) => {
    const twin = twinRun(row, runsOf)
    return [...mainRuns(row, runsOf), ...(twin === undefined ? [] : [twin])]
  })
  const codes = [...new Set(found.map(({ code }) => code))]
  if (codes.length === 0) return ""
  if (codes.length === 1) return `Measured with code \`${codes[0]}\` (a digest of the sources).`
  const parts = codes.map((code) => {
    const ids = new Set(found.filter((run) => run.code === code).map(({ row }) => `\`${row}\``))
    return `\`${code}\`: ${[...ids].join(", ")}`
  })
  return `Measured with **mixed code** (digests of the sources). ${parts.join("; ")}.`
}

const section = (title: string, rows: ReadonlyArray<Row>, runsOf: RunsOf): string => {
  const withKnown = rows.some((row) => row.known !== undefined)
  const head = ["path", "what", "bar", "median", "min", "max", "seeds", ""]
  const header = withKnown ? [...head, "quinn", "ngtcp2", "TCP"] : head
  const numeric = new Set(["median", "min", "max", "seeds"])
  const lines = rows.flatMap((row) => judge(row, runsOf).map((verdict, i) => tableLine(verdict, i === 0, withKnown)))
  return [
    `## ${title}`,
    "",
    `| ${header.join(" | ")} |`,
    `|${header.map((name) => (numeric.has(name) ? "---:" : "---")).join("|")}|`,
    ...lines
  ].join("\n")
}

const marks: Readonly<Record<Verdict["state"], string>> = {
  holds: "holds",
  missed: "**missed**",
  missing: "not measured",
  told: ""
}

const tableLine = (verdict: Verdict, isFirst: boolean, withKnown: boolean): string => {
  const { row } = verdict
  const { known } = row
  const others = isFirst && known !== undefined ? [known.quinn, known.ngtcp2, known.tcp] : ["", "", ""]
  const cells = [
    isFirst ? row.title : "",
    verdict.what,
    verdict.bar,
    verdict.median,
    verdict.least,
    verdict.most,
    verdict.seeds,
    marks[verdict.state],
    ...(withKnown ? others : [])
  ]
  return `| ${cells.join(" | ")} |`
}

const plotsOf = (rows: ReadonlyArray<Row>, runsOf: RunsOf): ReadonlyMap<string, string> => {
  const plots = new Map<string, string>()
  const bars = rows.filter(({ group }) => group === "clean" || group === "loss").flatMap((row) => barOf(row, runsOf))
  if (bars.length > 0) plots.set("goodput.svg", barPlot("Goodput by path, Mbit/s; the red mark is the bar", bars))
  for (const row of rows) {
    const run = mainRuns(row, runsOf).find(({ result }) => result.series !== undefined)
    if (run !== undefined)
      plots.set(`${row.id}.svg`, row.group === "share" ? sharePlot(row, run) : windowPlot(row, run))
  }
  return plots
}

/** A bar for a row that has a bar of goodput. */
const barOf = (row: Row, runsOf: RunsOf): ReadonlyArray<Bar> => {
  const check = row.checks.find(({ what }) => what.startsWith("goodput, "))
  const values = mainRuns(row, runsOf).map(({ result }) => result.goodput_mbit_s)
  if (check === undefined || values.length === 0) return []
  const { least, leastOf } = check
  const others = leastOf === undefined ? [] : mainRuns(leastOf.row, runsOf)
  const mark = least ?? (leastOf?.factor ?? 0) * median(others.map(({ result }) => result.goodput_mbit_s))
  return [
    {
      name: row.title,
      value: median(values),
      low: Math.min(...values),
      high: Math.max(...values),
      mark: Number.isNaN(mark) ? 0 : mark
    }
  ]
}

const windowPlot = (row: Row, { result, seed }: RawRun): string => {
  const points = result.series!
  const line = points.map(({ seconds, window }) => [seconds, window / 1_024] as const)
  const top = niceTop(Math.max(...line.map(([, window]) => window)))
  return linePlot(`Window over time: ${row.title}, seed ${seed}`, "KiB", top, [{ name: "window", points: line }])
}

const sharePlot = (row: Row, { result, seed }: RawRun): string => {
  const points = result.series!
  const ours = { name: "Pure Link", points: points.map(({ goodput, seconds }) => [seconds, goodput] as const) }
  const theirs = { name: "TCP CUBIC", points: points.map(({ seconds, tcp }) => [seconds, tcp] as const) }
  return linePlot(`Goodput beside TCP: RTT ${rttOf(row)}, seed ${seed}`, "Mbit/s", 50, [ours, theirs])
}

const rttOf = (row: Row): string => {
  const args = row.argsOf(1)
  return `${args[args.indexOf("--rtt") + 1]} ms`
}

#!/usr/bin/env node
/**
 * `npm run --silent measure`: runs the rows of `rows.ts`, keeps the raw results, and makes
 * docs/measurements/lossy-paths.md of them. Exit 1: a bar was missed.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { UsageError } from "../usageError.ts"
import { readNumber } from "../values.ts"
import { makePage } from "./page.ts"
import { folder, readRuns, writeRuns } from "./rawRuns.ts"
import type { Row } from "./row.ts"
import { rows } from "./rows.ts"
import { Runner } from "./runner.ts"
import { judge } from "./verdict.ts"

const usage = `usage: npm run --silent measure -- [--only ROW,ROW…] [--page-only] [--jobs N] [--list]
Runs every row of the measurements (or those given), writes the raw results to docs/measurements/lossy-paths/, and makes
docs/measurements/lossy-paths.md and its plots from all that is there. --page-only runs nothing. --jobs: processes at a
time, 1 to 64 (2). Exit 0: every bar of the rows holds; 1: some were missed, which are listed; 2: bad usage.`

interface Options {
  readonly chosen: ReadonlyArray<Row>
  readonly pageOnly: boolean
  readonly jobs: number
}

const readOptions = (argv: ReadonlyArray<string>): Options | string => {
  const options = {
    only: { type: "string" },
    "page-only": { type: "boolean" },
    jobs: { type: "string" },
    list: { type: "boolean" },
    help: { type: "boolean" }
  } as const
  let values
  try {
    values = parseArgs({ args: [...argv], options }).values
  } catch (error) {
    throw new UsageError((error as Error).message.split(/\. |\n/)[0]!)
  }
  if (values.help === true) return usage
  if (values.list === true) return rows.map(({ id, title }) => `${id.padEnd(28)}${title}`).join("\n")
  const what = "a whole number from 1 to 64"
  const jobs = { least: 1, most: 64, whole: true, what }
  return {
    chosen: values.only === undefined ? rows : values.only.split(",").map(rowOf),
    pageOnly: values["page-only"] ?? false,
    jobs: values.jobs === undefined ? Math.min(2, availableParallelism()) : readNumber("--jobs", values.jobs, jobs)
  }
}

const rowOf = (id: string): Row => {
  const row = rows.find((candidate) => candidate.id === id)
  if (row === undefined) throw new UsageError(`no row is called "${id}"; --list names them`)
  return row
}

const measure = ({ chosen, jobs }: Options): Promise<void> =>
  new Runner(jobs, (line) => console.error(line)).run(chosen, (row, runs) => writeRuns(row.id, runs))

const writePage = (): void => {
  const remarks = readFileSync(join(import.meta.dirname, "remarks.md"), "utf8")
  const { markdown, plots } = makePage(rows, readRuns, remarks)
  writeFileSync(join(folder, "../lossy-paths.md"), markdown)
  for (const [file, svg] of plots) writeFileSync(join(folder, file), svg)
}

/** Says what the chosen rows came to; the exit code. */
const tell = (chosen: ReadonlyArray<Row>): number => {
  const verdicts = chosen.flatMap((row) => judge(row, readRuns))
  const bad = verdicts.filter(({ state }) => state === "missed" || state === "missing")
  for (const { bar, least, median, most, row, state, what } of bad) {
    console.log(`${state}: ${row.id}, ${what}: median ${median} (${least} to ${most}), bar ${bar || "none"}`)
  }
  console.log(`${verdicts.filter(({ state }) => state === "holds").length} bars hold, ${bad.length} do not`)
  return bad.length === 0 ? 0 : 1
}

const main = async (): Promise<number> => {
  try {
    const options = readOptions(process.argv.slice(2))
    if (typeof options === "string") {
      console.log(options)
      return 0
    }
    if (!options.pageOnly) await measure(options)
    writePage()
    return tell(options.chosen)
  } catch (error) {
    console.error(`measure: ${(error as Error).message}`)
    return error instanceof UsageError ? 2 : 1
  }
}

process.exitCode = await main()

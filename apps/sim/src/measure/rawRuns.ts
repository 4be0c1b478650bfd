import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import type { RawRun } from "./row.ts"

/** The raw results on disk: a file of JSON lines for each row, in the order of variant and seed. */

export const folder = join(import.meta.dirname, "../../../../docs/measurements/lossy-paths")

export const readRuns = (row: string, from = folder): ReadonlyArray<RawRun> => {
  const path = fileOf(row, from)
  if (!existsSync(path)) return []
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as RawRun)
}

export const writeRuns = (row: string, runs: ReadonlyArray<RawRun>, to = folder): void => {
  const sorted = runs.toSorted((a, b) => (a.variant === b.variant ? a.seed - b.seed : a.variant < b.variant ? -1 : 1))
  mkdirSync(dirname(fileOf(row, to)), { recursive: true })
  writeFileSync(fileOf(row, to), sorted.map((run) => `${JSON.stringify(run)}\n`).join(""))
}

const fileOf = (row: string, under: string): string => join(under, `${row}.jsonl`)

import { spawn } from "node:child_process"
import { join } from "node:path"
import type { SimResult } from "../result.ts"
import { codeDigest } from "./code.ts"
import type { RawRun, Row } from "./row.ts"

/** Runs `sim` in processes of its own, a few at a time. */

const program = join(import.meta.dirname, "../../bin/sim.js")
/** A run that takes longer hangs. */
const longestRun = 1_800_000
const plotPoints = "300"

interface Job {
  readonly row: Row
  readonly variant: RawRun["variant"]
  readonly seed: number
}

export class Runner {
  readonly #jobs: number
  readonly #told: (line: string) => void

  constructor(jobs: number, told: (line: string) => void) {
    this.#jobs = jobs
    this.#told = told
  }

  /** All seeds of all rows, and their twins; `done` hears of each row when it is whole. */
  async run(rows: ReadonlyArray<Row>, done: (row: Row, runs: ReadonlyArray<RawRun>) => void): Promise<void> {
    await this.#runTogether(
      rows.filter(({ alone }) => alone !== true),
      this.#jobs,
      done
    )
    // Those whose wall time counts come last, when nothing else runs.
    await this.#runTogether(
      rows.filter(({ alone }) => alone === true),
      1,
      done
    )
  }

  async #runTogether(
    rows: ReadonlyArray<Row>,
    workers: number,
    done: (row: Row, runs: ReadonlyArray<RawRun>) => void
  ): Promise<void> {
    const waiting = rows.flatMap(jobsOf)
    const runs = new Map(rows.map((row): [Row, Array<RawRun>] => [row, []]))
    const work = async (): Promise<void> => {
      for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
        const { row } = job
        const ofRow = runs.get(row)!
        ofRow.push(await this.#runOne(job))
        if (ofRow.length === jobsOf(row).length) done(row, ofRow)
      }
    }
    await Promise.all(Array.from({ length: workers }, work))
  }

  async #runOne({ row, seed, variant }: Job): Promise<RawRun> {
    const args = [...row.argsOf(seed), ...(variant === "twin" ? row.twin!.args : [])]
    const series = row.plotted === true && seed === 1 && variant === "main" ? ["--series", plotPoints] : []
    const code = codeDigest()
    const text = await output([...args, ...series, "--seed", String(seed), "--json"])
    const result = JSON.parse(text.trimEnd().split("\n").at(-1)!) as SimResult
    this.#told(`${row.id} ${variant} ${seed}: ${result.goodput_mbit_s} Mbit/s in ${result.wall_seconds} s`)
    return { row: row.id, variant, seed, args, code, result }
  }
}

const jobsOf = (row: Row): ReadonlyArray<Job> => {
  const seeds = Array.from({ length: row.seeds }, (_, i): Job => ({ row, variant: "main", seed: i + 1 }))
  return row.twin === undefined ? seeds : [...seeds, { row, variant: "twin", seed: 1 }]
}

/** What a run prints. Exit code 1 is a result too: not all was stored in time. */
const output = (args: ReadonlyArray<string>): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      timeout: longestRun
    })
    let text = ""
    let complaint = ""
    child.stdout.setEncoding("utf8").on("data", (piece: string) => (text += piece))
    child.stderr.setEncoding("utf8").on("data", (piece: string) => (complaint += piece))
    child.on("error", reject)
    child.on("close", (code) => {
      if ((code === 0 || code === 1) && text.includes("{")) resolve(text)
      else reject(new Error(`sim ${args.join(" ")} ended with ${code}: ${complaint.trim()}`))
    })
  })

import { spawn } from "node:child_process"
import { join } from "node:path"
import type { SimResult } from "../result.ts"
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

  /** All seeds of a row, and its twin. */
  async run(row: Row): Promise<ReadonlyArray<RawRun>> {
    const waiting: Array<Job> = Array.from({ length: row.seeds }, (_, i) => ({ row, variant: "main", seed: i + 1 }))
    if (row.twin !== undefined) waiting.push({ row, variant: "twin", seed: 1 })
    const runs: Array<RawRun> = []
    const work = async (): Promise<void> => {
      for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) runs.push(await this.#runOne(job))
    }
    const workers = row.alone === true ? 1 : this.#jobs
    await Promise.all(Array.from({ length: workers }, work))
    return runs
  }

  async #runOne({ row, seed, variant }: Job): Promise<RawRun> {
    const args = [...row.args, ...(variant === "twin" ? row.twin!.args : [])]
    const series = row.plotted === true && seed === 1 && variant === "main" ? ["--series", plotPoints] : []
    const text = await output([...args, ...series, "--seed", String(seed), "--json"])
    const result = JSON.parse(text.trimEnd().split("\n").at(-1)!) as SimResult
    this.#told(`${row.id} ${variant} ${seed}: ${result.goodput_mbit_s} Mbit/s in ${result.wall_seconds} s`)
    return { row: row.id, variant, seed, args, result }
  }
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

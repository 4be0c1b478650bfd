import { load } from "@pure-link/native"
import * as Effect from "effect/Effect"
import { resolve } from "node:path"
import { type Command, ExitCode, printLine } from "../command.ts"
import type { EndFailed } from "../ends/endProcess.ts"
import type { GivenFlags } from "../flags.ts"
import { Interrupts } from "../interrupts.ts"
import { realRun } from "../realPath/realRun.ts"
import { type Row, rowNames, rowsOf } from "../realPath/rows.ts"
import { simRun } from "../realPath/simRun.ts"
import { buildTools, checkMachine, type Tools } from "../realPath/tools.ts"
import { type JudgedRow, type JudgedRun, judgeRow, judgeRun } from "../realPath/verdict.ts"
import { jsonFlag } from "../sharedFlags.ts"
import { UsageError } from "../usageError.ts"

/** Real kernels against the simulator, and the share beside a kernel's TCP. */

const flags = {
  path: { value: "FOLDER", help: "of the emulator: pathemu.cc and nettool.cc; it is copied and built elsewhere" },
  rows: { value: "LIST", help: `some of ${rowNames.join(",")} (all)` },
  rtt: { value: "LIST", help: "round-trip times in ms (20,100)" },
  runs: { value: "N", help: "on real sockets, and as many seeds of the simulator (5)" },
  seconds: { value: "S", help: "a run of clean, jitter and loss takes so long; the first 2 s are left out (22)" },
  fallback: { help: "node:dgram and node:crypto instead of the native code" },
  "no-sim": { help: "real runs only: rows without a verdict, but for the share" },
  ...jsonFlag
}

interface RealPathOptions {
  readonly folder: string
  readonly rows: ReadonlyArray<Row>
  readonly runs: number
  readonly fallback: boolean
  readonly sim: boolean
}

const read = (given: GivenFlags): RealPathOptions => {
  const names = listOf(given, "rows", rowNames.join(",")).map((text) => {
    const name = rowNames.find((one) => one === text)
    if (name === undefined) throw new UsageError(`--rows takes some of ${rowNames.join(",")}, not "${text}"`)
    return name
  })
  const rtts = listOf(given, "rtt", "20,100").map((text) => {
    if (/^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= 1_000) return Number(text)
    throw new UsageError(`--rtt takes whole numbers from 1 to 1000, not "${text}"`)
  })
  return {
    folder: resolve(given.required("path")),
    rows: rowsOf(names, rtts, given.number("seconds", { least: 4, most: 3_600, whole: true })),
    runs: given.number("runs", { least: 1, most: 100, whole: true }) ?? 5,
    fallback: given.has("fallback"),
    sim: !given.has("no-sim")
  }
}

const listOf = (given: GivenFlags, name: string, otherwise: string): ReadonlyArray<string> =>
  (given.text(name) ?? otherwise).split(",")

export const realPath: Command = {
  summary: "goodput through an emulated path between two kernels, against the simulator",
  flags,
  notes:
    "Needs root, g++ and iproute2. Real runs come first, each told on standard error, then the simulator; one line of JSON a\n" +
    "row, and one at the end. Succeeds when all rows hold. A run in which the emulator's rings or a socket's buffer dropped\n" +
    "packets, or the emulator was late, does not count and is repeated, three times for a row at most.",
  prepare: (given) => {
    const options = read(given)
    checkMachine(options.folder)
    return () => run(options)
  }
}

const run = async (options: RealPathOptions): Promise<number> => {
  const interrupts = new Interrupts()
  const whole = Effect.scoped(Effect.flatMap(buildTools(options.folder), (tools) => measure(tools, options)))
  const asked = Effect.as(interrupts.requested, ExitCode.interrupted)
  try {
    return await Effect.runPromise(Effect.raceFirst(whole, asked))
  } finally {
    interrupts.close()
  }
}

/** All that needs the machine for itself comes first; the simulator does not mind who else computes. */
const measure = (tools: Tools, options: RealPathOptions): Effect.Effect<number, EndFailed> =>
  Effect.gen(function* () {
    const sockets = options.fallback || load().addon === undefined ? "node" : "native"
    const real: Array<ReadonlyArray<JudgedRun>> = []
    for (const row of options.rows) real.push(yield* runReal(tools, row, options))
    const judged: Array<JudgedRow> = []
    for (const [i, row] of options.rows.entries()) {
      const sim = options.sim ? yield* runSim(row, options.runs) : []
      judged.push(judgeRow(row, real[i]!, sim, options.runs))
      printLine({ ...judged.at(-1)!, sockets })
    }
    printLine({ event: "real-path", sockets, runs: options.runs, ...sumUp(judged) })
    return judged.every(({ holds }) => holds === true) ? ExitCode.done : ExitCode.failed
  })

const sumUp = (rows: ReadonlyArray<JudgedRow>) => {
  const named = (of: (row: JudgedRow) => boolean) => rows.filter(of).map(({ row, rtt }) => `${row}-${rtt}`)
  return {
    rows: rows.length,
    hold: named(({ holds }) => holds === true),
    missed: named(({ holds }) => holds === false),
    undecided: named(({ holds }) => holds === null)
  }
}

/** Repetitions of runs that do not count, in all of a row. */
const mostRepeated = 3

const runReal = (
  tools: Tools,
  row: Row,
  { fallback, runs: needed }: RealPathOptions
): Effect.Effect<ReadonlyArray<JudgedRun>, EndFailed> =>
  Effect.gen(function* () {
    const runs: Array<JudgedRun> = []
    const counting = (): number => runs.filter(({ counts }) => counts).length
    let failures = 0
    for (let seed = 1; counting() < needed && seed <= needed + mostRepeated; seed++) {
      const result = yield* Effect.result(realRun({ tools, row, seed, fallback }))
      if (result._tag === "Failure") {
        tell(`${titleOf(row)}: ${result.failure.message}`)
        if (++failures > mostRepeated) return yield* Effect.fail(result.failure)
        continue
      }
      const judged = judgeRun(row, seed, result.success)
      runs.push(judged)
      tell(`${titleOf(row)}, run ${counting()} of ${needed}: ${JSON.stringify(judged)}`)
    }
    return runs
  })

const runSim = (row: Row, runs: number): Effect.Effect<ReadonlyArray<number>, EndFailed> =>
  Effect.gen(function* () {
    const sim: Array<number> = []
    for (let seed = 1; seed <= runs; seed++) {
      sim.push(yield* simRun(row, seed))
      tell(`${titleOf(row)}, simulator with seed ${seed}: ${sim.at(-1)}`)
    }
    return sim
  })

const titleOf = ({ name, path }: Row): string => `${name}, RTT ${path.rttMillis} ms`

const tell = (text: string): void => {
  process.stderr.write(`bench real-path: ${text}\n`)
}

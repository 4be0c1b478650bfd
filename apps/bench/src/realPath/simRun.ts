import * as Effect from "effect/Effect"
import { join } from "node:path"
import { EndFailed } from "../ends/endProcess.ts"
import { start } from "./child.ts"
import { recordBytes, type Row } from "./rows.ts"

/** The same row in the simulator, in a process of its own. */

const sim = join(import.meta.dirname, "../../../sim/bin/sim.js")
const mostSeconds = 600

/** Goodput in Mbit/s, or the share beside TCP. */
export const simRun = (row: Row, seed: number): Effect.Effect<number, EndFailed> =>
  Effect.scoped(
    Effect.gen(function* () {
      const child = yield* start("sim", [process.execPath, sim, ...simArguments(row, seed)])
      const output = yield* child.outputAfter(mostSeconds)
      const result = JSON.parse(output.trim().split("\n").at(-1)!) as SimResult
      const value = row.name === "share" ? result.share : result.goodput_mbit_s
      return value ?? (yield* Effect.fail(new EndFailed("sim gives no share")))
    })
  )

interface SimResult {
  readonly goodput_mbit_s: number
  readonly share: number | null
}

export const simArguments = ({ endSeconds, name, path, skipSeconds }: Row, seed: number): ReadonlyArray<string> => [
  "--rate",
  `${path.rateMbit}`,
  "--rtt",
  `${path.rttMillis}`,
  "--jitter",
  `${path.jitterMillis}`,
  "--loss",
  `${path.loss}`,
  "--size",
  `${recordBytes}`,
  "--seconds",
  `${endSeconds}`,
  "--skip",
  `${skipSeconds}`,
  ...(name === "share" ? ["--tcp", "1"] : []),
  "--seed",
  `${seed}`,
  "--json"
]

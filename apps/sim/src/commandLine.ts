import { performance } from "node:perf_hooks"
import { OutputError, printed } from "./output.ts"
import { help, readOptions, type SimOptions } from "./options.ts"
import { Progress } from "./progress.ts"
import { plotPoints, report } from "./report.ts"
import { simulate } from "./simulation.ts"
import { endOf, summarize } from "./summary.ts"
import { TraceFile } from "./traceFile.ts"
import { UsageError } from "./usageError.ts"

/** `sim` as a person or a script meets it: what it prints, and its exit code. */

type Print = (text: string) => void

const incomplete = 1
const badUsage = 2
const unwritable = 3

/** `print` takes the output, a text at a time. */
export const main = (argv: ReadonlyArray<string>, print: Print = printed): number => {
  try {
    const options = readOptions(argv)
    if (options !== undefined) return run(options, argv, print)
    print(help())
    return 0
  } catch (error) {
    if (error instanceof OutputError) {
      console.error(`sim: ${error.message}`)
      return unwritable
    }
    if (!(error instanceof UsageError)) throw error
    console.error(`sim: ${error.message}; see --help`)
    if (argv.includes("--json")) {
      print(JSON.stringify({ event: "failed", exit: badUsage, message: error.message }))
    }
    return badUsage
  }
}

/** Runs, prints, and returns the exit code. Wall time is that of the run, without the loading of the program. */
const run = (options: SimOptions, argv: ReadonlyArray<string>, print: Print): number => {
  const loaded = performance.now()
  const trace = options.traceFile === undefined ? undefined : new TraceFile(options.traceFile)
  const progress = new Progress(() => performance.now())
  const observation = simulate(options, {
    progress: (at) => progress.show(at / 1e6),
    ...(trace && { event: (node, event) => trace.write(node, event) })
  })
  trace?.close()
  progress.clear()
  const result = summarize(observation, (performance.now() - loaded) / 1_000)
  if (options.json) print(JSON.stringify(result))
  else {
    const text = report(options, result, observation.series.points(endOf(observation), plotPoints))
    print(argv.length === 0 ? text : `sim ${argv.join(" ")}\n${text}`)
  }
  if (result.complete !== false) return 0
  console.error(`sim: not all was stored within ${options.end / 1e6} s of virtual time`)
  return incomplete
}

import type { FlagTable, GivenFlags } from "./flags.ts"

/** A command of `bench`. */
export interface Command {
  readonly summary: string
  readonly flags: FlagTable
  /** Text after the flags in `--help`. */
  readonly notes?: string
  /** Reads the flags, throwing `UsageError`, and gives what does the work and succeeds with the exit code. */
  readonly prepare: (given: GivenFlags) => () => Promise<number>
}

export const ExitCode = {
  done: 0,
  /** It ran, and what it measured is not what it should be: bad records, or an end that failed. */
  failed: 1,
  badUsage: 2,
  interrupted: 130
} as const

/** Prints the one line of a result. */
export const printLine = (result: unknown): void => {
  process.stdout.write(`${JSON.stringify(result)}\n`)
}

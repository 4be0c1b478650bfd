import type { SimResult } from "../result.ts"

/**
 * A row of the measurements: a path, how often it is run, and what must hold of the results.
 */

export interface Row {
  /** Names the row on the command line, and its file of raw results. */
  readonly id: string
  readonly group: Group
  /** The path, for a person. */
  readonly title: string
  /** Arguments of `sim` for a seed, without --seed and --json. */
  readonly argsOf: (seed: number) => ReadonlyArray<string>
  readonly seeds: number
  readonly checks: ReadonlyArray<Check>
  /** Another run of seed 1 that must have the same digest: with these arguments more. */
  readonly twin?: Twin
  /** Keeps goodput and window over time of seed 1, for a plot. */
  readonly plotted?: boolean
  /** Runs when nothing else does, because its wall time is judged. */
  readonly alone?: boolean
  readonly known?: Known
}

export interface Twin {
  readonly what: string
  readonly args: ReadonlyArray<string>
}

export const groups = {
  clean: "Clean and reordering paths",
  loss: "Random loss",
  share: "Beside TCP CUBIC",
  recovery: "After trouble",
  size: "Datagram size",
  time: "Idle, displacement, repeatability, speed",
  latency: "Latency of 50 records a second"
} as const
export type Group = keyof typeof groups

/** What others reach on the same path (measured on an emulated path, with real kernels). */
export interface Known {
  readonly quinn: string
  readonly ngtcp2: string
  readonly tcp: string
}

/** What must hold of all seeds together. Without a bar it is only told. */
export interface Check {
  readonly what: string
  readonly of: (result: SimResult) => number | null
  /** `median` of the seeds, or each of them: `every`. */
  readonly judged: "median" | "every"
  readonly least?: number
  readonly most?: number
  /** The bar is this much of the median of the same figure of another row. */
  readonly leastOf?: { readonly row: Row; readonly factor: number }
  readonly digits: number
}

/** One run, as it stands in a file of raw results. */
export interface RawRun {
  readonly row: string
  readonly variant: "main" | "twin"
  readonly seed: number
  readonly args: ReadonlyArray<string>
  /** Names the code that ran (`code.ts`). */
  readonly code: string
  readonly result: SimResult
}

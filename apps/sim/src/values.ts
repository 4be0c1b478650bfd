import { UsageError } from "./usageError.ts"

/**
 * Numbers as flags give them: plain decimals within bounds, alone or joined by colons.
 */

export interface Bounds {
  readonly least: number
  readonly most: number
  readonly whole?: boolean
  /** What is accepted, for the error. */
  readonly what: string
}

export const readNumber = (flag: string, text: string, { least, most, what, whole = false }: Bounds): number => {
  const value = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : Number.NaN
  if (value >= least && value <= most && (!whole || Number.isSafeInteger(value))) return value
  throw new UsageError(`${flag} takes ${what}, not "${text}"`)
}

/** Values joined by colons, each within its bounds. */
export const readTuple = (flag: string, text: string, bounds: ReadonlyArray<Bounds>): ReadonlyArray<number> => {
  const pieces = text.split(":")
  if (pieces.length !== bounds.length) {
    throw new UsageError(`${flag} takes ${bounds.length} numbers joined by colons, not "${text}"`)
  }
  return pieces.map((piece, i) => readNumber(`${flag} (number ${i + 1})`, piece, bounds[i]!))
}

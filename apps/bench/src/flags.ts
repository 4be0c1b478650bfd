import { parseArgs } from "node:util"
import { UsageError } from "./usageError.ts"

/**
 * Flags of a command: a table that `--help` prints and that the command line is read by.
 */

export interface Flag {
  /** What its value is called; a flag without one takes none. */
  readonly value?: string
  readonly help: string
}

export type FlagTable = Readonly<Record<string, Flag>>

export interface Bounds {
  readonly least: number
  readonly most: number
  readonly whole?: boolean
}

/** The flags that were given, read one by one with their bounds. */
export class GivenFlags {
  readonly #values: Readonly<Record<string, string | boolean | undefined>>

  constructor(values: Readonly<Record<string, string | boolean | undefined>>) {
    this.#values = values
  }

  has(name: string): boolean {
    return this.#values[name] !== undefined
  }

  text(name: string): string | undefined {
    const value = this.#values[name]
    return typeof value === "string" ? value : undefined
  }

  required(name: string): string {
    const text = this.text(name)
    if (text === undefined) throw new UsageError(`--${name} is missing`)
    return text
  }

  number(name: string, bounds: Bounds): number | undefined {
    const text = this.text(name)
    return text === undefined ? undefined : readNumber(`--${name}`, text, bounds)
  }

  requiredNumber(name: string, bounds: Bounds): number {
    return readNumber(`--${name}`, this.required(name), bounds)
  }

  oneOf<const A extends string>(name: string, choices: ReadonlyArray<A>): A | undefined {
    const text = this.text(name)
    if (text === undefined) return undefined
    const choice = choices.find((one) => one === text)
    if (choice === undefined) throw new UsageError(`--${name} takes ${choices.join(" or ")}, not "${text}"`)
    return choice
  }

  /** Flags of which at most one may be given. */
  exclusive(...names: ReadonlyArray<string>): void {
    const given = names.filter((name) => this.has(name))
    if (given.length > 1) throw new UsageError(`--${given.join(" and --")} exclude each other`)
  }
}

export const readFlags = (table: FlagTable, argv: ReadonlyArray<string>): GivenFlags => {
  const options = Object.fromEntries(
    Object.entries(table).map(([name, flag]) => [
      name,
      { type: flag.value === undefined ? ("boolean" as const) : ("string" as const) }
    ])
  )
  try {
    return new GivenFlags(parseArgs({ args: [...argv], options, strict: true, allowPositionals: false }).values)
  } catch (error) {
    throw new UsageError((error as Error).message.split(". ")[0]!)
  }
}

export const flagHelp = (table: FlagTable): string =>
  Object.entries(table)
    .map(([name, { help, value }]) => `  ${`--${name}${value === undefined ? "" : ` ${value}`}`.padEnd(22)} ${help}`)
    .join("\n")

const readNumber = (flag: string, text: string, { least, most, whole = false }: Bounds): number => {
  const value = /^(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : Number.NaN
  if (value >= least && value <= most && (!whole || Number.isSafeInteger(value))) return value
  throw new UsageError(`${flag} takes a ${whole ? "whole " : ""}number from ${least} to ${most}, not "${text}"`)
}

/**
 * What a command prints: data on standard output (JSON lines with `--json`), everything for a person's eye on standard
 * error.
 */
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"

/** A line of data. */
export const print = (line: string): Effect.Effect<void> =>
  Effect.sync(() => {
    process.stdout.write(`${line}\n`)
  })

/** A line for a person. */
export const say = (line: string): Effect.Effect<void> =>
  Effect.sync(() => {
    process.stderr.write(`${line}\n`)
  })

/** A JSON line; 64-bit ids become hexadecimal text. */
export const printJson = (value: unknown): Effect.Effect<void> => print(toJson(value))

export const toJson = (value: unknown): string =>
  JSON.stringify(value, (_key, field: unknown) =>
    typeof field === "bigint" ? field.toString(16).padStart(16, "0") : field
  )

/** 12345678 → "12,345,678". */
export const grouped = (count: number): string => String(count).replace(/\B(?=(\d{3})+$)/g, ",")

/** Log lines of the library go to standard error, as plain sentences. */
export const layerLog = Logger.layer([
  Logger.make(({ message }) => {
    process.stderr.write(`${Array.isArray(message) ? message.join(" ") : String(message)}\n`)
  })
])

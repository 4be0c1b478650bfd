/**
 * What a command prints: data on standard output (JSON lines with `--json`), everything for a person's eye on standard
 * error. Names and records come from other nodes: no control character of theirs reaches a terminal.
 */
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"

// oxlint-disable-next-line no-control-regex -- finding them is the point
const control = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g

const escaped = (character: string): string =>
  character === "\n"
    ? "\\n"
    : character === "\r"
      ? "\\r"
      : character === "\t"
        ? "\\t"
        : `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`

/** The text with every control character, line breaks included, written out. */
export const visible = (text: string): string => text.replace(control, escaped)

/** A line of data for a person. */
export const print = (line: string): Effect.Effect<void> => write(visible(line))

/** A line for a person, beside the data. */
export const say = (line: string): Effect.Effect<void> =>
  Effect.sync(() => {
    process.stderr.write(`${visible(line)}\n`)
  })

/** A JSON line; 64-bit ids become hexadecimal text. */
export const printJson = (value: unknown): Effect.Effect<void> => write(toJson(value))

export const toJson = (value: unknown): string =>
  JSON.stringify(value, (_key, field: unknown) =>
    typeof field === "bigint" ? field.toString(16).padStart(16, "0") : field
  ).replace(control, escaped)

/** Bytes as they are, and a newline. */
export const printRaw = (bytes: Uint8Array): Effect.Effect<void> => write(Buffer.concat([bytes, Buffer.of(10)]), "")

/** Waits while standard output is full, so that a slow reader bounds the memory. */
const write = (data: string | Uint8Array, end = "\n"): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    if (process.stdout.writableEnded || process.stdout.destroyed) return resume(Effect.void)
    process.stdout.write(typeof data === "string" ? data + end : data, () => resume(Effect.void))
  })

/** 12345678 → "12,345,678". */
export const grouped = (count: number): string => String(count).replace(/\B(?=(\d{3})+$)/g, ",")

/** "1 record", "2 records". */
export const records = (count: number): string => `${grouped(count)} ${count === 1 ? "record" : "records"}`

/** Log lines of the library go to standard error, as plain sentences. */
export const layerLog = Logger.layer([
  Logger.make(({ message }) => {
    process.stderr.write(`${visible(Array.isArray(message) ? message.join(" ") : String(message))}\n`)
  })
])

let outputIsOptional = false

/** The command's work goes on when nobody reads its output any more; others end quietly (`inbox show … | head`). */
export const outputMayClose = Effect.sync(() => {
  outputIsOptional = true
})

/** Called once, before anything is written. */
export const watchOutput = (): void => {
  const onClosed = (error: NodeJS.ErrnoException): void => {
    if (!outputIsOptional) process.exit(error.code === "EPIPE" ? 0 : 1)
  }
  process.stdout.on("error", onClosed)
  process.stderr.on("error", onClosed)
}

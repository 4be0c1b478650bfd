/**
 * Where `send` reads from: a file, from the byte where the outbox says an earlier call got to; or standard input, as it
 * comes.
 */
import * as Effect from "effect/Effect"
import { closeSync, createReadStream, openSync, readSync, realpathSync, statSync } from "node:fs"
import { badInput, type Failure } from "./failure.ts"
import type { Format } from "./recordSource.ts"

export interface OpenSource {
  readonly name: string
  /** What the outbox notes positions under; `undefined` for standard input, which cannot be read again. */
  readonly producer: string | undefined
  readonly offset: number
  /** `undefined` when everything was appended before. */
  readonly bytes: AsyncIterable<Uint8Array> | undefined
  /** Ends reading at once; what was handed over stays. */
  readonly close: () => void
  /** What a person should know before it starts. */
  readonly note: string | undefined
  /** The failure for an error of the system while reading. */
  readonly failed: (error: unknown) => Failure
}

const readBytes = 256 * 1024

const failedAt =
  (name: string) =>
  (error: unknown): Failure =>
    badInput(
      `cannot read ${name} (${(error as NodeJS.ErrnoException).code ?? String(error)}); check its path and permissions`
    )

export const openSource = (
  path: string,
  options: {
    readonly format: Format
    readonly appendedThrough: (producer: string) => number | undefined
  }
): Effect.Effect<OpenSource, Failure> =>
  Effect.suspend(() => {
    if (path === "-") {
      return Effect.succeed({
        name: "standard input",
        producer: undefined,
        offset: 0,
        bytes: process.stdin,
        close: () => process.stdin.destroy(),
        note: undefined,
        failed: failedAt("standard input")
      })
    }
    return Effect.try({ try: () => openFile(path, options), catch: failedAt(path) }).pipe(Effect.flatten)
  })

const newline = 10

const byteAt = (path: string, offset: number): number => {
  const file = openSync(path, "r")
  const byte = Buffer.alloc(1)
  readSync(file, byte, 0, 1, offset)
  closeSync(file)
  return byte[0]!
}

const openFile = (
  path: string,
  { appendedThrough, format }: Parameters<typeof openSource>[1]
): Effect.Effect<OpenSource, Failure> => {
  const producer = realpathSync(path)
  const stats = statSync(producer)
  if (stats.isDirectory()) return Effect.fail(badInput(`${path} is a folder; name a file`))
  const appended = appendedThrough(producer)
  const position = appended ?? 0
  if (stats.size < position) {
    return Effect.fail(
      badInput(
        `${path} has ${stats.size} B, but ${position} B of it were appended before: it was replaced; ` +
          "send it whole with --again, or name the right file"
      )
    )
  }
  if (format !== "file" && position > 0 && stats.size > position && byteAt(producer, position - 1) !== newline) {
    return Effect.fail(
      badInput(
        `the last line of ${path} had no newline when it was sent, and was written on since: its record is torn; ` +
          "send the file whole with --again, or append whole lines only"
      )
    )
  }
  const isDone = appended !== undefined && stats.size === position
  const offset = format === "file" ? 0 : position
  const note =
    appended === undefined
      ? undefined
      : isDone
        ? `all ${position} B of ${path} were appended before; only what waits in the outbox is sent ` +
          "(--again sends the file once more)"
        : `going on after byte ${position} of ${path}`
  const bytes = isDone ? undefined : createReadStream(producer, { start: offset, highWaterMark: readBytes })
  return Effect.succeed({
    name: path,
    producer,
    offset,
    bytes,
    close: () => bytes?.destroy(),
    note,
    failed: failedAt(path)
  })
}

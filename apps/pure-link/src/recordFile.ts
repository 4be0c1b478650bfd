/**
 * Where `send` reads from: a file, from the byte where the outbox says an earlier call got to; or standard input, as it
 * comes.
 */
import * as Effect from "effect/Effect"
import { createReadStream, realpathSync, statSync } from "node:fs"
import { badInput, type Failure } from "./failure.ts"
import type { Format } from "./recordSource.ts"

export interface OpenSource {
  readonly name: string
  /** What the outbox notes positions under; `undefined` for standard input, which cannot be read again. */
  readonly producer: string | undefined
  readonly offset: number
  readonly bytes: AsyncIterable<Uint8Array>
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

/** Nothing at all: the file was read to its end before. */
async function* nothing(): AsyncGenerator<Uint8Array> {}

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
        note: undefined,
        failed: failedAt("standard input")
      })
    }
    return Effect.try({ try: () => openFile(path, options), catch: failedAt(path) }).pipe(Effect.flatten)
  })

const openFile = (
  path: string,
  { appendedThrough, format }: Parameters<typeof openSource>[1]
): Effect.Effect<OpenSource, Failure> => {
  const producer = realpathSync(path)
  const stats = statSync(producer)
  if (stats.isDirectory()) return Effect.fail(badInput(`${path} is a folder; name a file`))
  const position = appendedThrough(producer) ?? 0
  if (stats.size < position) {
    return Effect.fail(
      badInput(
        `${path} has ${stats.size} B, but ${position} B of it were appended before: it was replaced; ` +
          "send it whole with --again, or name the right file"
      )
    )
  }
  const isDone = position > 0 && stats.size === position
  const offset = format === "file" ? 0 : position
  const note =
    position === 0
      ? undefined
      : isDone
        ? `all ${position} B of ${path} were appended before; only what waits in the outbox is sent ` +
          "(--again sends the file once more)"
        : `going on after byte ${position} of ${path}`
  const bytes = isDone ? nothing() : createReadStream(producer, { start: offset, highWaterMark: readBytes })
  return Effect.succeed({ name: path, producer, offset, bytes, note, failed: failedAt(path) })
}

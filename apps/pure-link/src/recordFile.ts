/**
 * Where `send` reads from: a regular file, from the byte where the outbox says an earlier call got to; or standard
 * input, a pipe or a device, as it comes. What the outbox notes for a file is a mark: how far it was read, with a check
 * of the bytes before, so that a file that was replaced is not taken for the one that was read.
 */
import * as Effect from "effect/Effect"
import { createHash } from "node:crypto"
import {
  closeSync,
  constants,
  createReadStream,
  openSync,
  type ReadStream,
  readSync,
  realpathSync,
  statSync
} from "node:fs"
import { Socket } from "node:net"
import { badInput, type Failure } from "./failure.ts"
import type { Format } from "./recordSource.ts"

export interface OpenSource {
  readonly name: string
  /** What the outbox notes marks under; `undefined` for what cannot be read again. */
  readonly producer: string | undefined
  readonly offset: number
  /** `undefined` when everything was appended before. */
  readonly bytes: AsyncIterable<Uint8Array> | undefined
  /** The mark for having read through a byte offset. */
  readonly markAt: (offset: number) => number
  /** Ends reading at once; what was handed over stays. */
  readonly close: () => void
  /** What a person should know before it starts. */
  readonly note: string | undefined
  /** The failure for an error of the system while reading. */
  readonly failed: (error: unknown) => Failure
}

interface Options {
  readonly format: Format
  /** The mark that the outbox has for a producer. */
  readonly noted: (producer: string) => number | undefined
}

const readBytes = 256 * 1024
const newline = 10
/** A mark is offset × 2^13 + check: below 2^53 up to files of 1 TiB; one replacement in 8,192 goes unnoticed. */
const checks = 8_192
/** The check covers this much before the offset; a file that is one record is covered whole. */
const checkedBytes = 4_096

const failedAt =
  (name: string) =>
  (error: unknown): Failure =>
    badInput(
      `cannot read ${name} (${(error as NodeJS.ErrnoException).code ?? String(error)}); check its path and permissions`
    )

export const openSource = (path: string, options: Options): Effect.Effect<OpenSource, Failure> =>
  Effect.suspend(() =>
    path === "-"
      ? Effect.succeed(asItComes("standard input", process.stdin))
      : Effect.try({ try: () => openPath(path, options), catch: failedAt(path) }).pipe(Effect.flatten)
  )

const asItComes = (name: string, bytes: NodeJS.ReadableStream & { destroy(): unknown }): OpenSource => ({
  name,
  producer: undefined,
  offset: 0,
  bytes: bytes as AsyncIterable<Uint8Array>,
  markAt: () => 0,
  close: () => void bytes.destroy(),
  note: undefined,
  failed: failedAt(name)
})

const openPath = (path: string, options: Options): Effect.Effect<OpenSource, Failure> => {
  const stats = statSync(path)
  if (stats.isDirectory()) return Effect.fail(badInput(`${path} is a folder; name a file`))
  if (stats.isFile()) return openFile(path, stats.size, options)
  return Effect.succeed(asItComes(path, stats.isFIFO() ? openPipe(path) : createReadStream(path)))
}

/** Read by readiness, like standard input: a blocking read of a pipe could not be ended and would keep the process. */
const openPipe = (path: string): Socket =>
  new Socket({ fd: openSync(path, constants.O_RDONLY | constants.O_NONBLOCK), readable: true, writable: false })

const openFile = (path: string, size: number, { format, noted }: Options): Effect.Effect<OpenSource, Failure> => {
  const producer = realpathSync(path)
  const mark = noted(producer)
  const read = mark === undefined ? 0 : Math.floor(mark / checks)
  const isSame = mark === undefined || (size >= read && markOf(producer, read, format) === mark)
  if (!isSame && format !== "file") return Effect.fail(badInput(replaced(path, read)))
  const isDone = mark !== undefined && isSame && size === read
  const offset = format === "file" ? 0 : mark === undefined ? 0 : resumeAt(producer, read, size)
  if (offset === undefined) return Effect.fail(badInput(torn(path)))
  const reading = new FileReading(producer, offset)
  return Effect.succeed({
    name: path,
    producer,
    offset,
    bytes: isDone ? undefined : reading,
    markAt: (end) => markOf(producer, end, format),
    close: () => reading.close(),
    note: noteOf(path, mark, read, isDone),
    failed: failedAt(path)
  })
}

/** A file that is opened when its bytes are asked for. */
class FileReading implements AsyncIterable<Uint8Array> {
  readonly #path: string
  readonly #start: number
  #stream: ReadStream | undefined

  constructor(path: string, start: number) {
    this.#path = path
    this.#start = start
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    this.#stream = createReadStream(this.#path, { start: this.#start, highWaterMark: readBytes })
    return this.#stream[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
  }

  close(): void {
    this.#stream?.destroy()
  }
}

const markOf = (path: string, offset: number, format: Format): number => {
  const from = format === "file" ? 0 : Math.max(0, offset - checkedBytes)
  const digest = createHash("sha256")
    .update(bytesOf(path, from, offset))
    .digest()
  return offset * checks + (digest.readUInt16BE() % checks)
}

const bytesOf = (path: string, from: number, end: number): Uint8Array => {
  const file = openSync(path, "r")
  try {
    const bytes = Buffer.alloc(end - from)
    return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, from))
  } finally {
    closeSync(file)
  }
}

/**
 * Where the next line begins: a last line that had no newline may have got it since; `undefined` when it was written on,
 * for then its record, which was sent, is half a line.
 */
const resumeAt = (path: string, read: number, size: number): number | undefined => {
  if (read === 0 || read === size) return read
  const [last, next] = bytesOf(path, read - 1, read + 1)
  return last === newline ? read : next === newline ? read + 1 : undefined
}

const replaced = (path: string, read: number): string =>
  `${path} is not the file of which ${read} B were appended before: it was replaced or cut; ` +
  "send it whole with --again, or name the right file"

const torn = (path: string): string =>
  `the last line of ${path} had no newline when it was sent, and was written on since: its record is torn; ` +
  "send the file whole with --again, or append whole lines only"

const noteOf = (path: string, mark: number | undefined, read: number, isDone: boolean): string | undefined => {
  if (mark === undefined) return undefined
  return isDone
    ? `all ${read} B of ${path} were appended before; only what waits in the outbox is sent ` +
        "(--again sends the file once more)"
    : `going on after byte ${read} of ${path}`
}

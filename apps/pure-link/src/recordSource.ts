/**
 * Records out of a file or stdin, in chunks as the outbox takes them. `lines`: a record per line, without its newline;
 * `ndjson`: the same, each checked to be JSON, blank lines left out; `file`: everything is one record. Every chunk says
 * where in the source it ends, so that an append can note it in the same transaction and a killed `send` goes on exactly
 * there.
 */
import { longestRecord } from "@pure-link/wire"
import { badInput, type Failure } from "./failure.ts"

export const formats = ["lines", "ndjson", "file"] as const
export type Format = (typeof formats)[number]

export interface RecordChunk {
  readonly bytes: Uint8Array
  readonly sizes: Uint32Array
  /** Byte offset in the source just after the last record of the chunk. */
  readonly end: number
}

/** A chunk is handed over when it has this many bytes or records. */
const chunkBytes = 256 * 1024
const chunkRecords = 4_096

const newline = 10

/** Collects records into one chunk. */
class ChunkBuilder {
  #pieces: Array<Uint8Array> = []
  #sizes: Array<number> = []
  #length = 0

  get isFull(): boolean {
    return this.#length >= chunkBytes || this.#sizes.length >= chunkRecords
  }

  get isEmpty(): boolean {
    return this.#sizes.length === 0
  }

  add(record: Uint8Array): void {
    this.#pieces.push(record)
    this.#sizes.push(record.length)
    this.#length += record.length
  }

  take(end: number): RecordChunk {
    const bytes = new Uint8Array(this.#length)
    let at = 0
    for (const piece of this.#pieces) {
      bytes.set(piece, at)
      at += piece.length
    }
    const chunk = { bytes, sizes: Uint32Array.from(this.#sizes), end }
    this.#pieces = []
    this.#sizes = []
    this.#length = 0
    return chunk
  }
}

const tooLong = (where: string): Failure =>
  badInput(
    `${where} is longer than the limit of ${longestRecord} B for one record; split it; ` +
      "records before it were appended, this one was not"
  )

/** Bytes of an unfinished line, kept as pieces so that a long line costs one copy. */
class Pending {
  #pieces: Array<Uint8Array> = []
  length = 0

  add(piece: Uint8Array): void {
    if (piece.length === 0) return
    this.#pieces.push(piece)
    this.length += piece.length
  }

  take(last: Uint8Array): Uint8Array {
    if (this.length === 0) return last
    const whole = Buffer.concat([...this.#pieces, last])
    this.#pieces = []
    this.length = 0
    return whole
  }
}

/**
 * Splits a source into chunks. `offset` is where in the source its first byte stands. A record that cannot be one ends
 * it with a `Failure` that names the line, counted from `offset`, after everything before it was handed over. With
 * `skipEmpty` a `file` without bytes is no record.
 */
export async function* readRecords(
  source: AsyncIterable<Uint8Array>,
  options: { readonly format: Format; readonly name: string; readonly offset: number; readonly skipEmpty?: boolean }
): AsyncGenerator<RecordChunk, void, void> {
  if (options.format === "file") return yield* readWhole(source, options.name, options.skipEmpty ?? false)
  const lines = new LineReader(options)
  for await (const piece of source) {
    let start = 0
    for (let at = piece.indexOf(newline); at >= 0; at = piece.indexOf(newline, start)) {
      lines.take(piece.subarray(start, at), 1)
      start = at + 1
      if (lines.isDue) yield lines.chunk()
      if (lines.failure) throw lines.failure
    }
    lines.add(piece.subarray(start))
    // What is complete goes out before the source is waited for again: a record typed into a pipe does not wait.
    if (!lines.isEmpty) yield lines.chunk()
    if (lines.failure) throw lines.failure
  }
  if (lines.hasPending) lines.take(new Uint8Array(0), 0)
  if (!lines.isEmpty) yield lines.chunk()
  if (lines.failure) throw lines.failure
}

/** Turns bytes into lines and lines into records, until one of them cannot be a record. */
class LineReader {
  failure: Failure | undefined
  readonly #options: { readonly format: Format; readonly name: string; readonly offset: number }
  readonly #chunk = new ChunkBuilder()
  readonly #pending = new Pending()
  #line = 0
  #end: number

  constructor(options: { readonly format: Format; readonly name: string; readonly offset: number }) {
    this.#options = options
    this.#end = options.offset
  }

  get isEmpty(): boolean {
    return this.#chunk.isEmpty
  }

  /** A chunk is full, or is the last before a failure. */
  get isDue(): boolean {
    return this.#chunk.isFull || (this.failure !== undefined && !this.isEmpty)
  }

  get hasPending(): boolean {
    return this.#pending.length > 0
  }

  chunk(): RecordChunk {
    return this.#chunk.take(this.#end)
  }

  /** Bytes of a line whose end has not come. */
  add(piece: Uint8Array): void {
    this.#pending.add(piece)
    if (this.#pending.length > longestRecord) this.failure = tooLong(this.#where(this.#line + 1))
  }

  /** The last bytes of a line and the length of its end. */
  take(tail: Uint8Array, endLength: number): void {
    if (this.failure) return
    this.#line += 1
    const length = this.#pending.length + tail.length
    const record = this.#pending.take(tail)
    this.failure = this.#judge(record)
    if (this.failure) return
    this.#end += length + endLength
    if (this.#options.format !== "ndjson" || !isBlank(record)) this.#chunk.add(record)
  }

  #judge(record: Uint8Array): Failure | undefined {
    if (record.length > longestRecord) return tooLong(this.#where(this.#line))
    if (this.#options.format !== "ndjson" || isBlank(record) || isJson(record)) return undefined
    return badInput(
      `${this.#where(this.#line)} is not JSON; mend it, or send with --format lines into an outbox of its own; ` +
        "records before it were appended"
    )
  }

  #where(line: number): string {
    const { name, offset } = this.#options
    return `line ${line}${offset === 0 ? "" : ` after byte ${offset}`} of ${name}`
  }
}

const isBlank = (record: Uint8Array): boolean => record.every((byte) => byte <= 32)

const isJson = (record: Uint8Array): boolean => {
  try {
    JSON.parse(Buffer.from(record.buffer, record.byteOffset, record.length).toString("utf8"))
    return true
  } catch {
    return false
  }
}

async function* readWhole(
  source: AsyncIterable<Uint8Array>,
  name: string,
  skipEmpty: boolean
): AsyncGenerator<RecordChunk, void, void> {
  const pieces: Array<Uint8Array> = []
  let length = 0
  for await (const piece of source) {
    pieces.push(piece)
    length += piece.length
    if (length > longestRecord) throw tooLong(name)
  }
  if (length === 0 && skipEmpty) return
  yield { bytes: new Uint8Array(Buffer.concat(pieces)), sizes: Uint32Array.of(length), end: length }
}

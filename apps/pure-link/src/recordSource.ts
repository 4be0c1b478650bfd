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

const checkJson = (record: Uint8Array, where: string): void => {
  try {
    JSON.parse(Buffer.from(record.buffer, record.byteOffset, record.length).toString("utf8"))
  } catch {
    throw badInput(`${where} is not JSON; mend it, or send with --format lines; records before it were appended`)
  }
}

/**
 * Splits a source into chunks. `offset` is where in the source its first byte stands; a generator error is a `Failure` that names
 * the line, counted from `offset`.
 */
export async function* readRecords(
  source: AsyncIterable<Uint8Array>,
  options: { readonly format: Format; readonly name: string; readonly offset: number }
): AsyncGenerator<RecordChunk, void, void> {
  if (options.format === "file") return yield* readWhole(source, options.name)
  const chunk = new ChunkBuilder()
  const pending = new Pending()
  const from = options.offset === 0 ? "" : ` after byte ${options.offset}`
  let line = 0
  let end = options.offset

  const take = (tail: Uint8Array): void => {
    line += 1
    const record = pending.take(tail)
    const where = `line ${line}${from} of ${options.name}`
    if (record.length > longestRecord) throw tooLong(where)
    if (options.format === "ndjson") {
      if (record.every((byte) => byte <= 32)) return
      checkJson(record, where)
    }
    chunk.add(record)
  }

  for await (const piece of source) {
    let start = 0
    for (let at = piece.indexOf(newline); at >= 0; at = piece.indexOf(newline, start)) {
      const length = pending.length + at - start
      take(piece.subarray(start, at))
      end += length + 1
      start = at + 1
      if (chunk.isFull) yield chunk.take(end)
    }
    pending.add(piece.subarray(start))
    if (pending.length > longestRecord) throw tooLong(`line ${line + 1}${from} of ${options.name}`)
    // What is complete goes out before the source is waited for again: a record typed into a pipe does not wait for the next.
    if (!chunk.isEmpty) yield chunk.take(end)
  }
  if (pending.length > 0) {
    end += pending.length
    take(new Uint8Array(0))
  }
  if (!chunk.isEmpty) yield chunk.take(end)
}

async function* readWhole(source: AsyncIterable<Uint8Array>, name: string): AsyncGenerator<RecordChunk, void, void> {
  const pieces: Array<Uint8Array> = []
  let length = 0
  for await (const piece of source) {
    pieces.push(piece)
    length += piece.length
    if (length > longestRecord) throw tooLong(name)
  }
  yield { bytes: new Uint8Array(Buffer.concat(pieces)), sizes: Uint32Array.of(length), end: length }
}

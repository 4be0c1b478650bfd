import type { Bytes } from "@pure-link/wire"
import type { StatementSync } from "node:sqlite"
import { crc32 } from "node:zlib"
import { type Columns, joined } from "../columns.ts"
import { fail, remedies } from "./failure.ts"

/**
 * How records stand in a database: in blocks, each one row with the sizes and the bytes of consecutive records, so that
 * a record costs a few bytes and no statement. Small appends make small blocks; a long record has one for itself. A
 * checksum of all that a row says tells damage that SQLite does not see: it checks where a value stands, not what it is.
 */

/** A block takes records up to these bounds, at least one. */
export const blockBytes: Bytes = 262_144
const blockRecords = 4_096

/** Blocks that have less together are read as one piece: that is worth a copy. */
const joinedBytes: Bytes = 65_536

/** One read takes no more than these, or one block. */
const mostRead: Bytes = 1_048_576
const mostRecords = 65_536

/** A row; sizes are integers of 32 bits, the lowest byte first, as all machines that Node serves have them. */
export interface Block extends Columns {
  readonly first: number
}

/** One transaction deletes at most this much. */
const deletedBlocks = 2_048
const deletedBytes: Bytes = 16 * 1_048_576

/** Cuts consecutive records into blocks; `write` is told which records each is, counted from 0. */
export const cutBlocks = ({ bytes, sizes }: Columns, write: (block: Columns, index: number) => void): void => {
  let index = 0
  let start = 0
  let end = 0
  for (let i = 0; i < sizes.length; i++) {
    const size = sizes[i]!
    if (i > index && (end - start + size > blockBytes || i - index === blockRecords)) {
      write({ bytes: bytes.subarray(start, end), sizes: sizes.subarray(index, i) }, index)
      index = i
      start = end
    }
    end += size
  }
  if (index < sizes.length) {
    write({ bytes: bytes.subarray(start, end), sizes: sizes.subarray(index) }, index)
  }
}

/** Sizes as a row has them. */
export const blobOfSizes = ({ buffer, byteLength, byteOffset }: Uint32Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength)

export const sizesOfBlob = (blob: Uint8Array): Uint32Array =>
  blob.byteOffset % 4 === 0
    ? new Uint32Array(blob.buffer, blob.byteOffset, blob.byteLength >>> 2)
    : new Uint32Array(blob.slice().buffer)

/** The checksum of a row: of its records, its key, and what its further columns say. */
export const checksumOf = ({ bytes, sizes }: Columns, first: number, ...others: ReadonlyArray<unknown>): number =>
  crc32(bytes, crc32(blobOfSizes(sizes), crc32([first, ...others].join(" "))))

/** The bytes of a block's records before record `index`. */
export const bytesBefore = (sizes: Uint32Array, index: number): Bytes => {
  let bytes = 0
  for (let i = 0; i < index; i++) bytes += sizes[i]!
  return bytes
}

/** The columns `first, count, crc, sizes, bytes` and then others, of a row that is an array. */
export type BlockRow = readonly [
  first: number,
  count: number,
  crc: number,
  sizes: Uint8Array,
  bytes: Uint8Array,
  ...Array<unknown>
]

/**
 * Runs a statement that gives blocks in order, and takes the first that holds record `from` with those that follow it,
 * until there are `enough` bytes. A long record is taken alone. Fails when the first is damaged; what stands before a
 * later damage is given, and the next read begins at it.
 */
export const readBlocks = (statement: StatementSync, from: number, enough: Bytes): ReadonlyArray<BlockRow> => {
  const rows: Array<BlockRow> = []
  let bytes = 0
  let next = from
  try {
    for (const found of statement.iterate(from)) {
      const row = found as unknown as BlockRow
      const [first, count, , , data] = row
      const isNext = rows.length === 0 ? first <= next && next < first + count : first === next
      if (!isNext || (rows.length > 0 && data.length > blockBytes)) break
      check(row)
      rows.push(row)
      bytes += data.length
      next = first + count
      if (bytes >= Math.min(enough, mostRead) || next - from >= mostRecords) break
    }
  } catch (cause) {
    if (rows.length === 0) throw cause
  }
  return rows
}

const check = ([first, count, crc, blob, bytes, ...others]: BlockRow): void => {
  if (blob instanceof Uint8Array && bytes instanceof Uint8Array) {
    const sizes = sizesOfBlob(blob)
    if (sizes.length === count && checksumOf({ bytes, sizes }, first, ...others) === crc) return
  }
  fail("unreadable", `records ${first} to ${first + count - 1} are damaged in the file`, remedies.unreadable)
}

/**
 * Consecutive blocks as pieces: large ones as they came, which can move to another thread without a copy, and small ones
 * joined. `make` is given what one piece is made of.
 */
export const piecesOf = <P>(
  rows: ReadonlyArray<BlockRow>,
  make: (piece: Block, rows: ReadonlyArray<BlockRow>) => P
): ReadonlyArray<P> => {
  const pieces: Array<P> = []
  for (let index = 0; index < rows.length;) {
    let end = index
    let bytes = 0
    do bytes += rows[end++]![4].length
    while (end < rows.length && bytes + rows[end]![4].length <= joinedBytes)
    const taken = rows.slice(index, end)
    pieces.push(make(joinBlocks(taken), taken))
    index = end
  }
  return pieces
}

const joinBlocks = (rows: ReadonlyArray<BlockRow>): Block => {
  const [first] = rows[0]!
  const all = rows.map((row) => ({ bytes: row[4], sizes: sizesOfBlob(row[3]) }))
  return { first, ...(all.length === 1 ? all[0]! : joined(all)) }
}

/**
 * Which blocks one transaction deletes, of those that begin at or before a record; the statement gives `first, count,
 * length(bytes)` in order. `last` is the end of the last one that goes.
 */
export const blocksToDelete = (
  statement: StatementSync,
  through: number
): { readonly blocks: number; readonly last: number; readonly bytes: Bytes; readonly isDone: boolean } => {
  let blocks = 0
  let last = 0
  let bytes = 0
  for (const row of statement.all(through, deletedBlocks)) {
    const [first, count, length] = row as unknown as readonly [number, number, number]
    if (first + count - 1 > through) return { blocks, last, bytes, isDone: true }
    if (blocks > 0 && bytes + length > deletedBytes) return { blocks, last, bytes, isDone: false }
    blocks += 1
    last = first + count - 1
    bytes += length
  }
  return { blocks, last, bytes, isDone: blocks < deletedBlocks }
}

/**
 * Rows of one record each, as files of schema 1 have them, gathered into columns as long as all `keys` count on and the
 * source stays; `first` is the first key of the first.
 */
export function* gatherRows(
  statement: StatementSync,
  keys: ReadonlyArray<string>
): Generator<{ readonly first: number; readonly columns: Columns; readonly row: Record<string, unknown> }> {
  let begun: Record<string, unknown> | undefined
  let records: Array<Uint8Array> = []
  let length = 0
  const gathered = () => ({
    first: Number(begun![keys[0]!]),
    row: begun!,
    columns: {
      bytes: Buffer.concat(records),
      sizes: Uint32Array.from(records, (record) => record.length)
    }
  })
  for (const row of statement.iterate()) {
    const bytes = row["bytes"] as Uint8Array
    const follows =
      begun !== undefined && keys.every((key) => Number(row[key]) === Number(begun![key]) + records.length)
    const hasRoom = length < blockBytes && records.length < blockRecords
    if (begun !== undefined && !(follows && hasRoom && row["source"] === begun["source"])) {
      yield gathered()
      begun = undefined
    }
    if (begun === undefined) {
      begun = row
      records = []
      length = 0
    }
    records.push(bytes)
    length += bytes.length
  }
  if (begun !== undefined) yield gathered()
}

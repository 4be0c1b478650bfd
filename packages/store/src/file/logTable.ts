import type { RecordNumber } from "@pure-link/wire"
import type { DatabaseSync, StatementSync } from "node:sqlite"
import type { Columns } from "../columns.ts"
import { type Block, blobOfSizes, checksumOf, cutBlocks, gatherRows, piecesOf, readBlocks } from "./blocks.ts"
import { fail, remedies } from "./failure.ts"

/**
 * The log of an input on disk: a table of blocks by position. Positions have no gaps; which of them are held stands with
 * the input, because pruning may end in the middle of a block.
 */

/** Records of one input that stand together in the file, and the first of them that was asked for. */
export interface InboxPiece extends Block {
  readonly from: number
  /** Whose the records are, in order: source, number of the first, count. */
  readonly runs: ReadonlyArray<readonly [source: string, firstNumber: RecordNumber, count: number]>
}

/** A block holds records of one source; its row is preceded by what every block has. */
export const logTable = (id: number): string => `
  CREATE TABLE log_${id}(
    first INTEGER PRIMARY KEY, count INTEGER NOT NULL CHECK (count >= 1), crc INTEGER NOT NULL, sizes BLOB NOT NULL,
    source INTEGER NOT NULL, number INTEGER NOT NULL, bytes BLOB NOT NULL
  ) STRICT
`

export type LogStatements = ReturnType<typeof prepareLog>

export const prepareLog = (db: DatabaseSync, id: number) => {
  const oldest = db.prepare(`SELECT first, count, length(bytes) FROM log_${id} WHERE first <= ? ORDER BY first LIMIT ?`)
  oldest.setReturnArrays(true)
  return {
    insert: prepareInsert(db, id),
    read: prepareInboxRead(db, id),
    oldest,
    sizes: db.prepare(`SELECT first, count, sizes FROM log_${id} WHERE first <= ? ORDER BY first DESC LIMIT 1`),
    delete: db.prepare(`DELETE FROM log_${id} WHERE first <= ?`)
  }
}

const prepareInsert = (db: DatabaseSync, id: number): StatementSync =>
  db.prepare(`INSERT INTO log_${id} VALUES (?, ?, ?, ?, ?, ?, ?)`)

export const insertBlocks = (
  insert: StatementSync,
  firstPosition: number,
  source: { readonly id: number; readonly name: string },
  firstNumber: RecordNumber,
  records: Columns
): void =>
  cutBlocks(records, (block, index) => {
    const { bytes, sizes } = block
    const first = firstPosition + index
    const number = firstNumber + index
    const crc = checksumOf(block, first, source.name, number)
    insert.run(first, sizes.length, crc, blobOfSizes(sizes), source.id, number, bytes)
  })

/** How far an input's log has come, if there is one. */
export const logOf = (db: DatabaseSync, input: string): (LogExtent & { readonly id: number }) | undefined => {
  const row = db.prepare("SELECT id, last_position, records FROM inputs WHERE input = ?").get(input)
  if (row === undefined) return undefined
  return { id: Number(row["id"]), position: Number(row["last_position"]), records: Number(row["records"]) }
}

/** The last position, and how many records up to it are held. */
export interface LogExtent {
  readonly position: number
  readonly records: number
}

export const prepareInboxRead = (db: DatabaseSync, id: number): StatementSync => {
  const statement = db.prepare(`
    SELECT first, count, crc, sizes, bytes, sources.source, number
    FROM log_${id} AS log LEFT JOIN sources ON sources.id = log.source
    WHERE first >= ifnull((SELECT max(first) FROM log_${id} WHERE first <= ?1), ?1) ORDER BY first
  `)
  statement.setReturnArrays(true)
  return statement
}

/**
 * The block that holds the first record after a position, with those that follow it until there is enough. Fails when
 * the log accounts for that record and it is not there.
 */
export const readPieces = (
  statement: StatementSync,
  log: LogExtent,
  after: number,
  enough: number
): ReadonlyArray<InboxPiece> => {
  const from = Math.max(after, log.position - log.records) + 1
  if (from > log.position) return []
  const rows = readBlocks(statement, from, enough)
  if (rows.length === 0) {
    fail("unreadable", `the record at position ${from} is not in the file, which accounts for it`, remedies.unreadable)
  }
  return piecesOf(rows, (piece, taken) => ({
    ...piece,
    from: Math.max(from, piece.first),
    runs: taken.map((row) => [row[5] as string, row[6] as number, row[1]] as const)
  }))
}

/** Rewrites the logs of a file of schema 1. */
export const migrateLogs = (db: DatabaseSync): void => {
  for (const row of db.prepare("SELECT id FROM inputs").all()) {
    const id = Number(row["id"])
    db.exec(`ALTER TABLE log_${id} RENAME TO rows_${id}; ${logTable(id)}`)
    const insert = prepareInsert(db, id)
    const rows = db.prepare(`
      SELECT position, sources.source, sources.id AS source_id, number, bytes
      FROM rows_${id} AS log LEFT JOIN sources ON sources.id = log.source ORDER BY position
    `)
    for (const { columns, first, row } of gatherRows(rows, ["position", "number"])) {
      const source = { id: Number(row["source_id"]), name: String(row["source"]) }
      insertBlocks(insert, first, source, Number(row["number"]), columns)
    }
    db.exec(`DROP TABLE rows_${id}`)
  }
}

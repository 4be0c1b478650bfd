import type { ProducerPosition } from "@pure-link/ports"
import type { Id64, Life, RecordNumber, StreamName } from "@pure-link/wire"
import type { DatabaseSync, SQLOutputValue, StatementSync } from "node:sqlite"
import type { Columns } from "../columns.ts"
import { atOneMoment, type FileLimits, type Kind, OwnedDatabase, outboxApplicationId } from "./database.ts"
import { fail, type Failure, FileFailure } from "./failure.ts"
import { blobOfId, idOfBlob } from "./ids.ts"
import {
  type Block,
  blobOfSizes,
  blocksToDelete,
  bytesBefore,
  checksumOf,
  cutBlocks,
  gatherRows,
  piecesOf,
  readBlocks,
  sizesOfBlob
} from "./blocks.ts"

/**
 * An outbox on disk (spec §1, §2.1, §8.5): blocks of records by number, the lives that hold them, and one row that says
 * how far the file has come. Removal is in two steps: `removed` moves at once, blocks that end at or before it are deleted
 * a slice per transaction.
 */

export interface OutboxStream extends StreamName {
  readonly shape: Id64
}

/** What a file holds. */
export interface OutboxContents {
  readonly stream: OutboxStream
  readonly generation: Id64
  /** The last number ever appended. */
  readonly last: RecordNumber
  /** Records up to this one are removed. */
  readonly removed: RecordNumber
  /** Blocks up to this record are deleted; never beyond `removed`. */
  readonly deleted: RecordNumber
  /** The last record of the oldest block; `deleted` when there is none. */
  readonly oldestEnd: RecordNumber
  /** Bytes of the records whose blocks are not deleted. */
  readonly bytes: number
  readonly lives: ReadonlyArray<Life>
  /** The position of every producer's last append. */
  readonly producers: ReadonlyArray<ProducerPosition>
}

/** One transaction: records to append, how far to remove, and the life to register if these are its first records. */
export interface OutboxWork {
  readonly first: RecordNumber
  readonly bytes: Uint8Array
  readonly sizes: Uint32Array
  readonly life: Id64 | undefined
  readonly removed: RecordNumber
  /** Producers' positions that these appends bring, in order. */
  readonly producers: ReadonlyArray<ProducerPosition>
}

export interface OutboxProgress {
  readonly deleted: RecordNumber
  /** The last record of the oldest block: when it is removed, there is room. */
  readonly oldestEnd: RecordNumber
  readonly bytes: number
  readonly transactions: number
}

const blocksTable = `
  CREATE TABLE blocks(
    first INTEGER PRIMARY KEY, count INTEGER NOT NULL CHECK (count >= 1), crc INTEGER NOT NULL, sizes BLOB NOT NULL,
    bytes BLOB NOT NULL
  ) STRICT;
`

export const outboxKind: Kind = {
  name: "outbox",
  applicationId: outboxApplicationId,
  create: (db: DatabaseSync) =>
    db.exec(`
      ${blocksTable}
      CREATE TABLE lives(first INTEGER PRIMARY KEY, life BLOB NOT NULL UNIQUE CHECK (length(life) = 8)) STRICT;
      CREATE TABLE producers(producer TEXT PRIMARY KEY NOT NULL, position INTEGER NOT NULL) STRICT, WITHOUT ROWID;
      CREATE TABLE progress(
        id INTEGER PRIMARY KEY CHECK (id = 1), last INTEGER NOT NULL, removed INTEGER NOT NULL,
        deleted INTEGER NOT NULL, bytes INTEGER NOT NULL, CHECK (0 <= deleted AND deleted <= removed AND removed <= last)
      ) STRICT;
      INSERT INTO progress VALUES (1, 0, 0, 0, 0);
    `),
  migrate: (db: DatabaseSync) => {
    db.exec(blocksTable)
    const insert = prepareInsert(db)
    const rows = db.prepare("SELECT number, bytes FROM records ORDER BY number")
    for (const { columns, first } of gatherRows(rows, ["number"])) insertBlocks(insert, first, columns)
    db.exec("DROP TABLE records")
  }
}

export class OutboxFile {
  readonly contents: OutboxContents
  readonly #owned: OwnedDatabase
  readonly #statements: Statements
  readonly #read: StatementSync
  #progress: Progress

  /** Opens the outbox of a stream; one that is new, or that nothing was ever appended to, becomes that with this generation. */
  constructor(file: string, stream: OutboxStream, newGeneration: Id64, limits: FileLimits) {
    this.#owned = new OwnedDatabase(file, outboxKind, limits)
    try {
      const { db } = this.#owned
      this.contents = contentsFor(this.#owned, stream, newGeneration)
      this.#progress = { ...this.contents }
      this.#statements = prepareStatements(db)
      this.#read = prepareRead(db)
    } catch (cause) {
      this.#owned.close()
      throw cause
    }
  }

  /** Appends and removes in one transaction; nothing of it is done when it throws. */
  transact(work: OutboxWork): OutboxProgress {
    let next = this.#progress
    const body = () => {
      next = { ...this.#progress }
      if (work.removed > next.removed) next.removed = work.removed
      if (next.removed > next.deleted && next.removed >= next.oldestEnd) this.#deleteBlocks(next) // the rest may need the room
      if (work.sizes.length > 0) this.#append(work, next)
      for (const { position, producer } of work.producers) this.#statements.setProducer.run(producer, position)
      this.#statements.setProgress.run(next.last, next.removed, next.deleted, next.bytes)
    }
    if (work.sizes.length === 0) this.#owned.removal(body)
    else this.#owned.transaction(body)
    this.#progress = next
    const { bytes, deleted, oldestEnd } = next
    return { deleted, oldestEnd, bytes, transactions: this.#owned.transactions }
  }

  /** The pieces of the file from that on which holds a record. */
  read(from: RecordNumber, enough: number): ReadonlyArray<Block> {
    return readPieces(this.#read, from, enough)
  }

  close(): void {
    this.#owned.close()
  }

  #append({ bytes, first, life, sizes }: OutboxWork, next: Progress): void {
    if (first !== next.last + 1) fail("failed", `record ${first} does not follow ${next.last}`, "open the outbox again")
    if (life !== undefined) this.#statements.addLife.run(first, blobOfId(life))
    const oldest = insertBlocks(this.#statements.insert, first, { bytes, sizes })
    if (next.deleted === next.last) next.oldestEnd = oldest
    next.last += sizes.length
    next.bytes += bytes.length
  }

  /** Deletes the oldest removed blocks, as many as one transaction may, and the lives that end before the last removed record. */
  #deleteBlocks(next: Progress): void {
    const { blocks, bytes, last } = blocksToDelete(this.#statements.removedBlocks, next.removed)
    if (blocks > 0) {
      this.#statements.deleteBlocks.run(last)
      next.deleted = last
      next.bytes -= bytes
    }
    this.#statements.deleteLives.run(next.removed)
    next.oldestEnd = oldestEndOf(this.#statements.oldest, next.deleted)
  }
}

interface Progress {
  last: RecordNumber
  removed: RecordNumber
  deleted: RecordNumber
  oldestEnd: RecordNumber
  bytes: number
}

type Statements = ReturnType<typeof prepareStatements>

const prepareStatements = (db: DatabaseSync) => {
  const removedBlocks = db.prepare(
    "SELECT first, count, length(bytes) FROM blocks WHERE first <= ? ORDER BY first LIMIT ?"
  )
  removedBlocks.setReturnArrays(true)
  return {
    insert: prepareInsert(db),
    removedBlocks,
    oldest: db.prepare(oldestBlock),
    deleteBlocks: db.prepare("DELETE FROM blocks WHERE first <= ?"),
    addLife: db.prepare("INSERT INTO lives VALUES (?, ?)"),
    deleteLives: db.prepare("DELETE FROM lives WHERE first < (SELECT max(first) FROM lives WHERE first <= ?)"),
    setProducer: db.prepare("INSERT OR REPLACE INTO producers VALUES (?, ?)"),
    setProgress: db.prepare("UPDATE progress SET last = ?, removed = ?, deleted = ?, bytes = ?")
  }
}

const oldestBlock = "SELECT first, count FROM blocks ORDER BY first LIMIT 1"

/** The last record of the oldest block; `deleted` when there is none. */
const oldestEndOf = (statement: StatementSync, deleted: RecordNumber): RecordNumber => {
  const row = statement.get()
  return row === undefined ? deleted : Number(row["first"]) + Number(row["count"]) - 1
}

const prepareInsert = (db: DatabaseSync): StatementSync => db.prepare("INSERT INTO blocks VALUES (?, ?, ?, ?, ?)")

/** Inserts records as blocks; returns the last record of the first block. */
const insertBlocks = (insert: StatementSync, first: RecordNumber, records: Columns): RecordNumber => {
  let end = 0
  cutBlocks(records, (block, index) => {
    const { bytes, sizes } = block
    insert.run(first + index, sizes.length, checksumOf(block, first + index), blobOfSizes(sizes), bytes)
    if (index === 0) end = first + sizes.length - 1
  })
  return end
}

/** What a file of this stream holds; it is made one of this stream if nothing forbids that. */
const contentsFor = (owned: OwnedDatabase, stream: OutboxStream, newGeneration: Id64): OutboxContents => {
  const { db } = owned
  if (db.prepare("SELECT 1 FROM meta WHERE key = 'generation'").get() !== undefined) {
    const contents = readContents(db)
    if (isSameStream(contents.stream, stream)) return contents
    if (!isUnused(contents)) throw new FileFailure(wrongStream(contents.stream, stream))
  }
  owned.transaction(() => nameStream(db, stream, newGeneration))
  return readContents(db)
}

/** What a file holds, as of one moment. Fails if it contradicts itself. */
export const readContents = (db: DatabaseSync): OutboxContents => atOneMoment(db, () => contentsOf(db))

/** The same, with the bytes of what is held: without records that are removed and not deleted yet. */
export const readHeld = (db: DatabaseSync): OutboxContents & { readonly heldBytes: number } =>
  atOneMoment(db, () => {
    const contents = contentsOf(db)
    let heldBytes = contents.bytes
    const rows = db.prepare("SELECT first, count, sizes FROM blocks WHERE first <= ?")
    for (const row of rows.iterate(contents.removed)) {
      const removed = Math.min(Number(row["count"]), contents.removed - Number(row["first"]) + 1)
      heldBytes -= bytesBefore(sizesOfBlob(row["sizes"] as Uint8Array), removed)
    }
    return { ...contents, heldBytes }
  })

const contentsOf = (db: DatabaseSync): OutboxContents => {
  const meta = new Map(
    db
      .prepare("SELECT key, value FROM meta")
      .all()
      .map((row) => [row["key"], row["value"]])
  )
  const progress = db.prepare("SELECT last, removed, deleted, bytes FROM progress").get() as
    | { last: number; removed: number; deleted: number; bytes: number }
    | undefined
  const lowest = db.prepare(oldestBlock).get()?.["first"]
  const newest = db.prepare("SELECT first, count FROM blocks ORDER BY first DESC LIMIT 1").get()
  const lives = db
    .prepare("SELECT first, life FROM lives ORDER BY first")
    .all()
    .map((row) => ({ first: Number(row["first"]), life: idOfBlob(row["life"] as Uint8Array) }))
  if (
    progress === undefined ||
    (lowest ?? progress.deleted + 1) !== progress.deleted + 1 ||
    (newest === undefined ? progress.deleted : Number(newest["first"]) + Number(newest["count"]) - 1) !== progress.last
  ) {
    const detail = "the file is damaged: its records are not those it accounts for"
    return fail("unreadable", detail, "restore it from a backup")
  }
  return {
    stream: { source: String(meta.get("source")), input: String(meta.get("input")), shape: idOf(meta.get("shape")) },
    generation: idOf(meta.get("generation")),
    ...progress,
    oldestEnd: oldestEndOf(db.prepare(oldestBlock), progress.deleted),
    lives,
    producers: db
      .prepare("SELECT producer, position FROM producers")
      .all()
      .map((row) => ({ producer: String(row["producer"]), position: Number(row["position"]) }))
  }
}

export const prepareRead = (db: DatabaseSync): StatementSync => {
  const statement = db.prepare(`
    SELECT first, count, crc, sizes, bytes FROM blocks
    WHERE first >= ifnull((SELECT max(first) FROM blocks WHERE first <= ?1), ?1) ORDER BY first
  `)
  statement.setReturnArrays(true)
  return statement
}

/** The block that holds a record, with those that follow it until there is enough; none if it is not there. */
export const readPieces = (statement: StatementSync, from: RecordNumber, enough: number): ReadonlyArray<Block> =>
  piecesOf(readBlocks(statement, from, enough), (piece) => piece)

const nameStream = (db: DatabaseSync, stream: OutboxStream, generation: Id64): void => {
  const insert = db.prepare("INSERT OR REPLACE INTO meta VALUES (?, ?)")
  insert.run("source", stream.source)
  insert.run("input", stream.input)
  insert.run("shape", blobOfId(stream.shape))
  insert.run("generation", blobOfId(generation))
}

export const isSameStream = (a: OutboxStream, b: OutboxStream): boolean =>
  a.source === b.source && a.input === b.input && a.shape === b.shape

/** Nothing was ever appended, so no other node has heard of it: it may become the outbox of any stream. */
export const isUnused = ({ last, producers }: OutboxContents): boolean => last === 0 && producers.length === 0

/** Why an outbox that holds one stream is not opened for another. */
export const wrongStream = (held: OutboxStream, asked: OutboxStream): Failure => {
  const nameOf = ({ input, source }: OutboxStream) => `source "${source}" for input "${input}"`
  const shapeOf = ({ shape }: OutboxStream) =>
    held.shape === asked.shape ? "" : ` with shape ${shape.toString(16).padStart(16, "0")}`
  const detail = `the outbox is that of ${nameOf(held)}${shapeOf(held)}, not of ${nameOf(asked)}${shapeOf(asked)}`
  const remedy =
    held.source === asked.source && held.input === asked.input
      ? "drain it with the record type it was made with, then use a new file"
      : "give each output a file of its own"
  return { reason: "unreadable", detail, remedy }
}

const idOf = (value: SQLOutputValue | undefined): Id64 =>
  value instanceof Uint8Array && value.length === 8
    ? idOfBlob(value)
    : fail("unreadable", "the file is damaged: it lacks an id", "restore it from a backup")

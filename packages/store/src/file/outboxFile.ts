import type { ProducerPosition } from "@pure-link/ports"
import type { Id64, Life, RecordBatch, RecordNumber, StreamName } from "@pure-link/wire"
import type { DatabaseSync, SQLOutputValue, StatementSync } from "node:sqlite"
import { type FileLimits, type Kind, OwnedDatabase, outboxApplicationId } from "./database.ts"
import { fail, type Failure, FileFailure } from "./failure.ts"
import { blobOfId, idOfBlob } from "./ids.ts"
import { readSome, type ReadBounds } from "./reading.ts"

/**
 * An outbox on disk (spec §1, §2.1, §8.5): records by number, the lives that hold them, and one row that says how far
 * the file has come. Removal is in two steps: `removed` moves at once, the rows up to it are deleted a slice per
 * transaction.
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
  /** Rows up to this one are deleted; never beyond `removed`. */
  readonly deleted: RecordNumber
  /** Bytes of the records whose rows are not deleted. */
  readonly bytes: number
  readonly lives: ReadonlyArray<Life>
  /** The position of every producer's last append. */
  readonly producers: ReadonlyArray<ProducerPosition>
}

/** One transaction: records to append, how far to remove, and the life to register if these are its first records. */
export interface OutboxGroup {
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
  readonly bytes: number
  readonly transactions: number
}

export const outboxKind: Kind = {
  name: "outbox",
  applicationId: outboxApplicationId,
  create: (db: DatabaseSync) =>
    db.exec(`
      CREATE TABLE records(number INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
      CREATE TABLE lives(first INTEGER PRIMARY KEY, life BLOB NOT NULL UNIQUE CHECK (length(life) = 8)) STRICT;
      CREATE TABLE producers(producer TEXT PRIMARY KEY NOT NULL, position INTEGER NOT NULL) STRICT, WITHOUT ROWID;
      CREATE TABLE progress(
        id INTEGER PRIMARY KEY CHECK (id = 1), last INTEGER NOT NULL, removed INTEGER NOT NULL,
        deleted INTEGER NOT NULL, bytes INTEGER NOT NULL, CHECK (0 <= deleted AND deleted <= removed AND removed <= last)
      ) STRICT;
      INSERT INTO progress VALUES (1, 0, 0, 0, 0);
    `)
}

/** One transaction deletes at most this much. */
const deletedRows = 2_048
const deletedBytes = 16 * 1_048_576

export class OutboxFile {
  readonly contents: OutboxContents
  readonly #owned: OwnedDatabase
  readonly #insert: StatementSync
  readonly #read: StatementSync
  readonly #setProducer: StatementSync
  readonly #setProgress: StatementSync
  #progress: { last: number; removed: number; deleted: number; bytes: number }

  /** Opens the outbox of a stream; one that is new, or that nothing was ever appended to, becomes that with this generation. */
  constructor(file: string, stream: OutboxStream, newGeneration: Id64, limits: FileLimits) {
    this.#owned = new OwnedDatabase(file, outboxKind, limits)
    try {
      const { db } = this.#owned
      this.contents = contentsFor(this.#owned, stream, newGeneration)
      this.#progress = { ...this.contents }
      this.#insert = db.prepare("INSERT INTO records VALUES (?, ?)")
      this.#read = prepareRead(db)
      this.#setProducer = db.prepare("INSERT OR REPLACE INTO producers VALUES (?, ?)")
      this.#setProgress = db.prepare("UPDATE progress SET last = ?, removed = ?, deleted = ?, bytes = ?")
    } catch (cause) {
      this.#owned.close()
      throw cause
    }
  }

  /** Appends and removes in one transaction; nothing of it is done when it throws. */
  transact(group: OutboxGroup): OutboxProgress {
    const { db } = this.#owned
    let next = this.#progress
    const body = () => {
      next = { ...this.#progress }
      if (group.removed > next.removed) next.removed = group.removed
      if (next.deleted < next.removed) deleteSlice(db, next) // first: the rows to come may need the room
      if (group.sizes.length > 0) this.#append(group, next)
      for (const { position, producer } of group.producers) this.#setProducer.run(producer, position)
      this.#setProgress.run(next.last, next.removed, next.deleted, next.bytes)
    }
    if (group.sizes.length === 0) this.#owned.removal(body)
    else this.#owned.transaction(body)
    this.#progress = next
    return { deleted: next.deleted, bytes: next.bytes, transactions: this.#owned.transactions }
  }

  read(from: RecordNumber, bounds: ReadBounds): RecordBatch {
    return readBatch(this.#read, from, bounds)
  }

  close(): void {
    this.#owned.close()
  }

  #append({ bytes, first, life, sizes }: OutboxGroup, next: { last: number; bytes: number }): void {
    if (first !== next.last + 1) fail("failed", `record ${first} does not follow ${next.last}`, "open the outbox again")
    if (life !== undefined) this.#owned.db.prepare("INSERT INTO lives VALUES (?, ?)").run(first, blobOfId(life))
    let start = 0
    for (const size of sizes) {
      this.#insert.run(++next.last, bytes.subarray(start, (start += size)))
      next.bytes += size
    }
  }
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

/** The same, with the bytes of what is held: without rows that are removed and not deleted yet. */
export const readHeld = (db: DatabaseSync): OutboxContents & { readonly heldBytes: number } =>
  atOneMoment(db, () => {
    const contents = contentsOf(db)
    const total = "SELECT ifnull(sum(length(bytes)), 0) AS bytes FROM records WHERE number <= ?"
    return { ...contents, heldBytes: contents.bytes - Number(db.prepare(total).get(contents.removed)!["bytes"]) }
  })

const atOneMoment = <A>(db: DatabaseSync, body: () => A): A => {
  db.exec("BEGIN")
  try {
    return body()
  } finally {
    db.exec("COMMIT")
  }
}

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
  const lowest = db.prepare("SELECT min(number) AS number FROM records").get()!["number"]
  const highest = db.prepare("SELECT max(number) AS number FROM records").get()!["number"]
  const lives = db
    .prepare("SELECT first, life FROM lives ORDER BY first")
    .all()
    .map((row) => ({ first: Number(row["first"]), life: idOfBlob(row["life"] as Uint8Array) }))
  if (
    progress === undefined ||
    (lowest ?? progress.deleted + 1) !== progress.deleted + 1 ||
    (highest ?? progress.deleted) !== progress.last
  ) {
    const detail = "the file is damaged: its records are not those it accounts for"
    return fail("unreadable", detail, "restore it from a backup")
  }
  return {
    stream: { source: String(meta.get("source")), input: String(meta.get("input")), shape: idOf(meta.get("shape")) },
    generation: idOf(meta.get("generation")),
    ...progress,
    lives,
    producers: db
      .prepare("SELECT producer, position FROM producers")
      .all()
      .map((row) => ({ producer: String(row["producer"]), position: Number(row["position"]) }))
  }
}

export const prepareRead = (db: DatabaseSync): StatementSync => {
  const statement = db.prepare("SELECT number, bytes FROM records WHERE number >= ? ORDER BY number LIMIT ?")
  statement.setReturnArrays(true)
  return statement
}

/** Consecutive records from `from` on; none if that one is not there. */
export const readBatch = (statement: StatementSync, from: RecordNumber, bounds: ReadBounds): RecordBatch => {
  const { bytes, rows, sizes } = readSome(statement, [from, bounds.records], 1, bounds)
  let count = 0
  let length = 0
  while (count < rows.length && rows[count]![0] === from + count) length += sizes[count++]!
  if (count === rows.length) return { first: from, bytes, sizes }
  return { first: from, bytes: bytes.slice(0, length), sizes: sizes.slice(0, count) }
}

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

/**
 * Deletes the oldest removed rows, as many as one transaction may, and the lives that end before the last removed
 * record.
 */
const deleteSlice = (db: DatabaseSync, next: { removed: number; deleted: number; bytes: number }): void => {
  const rows = db
    .prepare("SELECT number, length(bytes) AS size FROM records WHERE number <= ? ORDER BY number LIMIT ?")
    .all(next.removed, deletedRows)
  let bytes = 0
  for (const { number, size } of rows) {
    if (bytes > 0 && bytes + Number(size) > deletedBytes) break
    bytes += Number(size)
    next.deleted = Number(number)
  }
  next.bytes -= bytes
  db.prepare("DELETE FROM records WHERE number <= ?").run(next.deleted)
  db.prepare("DELETE FROM lives WHERE first < (SELECT max(first) FROM lives WHERE first <= ?)").run(next.removed)
}

const idOf = (value: SQLOutputValue | undefined): Id64 =>
  value instanceof Uint8Array && value.length === 8
    ? idOfBlob(value)
    : fail("unreadable", "the file is damaged: it lacks an id", "restore it from a backup")

import type { CommitOutcome, RecordNumber, StreamCursor, StreamName } from "@pure-link/wire"
import type { InputSummary } from "@pure-link/ports"
import type { DatabaseSync, StatementSync } from "node:sqlite"
import { type IntentHead, judge } from "../storingRules.ts"
import { type FileLimits, inboxApplicationId, type Kind, OwnedDatabase } from "./database.ts"
import { fail } from "./failure.ts"
import { blobOfId, idOfBlob } from "./ids.ts"
import { type ReadBounds, readSome } from "./reading.ts"

/**
 * An inbox on disk (spec §2.2, §2.3): one log table per input, the cursor of every generation of every stream, and the
 * cursors of consumers. The last position of a log stands beside it, so that no position is used twice whatever was
 * pruned.
 */

/** What an owner keeps in memory of a file. */
export interface InboxContents {
  readonly streams: ReadonlyArray<StoredStream>
  readonly positions: ReadonlyArray<readonly [input: string, lastPosition: number]>
}

export interface StoredStream extends StreamCursor {
  readonly source: string
  readonly input: string
  readonly retired: boolean
}

export interface Acknowledgement {
  readonly input: string
  readonly consumer: string
  readonly position: number
}

/** One transaction: batches of all intents one after the other, consumers' acknowledgements, and then what is forgotten. */
export interface InboxGroup {
  readonly intents: ReadonlyArray<IntentHead>
  readonly bytes: Uint8Array
  readonly sizes: Uint32Array
  readonly acknowledgements: ReadonlyArray<Acknowledgement>
  /** Streams whose retired generations are forgotten. */
  readonly forgets: ReadonlyArray<StreamName>
}

export interface InboxProgress {
  readonly outcomes: ReadonlyArray<CommitOutcome>
  /** Retired generations forgotten, for each of `forgets`. */
  readonly forgotten: ReadonlyArray<number>
  /** The last position of every input that grew. */
  readonly positions: ReadonlyArray<readonly [input: string, lastPosition: number]>
  readonly transactions: number
}

/** Records of one input, with the distinct sources listed once. */
export interface InboxRows {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly sizes: Uint32Array<ArrayBuffer>
  readonly positions: Float64Array<ArrayBuffer>
  readonly numbers: Float64Array<ArrayBuffer>
  readonly sources: ReadonlyArray<string>
  readonly sourceIndexes: Uint32Array<ArrayBuffer>
}

export const inboxKind: Kind = {
  name: "inbox",
  applicationId: inboxApplicationId,
  create: (db: DatabaseSync) =>
    db.exec(`
      CREATE TABLE inputs(
        id INTEGER PRIMARY KEY, input TEXT NOT NULL UNIQUE, last_position INTEGER NOT NULL, records INTEGER NOT NULL,
        bytes INTEGER NOT NULL
      ) STRICT;
      CREATE TABLE sources(id INTEGER PRIMARY KEY, source TEXT NOT NULL UNIQUE) STRICT;
      CREATE TABLE streams(
        id INTEGER PRIMARY KEY, source INTEGER NOT NULL REFERENCES sources, input INTEGER NOT NULL REFERENCES inputs,
        generation BLOB NOT NULL CHECK (length(generation) = 8), n INTEGER NOT NULL CHECK (n >= 1),
        life BLOB NOT NULL CHECK (length(life) = 8), retired INTEGER NOT NULL CHECK (retired IN (0, 1)),
        UNIQUE (source, input, generation)
      ) STRICT;
      CREATE UNIQUE INDEX current_stream ON streams(source, input) WHERE retired = 0;
      CREATE TABLE consumers(
        input INTEGER NOT NULL REFERENCES inputs, consumer TEXT NOT NULL, position INTEGER NOT NULL,
        PRIMARY KEY (input, consumer)
      ) STRICT, WITHOUT ROWID;
    `)
}

/** One transaction prunes at most this much. */
const prunedRows = 2_048
const prunedBytes = 16 * 1_048_576

/** An input's log while the file is open. */
interface Log {
  readonly id: number
  readonly insert: StatementSync
  readonly read: StatementSync
  position: number
  records: number
  bytes: number
}

export class InboxFile {
  readonly contents: InboxContents
  readonly #owned: OwnedDatabase
  readonly #db: DatabaseSync
  #logs = new Map<string, Log>()
  #sources = new Map<string, number>()
  /** Whether a transaction that was undone may have changed them: they are read again before they are used again. */
  #isStale = true
  readonly #statements: Statements

  constructor(file: string, limits: FileLimits) {
    this.#owned = new OwnedDatabase(file, inboxKind, limits)
    this.#db = this.#owned.db
    try {
      this.contents = readInboxContents(this.#db)
      this.#statements = prepareStatements(this.#db)
      this.#recall()
    } catch (cause) {
      this.#owned.close()
      throw cause
    }
  }

  /** Judges and stores every intent in order and takes the acknowledgements, in one transaction. */
  transact(group: InboxGroup): InboxProgress {
    const outcomes: Array<CommitOutcome> = []
    let forgotten: ReadonlyArray<number> = []
    const grown = new Set<string>()
    this.#recall()
    try {
      this.#owned.transaction(() => {
        let record = 0
        let offset = 0
        for (const intent of group.intents) {
          const sizes = group.sizes.subarray(record, (record += intent.count))
          const start = offset
          for (const size of sizes) offset += size
          outcomes.push(this.#store(intent, group.bytes.subarray(start, offset), sizes, grown))
        }
        for (const acknowledgement of group.acknowledgements) this.#acknowledge(acknowledgement)
        forgotten = group.forgets.map((name) => this.#forgetRetired(name))
      })
    } catch (cause) {
      this.#isStale = true
      throw cause
    }
    const positions = [...grown].map((input) => [input, this.#logs.get(input)!.position] as const)
    return { outcomes, forgotten, positions, transactions: this.#owned.transactions }
  }

  read(input: string, after: number, bounds: ReadBounds): InboxRows {
    this.#recall()
    const log = this.#logs.get(input)
    return log === undefined ? noRows() : readRows(log.read, after, bounds)
  }

  consumerPosition(input: string, consumer: string): number {
    const row = this.#db
      .prepare(`
      SELECT position FROM consumers JOIN inputs ON inputs.id = consumers.input WHERE inputs.input = ? AND consumer = ?
    `)
      .get(input, consumer)
    return Number(row?.["position"] ?? 0)
  }

  /** Deletes the oldest records up to a position, as many as one transaction may. Cursors stay (spec §2.3). */
  prune(input: string, through: number): { readonly pruned: number; readonly transactions: number } {
    this.#recall()
    const log = this.#logs.get(input)
    if (log === undefined) return { pruned: 0, transactions: this.#owned.transactions }
    const rows = this.#db
      .prepare(
        `SELECT position, length(bytes) AS size FROM log_${log.id} WHERE position <= ? ORDER BY position LIMIT ?`
      )
      .all(through, prunedRows)
    let bytes = 0
    let pruned = 0
    for (const { size } of rows) {
      if (bytes > 0 && bytes + Number(size) > prunedBytes) break
      bytes += Number(size)
      pruned++
    }
    if (pruned === 0) return { pruned, transactions: this.#owned.transactions }
    this.#owned.removal(() => {
      this.#db.prepare(`DELETE FROM log_${log.id} WHERE position <= ?`).run(Number(rows[pruned - 1]!["position"]))
      this.#statements.setInput.run(log.position, log.records - pruned, log.bytes - bytes, log.id)
    })
    log.records -= pruned
    log.bytes -= bytes
    return { pruned, transactions: this.#owned.transactions }
  }

  summaries(): ReadonlyArray<InputSummary> {
    return readSummaries(this.#db)
  }

  close(): void {
    this.#owned.close()
  }

  #store(intent: IntentHead, bytes: Uint8Array, sizes: Uint32Array, grown: Set<string>): CommitOutcome {
    const source = this.#sources.get(intent.source)
    const log = this.#logs.get(intent.input)
    const rows = source === undefined || log === undefined ? [] : this.#statements.streams.all(source, log.id)
    let cursor: StreamCursor | undefined
    let isRetired = false
    let retiredCount = 0
    for (const row of rows) {
      if (row["retired"] === 0) cursor = cursorOf(row)
      else {
        retiredCount++
        if (idOfBlob(row["generation"] as Uint8Array) === intent.generation) isRetired = true
      }
    }
    const verdict = judge(intent, { cursor, isRetired, retiredCount })
    if (verdict._tag === "Conflict") return { _tag: "Conflict", cursor }
    if (verdict._tag === "Nothing") return { _tag: "Stored", cursor: cursor! }
    this.#appendToLog(intent, bytes, sizes)
    this.#setCursor(intent, verdict.cursor, verdict.replaces)
    grown.add(intent.input)
    return { _tag: "Stored", cursor: verdict.cursor }
  }

  #appendToLog(intent: IntentHead, bytes: Uint8Array, sizes: Uint32Array): void {
    const source = this.#sourceId(intent.source)
    const log = this.#logs.get(intent.input) ?? this.#createLog(intent.input)
    let number: RecordNumber = intent.first
    let start = 0
    for (const size of sizes) log.insert.run(++log.position, source, number++, bytes.subarray(start, (start += size)))
    log.records += sizes.length
    log.bytes += bytes.length
    this.#statements.setInput.run(log.position, log.records, log.bytes, log.id)
  }

  #setCursor(intent: IntentHead, { generation, life, n }: StreamCursor, replaces: boolean): void {
    const source = this.#sourceId(intent.source)
    const input = this.#logs.get(intent.input)!.id
    if (replaces) this.#statements.retire.run(source, input)
    this.#statements.setCursor.run(source, input, blobOfId(generation), n, blobOfId(life))
  }

  #acknowledge({ consumer, input, position }: Acknowledgement): void {
    const log = this.#logs.get(input)
    if (position > (log?.position ?? 0)) {
      const detail = `position ${position} of ${input} is beyond its last, ${log?.position ?? 0}`
      fail("failed", detail, "acknowledge what was read")
    }
    if (log !== undefined) this.#statements.acknowledge.run(log.id, consumer, position)
  }

  #forgetRetired({ input, source }: StreamName): number {
    const [sourceId, log] = [this.#sources.get(source), this.#logs.get(input)]
    if (sourceId === undefined || log === undefined) return 0
    return Number(this.#statements.forgetRetired.run(sourceId, log.id).changes)
  }

  #sourceId(source: string): number {
    const known = this.#sources.get(source)
    if (known !== undefined) return known
    const id = Number(this.#db.prepare("INSERT INTO sources(source) VALUES (?)").run(source).lastInsertRowid)
    this.#sources.set(source, id)
    return id
  }

  #createLog(input: string): Log {
    const insert = this.#db.prepare("INSERT INTO inputs(input, last_position, records, bytes) VALUES (?, 0, 0, 0)")
    const id = Number(insert.run(input).lastInsertRowid)
    this.#db.exec(`
      CREATE TABLE log_${id}(
        position INTEGER PRIMARY KEY, source INTEGER NOT NULL, number INTEGER NOT NULL, bytes BLOB NOT NULL
      ) STRICT
    `)
    const log = this.#openLog(id, 0, 0, 0)
    this.#logs.set(input, log)
    return log
  }

  #openLog(id: number, position: number, records: number, bytes: number): Log {
    const insert = this.#db.prepare(`INSERT INTO log_${id} VALUES (?, ?, ?, ?)`)
    return { id, insert, read: prepareInboxRead(this.#db, id), position, records, bytes }
  }

  /** Reads inputs and sources, if what is in memory may not be what is on disk. Fails leaving it so. */
  #recall(): void {
    if (!this.#isStale) return
    const sources = new Map<string, number>()
    const logs = new Map<string, Log>()
    for (const row of this.#db.prepare("SELECT id, source FROM sources").all()) {
      sources.set(String(row["source"]), Number(row["id"]))
    }
    for (const row of this.#db.prepare("SELECT id, input, last_position, records, bytes FROM inputs").all()) {
      const [id, position, records, bytes] = [row["id"], row["last_position"], row["records"], row["bytes"]]
      logs.set(String(row["input"]), this.#openLog(Number(id), Number(position), Number(records), Number(bytes)))
    }
    this.#sources = sources
    this.#logs = logs
    this.#isStale = false
  }
}

type Statements = ReturnType<typeof prepareStatements>

const prepareStatements = (db: DatabaseSync) => ({
  streams: db.prepare("SELECT generation, n, life, retired FROM streams WHERE source = ? AND input = ?"),
  setInput: db.prepare("UPDATE inputs SET last_position = ?, records = ?, bytes = ? WHERE id = ?"),
  forgetRetired: db.prepare("DELETE FROM streams WHERE source = ? AND input = ? AND retired = 1"),
  retire: db.prepare("UPDATE streams SET retired = 1 WHERE source = ? AND input = ? AND retired = 0"),
  setCursor: db.prepare(`
    INSERT INTO streams(source, input, generation, n, life, retired) VALUES (?, ?, ?, ?, ?, 0)
    ON CONFLICT (source, input, generation) DO UPDATE SET n = excluded.n, life = excluded.life
  `),
  acknowledge: db.prepare(`
    INSERT INTO consumers VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET position = max(position, excluded.position)
  `)
})

const noRows = (): InboxRows => ({
  bytes: new Uint8Array(0),
  sizes: new Uint32Array(0),
  positions: new Float64Array(0),
  numbers: new Float64Array(0),
  sources: [],
  sourceIndexes: new Uint32Array(0)
})

const cursorOf = (row: Record<string, unknown>): StreamCursor => ({
  generation: idOfBlob(row["generation"] as Uint8Array),
  n: Number(row["n"]),
  life: idOfBlob(row["life"] as Uint8Array)
})

const readInboxContents = (db: DatabaseSync): InboxContents => ({
  streams: db
    .prepare(`
    SELECT sources.source, inputs.input, generation, n, life, retired FROM streams
    JOIN sources ON sources.id = streams.source JOIN inputs ON inputs.id = streams.input ORDER BY streams.id
  `)
    .all()
    .map((row) => ({
      ...cursorOf(row),
      source: String(row["source"]),
      input: String(row["input"]),
      retired: row["retired"] === 1
    })),
  positions: db
    .prepare("SELECT input, last_position FROM inputs")
    .all()
    .map((row) => [String(row["input"]), Number(row["last_position"])] as const)
})

/** The table of an input's log, if there is one. */
export const logIdOf = (db: DatabaseSync, input: string): number | undefined => {
  const row = db.prepare("SELECT id FROM inputs WHERE input = ?").get(input)
  return row === undefined ? undefined : Number(row["id"])
}

export const prepareInboxRead = (db: DatabaseSync, id: number): StatementSync => {
  const statement = db.prepare(`
    SELECT position, sources.source, number, bytes FROM log_${id} AS log CROSS JOIN sources ON sources.id = log.source
    WHERE position > ? ORDER BY position LIMIT ?
  `)
  statement.setReturnArrays(true)
  return statement
}

export const readRows = (statement: StatementSync, after: number, bounds: ReadBounds): InboxRows => {
  const { bytes, rows, sizes } = readSome(statement, [after, bounds.records], 3, bounds)
  const indexOf = new Map<string, number>()
  const sourceIndexes = new Uint32Array(rows.length)
  const positions = new Float64Array(rows.length)
  const numbers = new Float64Array(rows.length)
  for (let i = 0; i < rows.length; i++) {
    const [position, source, number] = rows[i] as ReadonlyArray<unknown> as [number, string, number]
    if (!indexOf.has(source)) indexOf.set(source, indexOf.size)
    sourceIndexes[i] = indexOf.get(source)!
    positions[i] = position
    numbers[i] = number
  }
  return { bytes, sizes, positions, numbers, sources: [...indexOf.keys()], sourceIndexes }
}

/** Every input's state, in one read transaction. */
export const readSummaries = (db: DatabaseSync): ReadonlyArray<InputSummary> => {
  db.exec("BEGIN")
  try {
    return db
      .prepare("SELECT id, input, last_position, records, bytes FROM inputs ORDER BY input")
      .all()
      .map((row) => {
        const id = Number(row["id"])
        const first = db.prepare(`SELECT min(position) AS position FROM log_${id}`).get()!["position"]
        return {
          input: String(row["input"]),
          records: Number(row["records"]),
          bytes: Number(row["bytes"]),
          firstPosition: Number(first ?? Number(row["last_position"]) + 1),
          lastPosition: Number(row["last_position"]),
          sources: db
            .prepare(`
          SELECT sources.source, generation, n, life FROM streams JOIN sources ON sources.id = streams.source
          WHERE input = ? AND retired = 0 ORDER BY sources.source
        `)
            .all(id)
            .map((stream) => ({ source: String(stream["source"]), ...cursorOf(stream) })),
          consumers: db
            .prepare("SELECT consumer, position FROM consumers WHERE input = ? ORDER BY consumer")
            .all(id)
            .map((consumer) => ({ consumer: String(consumer["consumer"]), position: Number(consumer["position"]) }))
        }
      })
  } finally {
    db.exec("COMMIT")
  }
}

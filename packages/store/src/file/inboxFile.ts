import type { CommitOutcome, RecordNumber, StreamCursor, StreamName } from "@pure-link/wire"
import type { InputSummary } from "@pure-link/ports"
import type { DatabaseSync } from "node:sqlite"
import { type IntentHead, judge } from "../storingRules.ts"
import { atOneMoment, type FileLimits, inboxApplicationId, type Kind, OwnedDatabase } from "./database.ts"
import { fail } from "./failure.ts"
import { blocksToDelete, bytesBefore, sizesOfBlob } from "./blocks.ts"
import { blobOfId, idOfBlob } from "./ids.ts"
import {
  type InboxPiece,
  insertBlocks,
  type LogExtent,
  type LogStatements,
  logTable,
  migrateLogs,
  prepareLog,
  readPieces
} from "./logTable.ts"

/**
 * An inbox on disk (spec §2.2, §2.3): one log table of blocks per input, the cursor of every generation of every stream,
 * and the cursors of consumers. The last position of a log stands beside it, so that no position is used twice whatever
 * was pruned, and so does the last that was pruned, which may be in the middle of a block.
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

export interface Pruning {
  readonly input: string
  /** The last position to delete. */
  readonly through: number
}

/** What a transaction pruned; `isDone` when nothing is left for another one. */
export interface Pruned {
  readonly records: number
  /** The last position that is pruned now. */
  readonly through: number
  readonly isDone: boolean
}

/** One transaction: what is pruned, batches of all intents one after the other, acknowledgements, what is forgotten. */
export interface InboxWork {
  readonly prunings: ReadonlyArray<Pruning>
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
  /** For each of `prunings`. */
  readonly pruned: ReadonlyArray<Pruned>
  /** The last position of every input that grew. */
  readonly positions: ReadonlyArray<readonly [input: string, lastPosition: number]>
  readonly transactions: number
}

export const inboxKind: Kind = {
  name: "inbox",
  applicationId: inboxApplicationId,
  create: (db: DatabaseSync) =>
    db.exec(`
      CREATE TABLE inputs(
        id INTEGER PRIMARY KEY, input TEXT NOT NULL UNIQUE, last_position INTEGER NOT NULL, records INTEGER NOT NULL,
        bytes INTEGER NOT NULL, CHECK (0 <= records AND records <= last_position AND 0 <= bytes)
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
    `),
  migrate: migrateLogs
}

/** An input's log while the file is open. */
interface Log extends LogStatements, LogExtent {
  readonly id: number
  position: number
  /** Held: pruned ones stand before them. */
  records: number
  /** Bytes of the records held. */
  bytes: number
}

/** Batches that follow each other in a log and in their stream: they are stored as if they had come in one. */
interface Pending {
  readonly log: Log
  readonly source: string
  readonly sourceId: number
  readonly firstPosition: number
  readonly firstNumber: RecordNumber
  readonly record: number
  readonly byte: number
  nextNumber: RecordNumber
  nextRecord: number
  nextByte: number
}

export class InboxFile {
  readonly contents: InboxContents
  readonly #owned: OwnedDatabase
  readonly #db: DatabaseSync
  #logs = new Map<string, Log>()
  #sources = new Map<string, number>()
  /** Whether a transaction that was undone may have changed them: they are read again before they are used again. */
  #isStale = true
  #pending: Pending | undefined
  /** Logs that the present transaction changes. */
  readonly #changed = new Set<Log>()
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
  transact(group: InboxWork): InboxProgress {
    const outcomes: Array<CommitOutcome> = []
    let forgotten: ReadonlyArray<number> = []
    let pruned: ReadonlyArray<Pruned> = []
    const grown = new Set<string>()
    this.#recall()
    this.#pending = undefined
    this.#changed.clear()
    const { acknowledgements, forgets, intents } = group
    const isRemoval = intents.length + acknowledgements.length + forgets.length === 0
    try {
      this.#owned[isRemoval ? "removal" : "transaction"](() => {
        pruned = group.prunings.map(({ input, through }) => this.#prune(input, through))
        let record = 0
        let byte = 0
        for (const intent of group.intents) {
          const first = { record, byte }
          const end = record + intent.count
          while (record < end) byte += group.sizes[record++]!
          outcomes.push(this.#store(group, intent, first, { record, byte }, grown))
        }
        this.#flush(group)
        for (const log of this.#changed) {
          this.#statements.setInput.run(log.position, log.records, log.bytes, log.id)
        }
        for (const acknowledgement of group.acknowledgements) this.#acknowledge(acknowledgement)
        forgotten = group.forgets.map((name) => this.#forgetRetired(name))
      })
    } catch (cause) {
      this.#isStale = true
      throw cause
    }
    const positions = [...grown].map((input) => [input, this.#logs.get(input)!.position] as const)
    return { outcomes, forgotten, pruned, positions, transactions: this.#owned.transactions }
  }

  /** The pieces of an input's log from that on which holds the first record after a position. */
  read(input: string, after: number, enough: number): ReadonlyArray<InboxPiece> {
    this.#recall()
    const log = this.#logs.get(input)
    return log === undefined ? [] : readPieces(log.read, log, after, enough)
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
  #prune(input: string, through: number): Pruned {
    const log = this.#logs.get(input)
    if (log === undefined) return { records: 0, through: 0, isDone: true }
    const before = log.position - log.records
    const end = Math.min(through, log.position)
    if (end <= before) return { records: 0, through: before, isDone: true }
    const { blocks, bytes, isDone, last } = blocksToDelete(log.oldest, end)
    // What of the oldest block was pruned before, and of the first that stays is pruned now.
    log.bytes -= bytes - this.#bytesOfBlock(log, before)
    if (blocks > 0) log.delete.run(last)
    const pruned = isDone ? end : last
    if (isDone) log.bytes -= this.#bytesOfBlock(log, end)
    log.records -= pruned - before
    this.#changed.add(log)
    return { records: pruned - before, through: pruned, isDone }
  }

  /** Bytes of the records up to a position in the block that it is in the middle of. */
  #bytesOfBlock(log: Log, position: number): number {
    const row = log.sizes.get(position)
    if (row === undefined) return 0
    const index = position - Number(row["first"]) + 1
    return index < Number(row["count"]) ? bytesBefore(sizesOfBlob(row["sizes"] as Uint8Array), index) : 0
  }

  summaries(): ReadonlyArray<InputSummary> {
    return readSummaries(this.#db)
  }

  close(): void {
    this.#owned.close()
  }

  #store(work: InboxWork, intent: IntentHead, from: Place, to: Place, grown: Set<string>): CommitOutcome {
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
    this.#appendToLog(work, intent, from, to)
    this.#setCursor(intent, verdict.cursor, verdict.replaces)
    grown.add(intent.input)
    return { _tag: "Stored", cursor: verdict.cursor }
  }

  #appendToLog(work: InboxWork, { count, first, input, source }: IntentHead, from: Place, to: Place): void {
    const log = this.#logs.get(input) ?? this.#createLog(input)
    const pending = this.#pending
    if (
      pending?.log === log &&
      pending.source === source &&
      pending.nextNumber === first &&
      pending.nextRecord === from.record
    ) {
      pending.nextNumber += count
      pending.nextRecord = to.record
      pending.nextByte = to.byte
    } else {
      this.#flush(work)
      this.#pending = {
        log,
        source,
        sourceId: this.#sourceId(source),
        firstPosition: log.position + 1,
        firstNumber: first,
        ...from,
        nextNumber: first + count,
        nextRecord: to.record,
        nextByte: to.byte
      }
    }
    log.position += count
    log.records += count
    log.bytes += to.byte - from.byte
    this.#changed.add(log)
  }

  /** Writes the blocks of what is pending. */
  #flush({ bytes, sizes }: InboxWork): void {
    const pending = this.#pending
    this.#pending = undefined
    if (pending === undefined) return
    const { byte, firstNumber, firstPosition, log, nextByte, nextRecord, record, source, sourceId } = pending
    const columns = { bytes: bytes.subarray(byte, nextByte), sizes: sizes.subarray(record, nextRecord) }
    insertBlocks(log.insert, firstPosition, { id: sourceId, name: source }, firstNumber, columns)
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
    this.#db.exec(logTable(id))
    const log = this.#openLog(id, 0, 0, 0)
    this.#logs.set(input, log)
    return log
  }

  #openLog(id: number, position: number, records: number, bytes: number): Log {
    return { ...prepareLog(this.#db, id), id, position, records, bytes }
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

/** A place in a group's columns. */
interface Place {
  readonly record: number
  readonly byte: number
}

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

/** Every input's state, in one read transaction. */
export const readSummaries = (db: DatabaseSync): ReadonlyArray<InputSummary> =>
  atOneMoment(db, () =>
    db
      .prepare("SELECT id, input, last_position, records, bytes FROM inputs ORDER BY input")
      .all()
      .map((row) => {
        const id = Number(row["id"])
        return {
          input: String(row["input"]),
          records: Number(row["records"]),
          bytes: Number(row["bytes"]),
          firstPosition: Number(row["last_position"]) - Number(row["records"]) + 1,
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
  )

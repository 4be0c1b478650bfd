import { statfsSync, statSync } from "node:fs"
import { dirname } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { fail, FileFailure, failureOf, remedies } from "./failure.ts"
import { judgePath, PathWatch } from "./paths.ts"
import { takeOwnership, truePath } from "./owner.ts"
import { Reserve } from "./reserve.ts"

/**
 * A database file of this room: who may open it, what it is, and how it is written. WAL with synchronous=FULL, so that
 * a commit that returned is on disk and nothing half ever shows; both are read back from the live connection, because
 * builds differ in their defaults. A file that is not ours is left as it was.
 */
export interface Kind {
  readonly name: "outbox" | "inbox"
  readonly applicationId: number
  /** Makes the tables, and the rows that every such file has. */
  readonly create: (db: DatabaseSync) => void
  /** Makes a file of schema 1, a row per record, one of this schema. */
  readonly migrate: (db: DatabaseSync) => void
}

export const outboxApplicationId = 0x504c4f42 // "PLOB"
export const inboxApplicationId = 0x504c4942 // "PLIB"

/** The schema that this code writes. A later one is refused; the earlier one is migrated when its owner opens it. */
export const schemaVersion = 2

export interface FileLimits {
  /** The database never grows beyond this many bytes: commits fail with "full" instead. */
  readonly fileBytes?: number | undefined
  /** The write-ahead log, when a foreign reader keeps it from being emptied: commits fail with "full" beyond it. */
  readonly logBytes?: number | undefined
}

/** Large pages cost fewer calls for each block, small ones less log for each small transaction. */
const pageBytes = 16_384
/**
 * A log of this length is copied back into the database: long enough that pages which are used again soon, because
 * records leave about as fast as they come, are copied once for many times that they were written.
 */
const checkpointBytes = 32 * 1_048_576
/** Copying the log back may let the database grow, which is not what the reserve is for. */
const withoutCheckpoints = "PRAGMA wal_autocheckpoint=0"
/** A log is cut back to this length when it is reused. */
const keptLogBytes = 64 * 1_048_576
const defaultLogBytes = 256 * 1_048_576
/** How long a connection waits for another process's short lock, such as that of recovery after a crash. */
const busyMillis = 5_000

/** Runs a pragma that answers with one value. */
const pragma = (db: DatabaseSync, text: string): unknown => Object.values(db.prepare(`PRAGMA ${text}`).get() ?? {})[0]

/** A database that this process owns. */
export class OwnedDatabase {
  readonly db: DatabaseSync
  /** Transactions committed since it was opened. */
  transactions = 0
  readonly #owner: DatabaseSync
  readonly #log: string
  readonly #logBytes: number
  readonly #checkpoints: string
  readonly #paths: PathWatch
  readonly #reserve: Reserve

  constructor(file: string, kind: Kind, limits: FileLimits) {
    const path = truePath(file)
    judgePath(path)
    this.#owner = takeOwnership(path, () => holderOf(path, kind))
    this.#log = `${path}-wal`
    this.#logBytes = limits.logBytes ?? defaultLogBytes
    this.#reserve = new Reserve(path)
    try {
      const opened = this.#withReserve(() => openForWriting(path, kind, this.#logBytes))
      this.db = opened.db
      const page = Number(pragma(this.db, "page_size"))
      const checkpoint = Math.min(checkpointBytes, this.#logBytes / 2)
      this.#checkpoints = `PRAGMA wal_autocheckpoint=${Math.ceil(checkpoint / page)}`
      this.db.exec(this.#reserve.isLent ? withoutCheckpoints : this.#checkpoints)
      try {
        if (opened.found === "older") judgeRoom(path, this.db)
        this.#claim(opened.found, kind)
        this.#paths = new PathWatch(path)
        if (limits.fileBytes !== undefined) pragma(this.db, `max_page_count=${Math.ceil(limits.fileBytes / page)}`)
      } catch (cause) {
        this.db.close()
        throw cause
      }
    } catch (cause) {
      this.#owner.close()
      throw cause
    }
    if (!this.#reserve.isLent) this.#reserve.claim()
  }

  /**
   * Makes a fresh file ours and an older one one of this schema, in one transaction, and notes in it who owns it; the note
   * is not worth a failure when there is no room.
   */
  #claim(found: Found, kind: Kind): void {
    try {
      this.transaction(() => {
        if (found === "empty") createFile(this.db, kind)
        if (found === "older") migrateFile(this.db, kind)
        this.db.prepare("INSERT OR REPLACE INTO meta VALUES ('owner', ?)").run(process.pid)
      })
    } catch (cause) {
      const { detail, reason } = failureOf(cause)
      if (found === "older" && reason === "full") {
        const why = `the file is of an earlier version, and there is no room to rewrite it: ${detail}`
        fail("full", why, "make room for two more files as large as this one; nothing in it was changed")
      }
      if (found !== "ours" || reason !== "full") throw cause
    }
  }

  /** Runs `body` in one transaction: on disk when it returns, undone when it throws. */
  transaction<A>(body: () => A): A {
    if (this.#reserve.isLent) {
      if (!this.#reserve.claim()) {
        fail("full", "the disk is full, and what little room is left is kept for removals", remedies.full)
      }
      this.db.exec(this.#checkpoints)
    }
    return this.#transaction(body)
  }

  /** A transaction that makes room: on a full disk it gets the room that was kept for it. */
  removal<A>(body: () => A): A {
    return this.#withReserve(() => this.#transaction(body))
  }

  #transaction<A>(body: () => A): A {
    this.#boundLog()
    this.db.exec("BEGIN IMMEDIATE")
    try {
      this.#paths?.check() // while the right to write is held: who opens the file now waits for it
      const result = body()
      this.db.exec("COMMIT")
      this.transactions++
      return result
    } catch (cause) {
      if (this.db.isTransaction) this.db.exec("ROLLBACK")
      throw cause
    }
  }

  /** What has no room is tried again with the reserve, and then with what an emptied log may give. */
  #withReserve<A>(run: () => A): A {
    const isDiskFull = (cause: unknown) => failureOf(cause).reason === "full" && !(cause instanceof FileFailure)
    try {
      return run()
    } catch (cause) {
      if (!isDiskFull(cause)) throw cause
      if (!this.#reserve.lend()) return this.#withEmptyLog(run, cause)
      this.db?.exec(withoutCheckpoints)
    }
    try {
      return run()
    } catch (cause) {
      if (!isDiskFull(cause)) throw cause
      return this.#withEmptyLog(run, cause)
    }
  }

  #withEmptyLog<A>(run: () => A, cause: unknown): A {
    if (this.db === undefined) throw cause
    emptyLog(this.db)
    return run()
  }

  /** Closes the file with its log emptied, then gives it up. */
  close(): void {
    try {
      const isOurs = this.#paths.isSame
      if (isOurs && !this.#reserve.isLent) emptyLog(this.db)
      this.db.close()
      if (isOurs) this.#reserve.claim()
    } finally {
      this.#owner.close()
    }
  }

  /** A log beyond its limit is emptied; while a reader's open transaction forbids that, nothing more is written. */
  #boundLog(): void {
    const bytes = statSync(this.#log, { throwIfNoEntry: false })?.size ?? 0
    if (bytes < this.#logBytes) return
    this.db.exec("PRAGMA busy_timeout=50")
    const busy = pragma(this.db, "wal_checkpoint(TRUNCATE)")
    this.db.exec(`PRAGMA busy_timeout=${busyMillis}`)
    if (busy === 0) return
    fail(
      "full",
      `the write-ahead log has ${bytes} B, and another process keeps a read transaction open that forbids emptying it`,
      "end that reader; it is tried again"
    )
  }
}

/** Opens a file that is ours or empty. */
const openForWriting = (path: string, kind: Kind, logBytes: number) => {
  const db = new DatabaseSync(path, { timeout: busyMillis })
  try {
    const found = identify(db, kind)
    prepareForWriting(db, found === "empty", logBytes)
    return { db, found }
  } catch (cause) {
    db.close()
    throw cause
  }
}

/** Empties the log if nothing forbids it: what it holds is as safe there as in the database. */
const emptyLog = (db: DatabaseSync): void => {
  try {
    db.exec("PRAGMA busy_timeout=0; PRAGMA wal_checkpoint(TRUNCATE)")
  } catch {
    // No room for what the database has grown by; the log stays, and the next opening reads it.
  } finally {
    db.exec(`PRAGMA busy_timeout=${busyMillis}`)
  }
}

/**
 * Opens a file for reading beside its owner, if any. Keep no statement open: it would keep the log from being emptied.
 */
export const openForReading = (file: string, kind: Kind): DatabaseSync => {
  if (statSync(file, { throwIfNoEntry: false }) === undefined) {
    return fail("permission", "there is no such file", "name an existing file in a folder that this user may read")
  }
  const db = new DatabaseSync(file, { readOnly: true, timeout: busyMillis })
  try {
    const found = identify(db, kind)
    if (found === "empty") fail("unreadable", "the file is empty", "wait until its owner has made it")
    if (found === "older") {
      const remedy = "start this version on it once, as with `pure-link send` or `serve`: that rewrites the file"
      fail("version", `the file has schema 1, this program reads ${schemaVersion}`, remedy)
    }
    return db
  } catch (cause) {
    db.close()
    throw cause
  }
}

/** Reads in one transaction. */
export const atOneMoment = <A>(db: DatabaseSync, body: () => A): A => {
  db.exec("BEGIN")
  try {
    return body()
  } finally {
    db.exec("COMMIT")
  }
}

/** What a database is: nothing yet, ours, or ours of schema 1. */
type Found = "empty" | "ours" | "older"

/** Tells an empty database and one of our kind and version from everything else, which fails. Changes nothing. */
const identify = (db: DatabaseSync, kind: Kind): Found => {
  const applicationId = pragma(db, "application_id")
  const version = Number(pragma(db, "user_version"))
  const tables = Number(db.prepare("SELECT count(*) AS n FROM sqlite_schema").get()!["n"])
  if (applicationId === 0 && version === 0 && tables === 0) return "empty"
  if (applicationId !== kind.applicationId) {
    const other =
      applicationId === outboxApplicationId
        ? "a Pure Link outbox"
        : applicationId === inboxApplicationId
          ? "a Pure Link inbox"
          : "a database of another program"
    return fail("unreadable", `the file is ${other}, not a Pure Link ${kind.name}`, "name another file")
  }
  const inTable = Number(db.prepare("SELECT value FROM meta WHERE key = 'schema'").get()?.["value"] ?? 0)
  const schema = Math.max(version, inTable)
  if (schema > schemaVersion) {
    const detail = `the file has schema ${schema}, this program knows ${schemaVersion}`
    fail("version", detail, "use the later version of Pure Link that wrote the file")
  }
  if (version !== inTable) {
    fail("unreadable", `the file is damaged: schema ${version} or ${inTable}`, "restore it from a backup")
  }
  return schema < schemaVersion ? "older" : "ours"
}

/** Sets how the connection writes, and holds it to that. */
const prepareForWriting = (db: DatabaseSync, fresh: boolean, logBytes: number): void => {
  if (fresh) db.exec(`PRAGMA page_size=${pageBytes}`)
  const journal = pragma(db, "journal_mode=WAL")
  db.exec(`
    PRAGMA synchronous=FULL;
    PRAGMA fullfsync=ON;
    PRAGMA checkpoint_fullfsync=ON;
    PRAGMA cell_size_check=ON;
    PRAGMA cache_size=-12288;
    PRAGMA journal_size_limit=${Math.min(keptLogBytes, logBytes)};
  `)
  const synchronous = pragma(db, "synchronous")
  if (journal !== "wal" || synchronous !== 2) {
    fail(
      "failed",
      `SQLite offers journal_mode=${String(journal)}, synchronous=${String(synchronous)} instead of WAL and FULL`,
      "put the file on a local disk"
    )
  }
}

const createFile = (db: DatabaseSync, kind: Kind): void => {
  db.exec(`
    PRAGMA application_id=${kind.applicationId};
    PRAGMA user_version=${schemaVersion};
    CREATE TABLE meta(key TEXT PRIMARY KEY NOT NULL, value ANY) STRICT, WITHOUT ROWID;
    INSERT INTO meta VALUES ('schema', ${schemaVersion});
  `)
  kind.create(db)
}

/**
 * Refuses to rewrite a file of schema 1 where that would end with a full disk: all that it holds stands in the log first,
 * and then in the database beside what it replaces. With less room the log could not be emptied, nor records be removed.
 */
const judgeRoom = (path: string, db: DatabaseSync): void => {
  const held = Number(pragma(db, "page_count")) - Number(pragma(db, "freelist_count"))
  const needed = 2 * held * Number(pragma(db, "page_size"))
  const { bavail, bsize } = statfsSync(dirname(path))
  if (bavail * bsize >= needed) return
  fail(
    "full",
    `the file is of an earlier version; to rewrite it takes ${needed} B of the disk, which has ${bavail * bsize} B left`,
    "make room, half of which comes back; nothing in the file was changed"
  )
}

/** Rewrites a file of schema 1. */
const migrateFile = (db: DatabaseSync, kind: Kind): void => {
  kind.migrate(db)
  db.exec(`
    UPDATE meta SET value = ${schemaVersion} WHERE key = 'schema';
    PRAGMA user_version=${schemaVersion};
  `)
}

/** Words for who owns a file: its owner's note in it, as far as that can be read. */
const holderOf = (path: string, kind: Kind): string => {
  try {
    const db = openForReading(path, kind)
    try {
      const pid = Number(db.prepare("SELECT value FROM meta WHERE key = 'owner'").get()?.["value"])
      return pid === process.pid ? `this process (${pid}), which has it open already,` : `process ${pid}`
    } finally {
      db.close()
    }
  } catch (cause) {
    return `another process (${failureOf(cause).detail})`
  }
}

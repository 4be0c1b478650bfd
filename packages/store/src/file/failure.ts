import type { StoreFailure } from "@pure-link/ports"

/**
 * Why a database file did not do what was asked, in words that cross a thread boundary. SQLite's result codes are read
 * here and nowhere else; every other file of this room throws `FileFailure` or lets SQLite's own error pass.
 */
export interface Failure {
  readonly reason: StoreFailure
  readonly detail: string
  readonly remedy: string
  /** Nothing will be done any more, however often it is asked. */
  readonly isFinal?: boolean | undefined
}

export class FileFailure extends Error {
  readonly failure: Failure
  constructor(failure: Failure) {
    super(failure.detail)
    this.failure = failure
  }
}

/** Throws a failure. */
export const fail = (reason: StoreFailure, detail: string, remedy: string): never => {
  throw new FileFailure({ reason, detail, remedy })
}

export const remedies: Record<StoreFailure, string> = {
  locked: "stop the other process, or wait until it has ended",
  unreadable: "restore the file from a backup, or move it away to begin with an empty one",
  version: "use the later version of Pure Link that made the file",
  full: "make room on the disk or raise the quota; it is tried again",
  permission: "make sure that the folder exists and that this user may read and write it and the file",
  died: "open the store again: restart the program",
  failed: "look at the disk and the system's log, then open the file again"
}

/** The primary result codes that have a meaning of their own (https://sqlite.org/rescode.html). */
const reasonOfCode: Readonly<Record<number, StoreFailure>> = {
  3: "permission", // SQLITE_PERM
  5: "locked", // SQLITE_BUSY
  6: "locked", // SQLITE_LOCKED
  8: "permission", // SQLITE_READONLY
  11: "unreadable", // SQLITE_CORRUPT
  13: "full", // SQLITE_FULL
  14: "permission", // SQLITE_CANTOPEN
  23: "permission", // SQLITE_AUTH
  26: "unreadable" // SQLITE_NOTADB
}

/** Extended codes that mean something else than their primary ones. */
const reasonOfExtendedCode: Readonly<Record<number, StoreFailure>> = {
  4874: "full" // SQLITE_IOERR_SHMSIZE: no room for the log's index
}

/** The codes of Node's own errors, from looking at files and folders. */
const reasonOfErrno: Readonly<Record<string, StoreFailure>> = {
  EACCES: "permission",
  EPERM: "permission",
  ENOENT: "permission",
  ENOTDIR: "permission",
  EROFS: "permission",
  ENOSPC: "full",
  EDQUOT: "full"
}

/** What an error means. */
export const failureOf = (cause: unknown): Failure => {
  if (cause instanceof FileFailure) return cause.failure
  const { code, errcode, message } = cause as { code?: unknown; errcode?: unknown; message?: unknown }
  const reason =
    typeof errcode === "number"
      ? (reasonOfExtendedCode[errcode] ?? reasonOfCode[errcode & 0xff])
      : typeof code === "string"
        ? reasonOfErrno[code]
        : undefined
  const detail = String(message ?? cause) + (typeof errcode === "number" ? ` (SQLite ${errcode})` : "")
  return { reason: reason ?? "failed", detail, remedy: remedies[reason ?? "failed"] }
}

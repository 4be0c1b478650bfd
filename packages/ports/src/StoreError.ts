import * as Data from "effect/Data"

/** Why a store did not do what was asked. Nothing is lost: what was not confirmed was not done. */
export type StoreFailure =
  /** Another process owns the file. */
  | "locked"
  /** The file is not one of ours, is damaged, or is of another stream. */
  | "unreadable"
  /** Made by a later schema version. */
  | "version"
  /** No space left, or a quota. Try again when there is room. */
  | "full"
  /** The file or folder cannot be opened or written. */
  | "permission"
  /** The store's thread has ended by an error: nothing is stored any more until the store is opened again. */
  | "died"
  /** Any other failure of the database. */
  | "failed"

export class StoreError extends Data.TaggedError("StoreError")<{
  readonly reason: StoreFailure
  readonly file: string
  readonly detail: string
  /** What to do about it, for a person. */
  readonly remedy: string
  /** The store will do nothing any more, however often it is asked: it has to be opened again. */
  readonly isFinal?: boolean | undefined
}> {
  override get message(): string {
    return `${this.file}: ${this.detail}; ${this.remedy}`
  }
}

/** A record longer than the limit of spec §2.4. Nothing of its chunk was appended. */
export class RecordTooLong extends Data.TaggedError("RecordTooLong")<{
  readonly bytes: number
  readonly limit: number
}> {
  override get message(): string {
    return `a record of ${this.bytes} B is longer than the limit of ${this.limit} B; split it before appending`
  }
}

/** A chunk that can never fit the outbox's byte limit. Nothing of it was appended. */
export class OutboxFull extends Data.TaggedError("OutboxFull")<{ readonly bytes: number; readonly limit: number }> {
  override get message(): string {
    return `${this.bytes} B do not fit an outbox limited to ${this.limit} B; append smaller chunks or raise its limit`
  }
}

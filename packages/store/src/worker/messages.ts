import type { InputSummary } from "@pure-link/ports"
import type { Id64, RecordBatch, RecordNumber } from "@pure-link/wire"
import type { Failure } from "../file/failure.ts"
import type { InboxContents, InboxGroup, InboxProgress, InboxRows } from "../file/inboxFile.ts"
import type { OutboxContents, OutboxGroup, OutboxProgress, OutboxStream } from "../file/outboxFile.ts"
import type { FileLimits } from "../file/database.ts"
import type { ReadBounds } from "../file/reading.ts"

/** What crosses between a store and its worker thread. Records cross as one transferred buffer and their sizes. */

/** A thread's operations: what each is given and what it gives back. */
export type Operations<O> = { readonly [K in keyof O]: readonly [request: unknown, reply: unknown] }

export interface OutboxOperations {
  readonly transact: readonly [OutboxGroup, OutboxProgress]
  readonly read: readonly [{ readonly from: RecordNumber; readonly bounds: ReadBounds }, RecordBatch]
}

export interface InboxOperations {
  readonly transact: readonly [InboxGroup, InboxProgress]
  readonly read: readonly [{ readonly input: string; readonly after: number; readonly bounds: ReadBounds }, InboxRows]
  readonly consumerPosition: readonly [{ readonly input: string; readonly consumer: string }, number]
  readonly prune: readonly [
    { readonly input: string; readonly through: number },
    { readonly pruned: number; readonly transactions: number }
  ]
  readonly summaries: readonly [undefined, ReadonlyArray<InputSummary>]
}

/** What a thread is started with. */
export interface OutboxOpening {
  readonly file: string
  readonly stream: OutboxStream
  /** The generation, if the file is made now. */
  readonly newGeneration: Id64
  readonly limits: FileLimits
}
export interface InboxOpening {
  readonly file: string
  readonly limits: FileLimits
}

export type OutboxOpened = OutboxContents
export type InboxOpened = InboxContents

export interface Request {
  readonly id: number
  readonly operation: string
  readonly request: unknown
}

/** Id 0 answers the opening. */
export type Reply =
  | { readonly id: number; readonly reply: unknown }
  | { readonly id: number; readonly failure: Failure }

/** The operation that ends a thread; it has no reply but the thread's end. */
export const closing = "close"

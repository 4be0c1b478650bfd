import type { InputSummary } from "@pure-link/ports"
import type { Id64, RecordNumber } from "@pure-link/wire"
import type { Carried } from "../Carrier.ts"
import type { Block } from "../file/blocks.ts"
import type { FileLimits } from "../file/database.ts"
import type { Failure } from "../file/failure.ts"
import type { InboxContents, InboxProgress, InboxWork } from "../file/inboxFile.ts"
import type { InboxPiece } from "../file/logTable.ts"
import type { OutboxContents, OutboxProgress, OutboxStream, OutboxWork } from "../file/outboxFile.ts"

/**
 * What crosses between a store and its worker thread. Records cross as one buffer and their sizes, which move: to the
 * thread and back with its reply, or from it for good.
 */

/** A thread's operations: what each is given and what it gives back. */
export type Operations<O> = { readonly [K in keyof O]: readonly [request: unknown, reply: unknown] }

/** What a transaction did, and the buffers that its records came in. */
export interface Done<Progress> {
  readonly progress: Progress
  readonly buffers: Carried
}

export interface OutboxOperations {
  readonly transact: readonly [OutboxWork, Done<OutboxProgress>]
  readonly read: readonly [{ readonly from: RecordNumber; readonly enough: number }, ReadonlyArray<Block>]
}

export interface InboxOperations {
  readonly transact: readonly [InboxWork, Done<InboxProgress>]
  readonly read: readonly [
    { readonly input: string; readonly after: number; readonly enough: number },
    ReadonlyArray<InboxPiece>
  ]
  readonly consumerPosition: readonly [{ readonly input: string; readonly consumer: string }, number]
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

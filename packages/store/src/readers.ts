import {
  type InboxRecord,
  type InputSummary,
  type OutboxState,
  type ProducerPosition,
  StoreError
} from "@pure-link/ports"
import type { RecordBatch, RecordNumber } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { DatabaseSync } from "node:sqlite"
import { type Kind, openForReading } from "./file/database.ts"
import { failureOf } from "./file/failure.ts"
import { inboxKind, logIdOf, prepareInboxRead, readRows, readSummaries } from "./file/inboxFile.ts"
import { type OutboxStream, outboxKind, prepareRead, readBatch, readContents, readHeld } from "./file/outboxFile.ts"
import type { ReadBounds } from "./file/reading.ts"
import { recordsOf } from "./InboxFront.ts"
import { missing } from "./OutboxFront.ts"

/**
 * Looking into a file that another process may own: for tools that list, count and show. Each call sees one moment and
 * leaves no transaction open, so that the owner's log does not grow. Calls block the thread they are made on.
 */

/** What an outbox file holds; `life` is missing, since nothing was opened for appending. */
export interface OutboxFileState extends Omit<OutboxState, "life" | "heldBytes"> {
  /** Bytes of the records held: from `lowestHeld` to `last`, without removed ones whose room is not free yet. */
  readonly heldBytes: number
  readonly stream: OutboxStream
  readonly producers: ReadonlyArray<ProducerPosition>
}

export interface OutboxReader {
  readonly state: Effect.Effect<OutboxFileState, StoreError>
  /** As the port's `read`. */
  readonly read: (from: RecordNumber, most: ReadBounds) => Effect.Effect<RecordBatch, StoreError>
}

export interface InboxReader {
  readonly summaries: Effect.Effect<ReadonlyArray<InputSummary>, StoreError>
  /** As the port's `read`. */
  readonly read: (
    input: string,
    after: number,
    most: ReadBounds
  ) => Effect.Effect<ReadonlyArray<InboxRecord>, StoreError>
}

/** Opens an outbox file for reading until the scope ends. */
export const readOutbox = Effect.fnUntraced(function* (
  file: string
): Effect.fn.Return<OutboxReader, StoreError, Scope.Scope> {
  const look = yield* openReader(file, outboxKind)
  return {
    state: look((db) => {
      const { generation, heldBytes, last, lives, producers, removed, stream } = readHeld(db)
      return { stream, generation, lowestHeld: removed + 1, last, lives, heldBytes, producers }
    }),
    read: (from, most) =>
      look((db) => {
        const { last, removed } = readContents(db)
        const records = from > removed ? Math.max(0, Math.min(most.records, last - from + 1)) : 0
        const batch = readBatch(prepareRead(db), from, { records, bytes: most.bytes })
        if (records > 0 && batch.sizes.length === 0 && from > readContents(db).removed) throw missing(file, from)
        return batch
      })
  }
})

/** Opens an inbox file for reading until the scope ends. */
export const readInbox = Effect.fnUntraced(function* (
  file: string
): Effect.fn.Return<InboxReader, StoreError, Scope.Scope> {
  const look = yield* openReader(file, inboxKind)
  return {
    summaries: look(readSummaries),
    read: (input, after, most) =>
      look((db) => {
        const id = logIdOf(db, input)
        return id === undefined ? [] : recordsOf(readRows(prepareInboxRead(db, id), after, most))
      })
  }
})

const openReader = (file: string, kind: Kind) => {
  const attempt = <A>(body: () => A): Effect.Effect<A, StoreError> =>
    Effect.try({
      try: body,
      catch: (cause) => (cause instanceof StoreError ? cause : new StoreError({ file, ...failureOf(cause) }))
    })
  return Effect.acquireRelease(
    attempt(() => openForReading(file, kind)),
    (db) => Effect.sync(() => db.close())
  ).pipe(
    Effect.map(
      (db) =>
        <A>(body: (db: DatabaseSync) => A) =>
          attempt(() => body(db))
    )
  )
}

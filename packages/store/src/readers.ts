import {
  type InboxBatch,
  type InputSummary,
  type OutboxState,
  type ProducerPosition,
  type ReadBounds,
  StoreError
} from "@pure-link/ports"
import type { RecordBatch, RecordNumber } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { DatabaseSync } from "node:sqlite"
import { atOneMoment, type Kind, openForReading } from "./file/database.ts"
import { failureOf } from "./file/failure.ts"
import { inboxKind, readSummaries } from "./file/inboxFile.ts"
import { logOf, prepareInboxRead, readPieces as readLogPieces } from "./file/logTable.ts"
import { type OutboxStream, outboxKind, prepareRead, readContents, readHeld, readPieces } from "./file/outboxFile.ts"
import { LogReader } from "./LogReader.ts"
import { missing } from "./OutboxFront.ts"
import { fetchedBlock, PieceReader } from "./PieceReader.ts"

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
  readonly read: (input: string, after: number, most: ReadBounds) => Effect.Effect<InboxBatch, StoreError>
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
      Effect.gen(function* () {
        const { last, removed } = yield* look(readContents)
        const records = from > removed ? Math.max(0, Math.min(most.records, last - from + 1)) : 0
        if (records === 0) return { first: from, bytes: new Uint8Array(0), sizes: new Uint32Array(0) }
        const reader = new PieceReader((next, enough) =>
          look((db) => {
            return readPieces(prepareRead(db), next, enough).map(fetchedBlock(next))
          })
        )
        const { bytes, sizes } = yield* reader.read(from, { records, bytes: most.bytes })
        if (sizes.length === 0 && from > (yield* look(readContents)).removed) return yield* missing(file, from)
        return { first: from, bytes, sizes }
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
      Effect.suspend(() => {
        const reader = new LogReader((position, enough) =>
          look((db) =>
            atOneMoment(db, () => {
              const log = logOf(db, input)
              return log === undefined ? [] : readLogPieces(prepareInboxRead(db, log.id), log, position, enough)
            })
          )
        )
        return reader.read(after, most)
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

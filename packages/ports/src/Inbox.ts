import type { CommitOutcome, Id64, RecordNumber, StoreIntent, StreamCursor, StreamName } from "@pure-link/wire"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { ReadBounds } from "./Outbox.ts"
import type { StoreError } from "./StoreError.ts"

/**
 * A receiver's durable logs, one per input, with the cursor of every stream that ends in them (spec §2.2, §2.3). One
 * inbox (a file) holds all inputs of a node; it has one owner process.
 */

/**
 * Consecutive records of an input's log as they cross every boundary: one buffer with all bytes in order, and their
 * sizes. Positions of a log have no gaps, so that record `firstPosition + i` is the `sizes[i]` bytes after those before
 * it; who sent it, and which of its records it is, stand in `runs`.
 */
export interface InboxBatch {
  /** The position of the first record; where a record would stand, when there is none. */
  readonly firstPosition: number
  readonly bytes: Uint8Array
  readonly sizes: Uint32Array
  /** What the records are, in order; their counts add up to that of `sizes`. */
  readonly runs: ReadonlyArray<InboxRun>
}

/** Records of one source that follow each other in its outbox and in the log. */
export interface InboxRun {
  readonly source: string
  /** The number of the first. */
  readonly firstNumber: RecordNumber
  readonly count: number
}

/** The position of a batch's last record: what to read on after. */
export const lastPositionOf = ({ firstPosition, sizes }: InboxBatch): number => firstPosition + sizes.length - 1

/** The records of a batch one by one, for who wants them so: their bytes are views of the batch's. */
export const inboxRecords = ({ bytes, firstPosition, runs, sizes }: InboxBatch): ReadonlyArray<InboxRecord> => {
  const records: Array<InboxRecord> = []
  let offset = 0
  for (const { count, firstNumber, source } of runs) {
    for (let i = 0; i < count; i++) {
      const size = sizes[records.length]!
      const position = firstPosition + records.length
      records.push({ position, source, number: firstNumber + i, bytes: bytes.subarray(offset, (offset += size)) })
    }
  }
  return records
}

/** One record of an input's log. */
export interface InboxRecord {
  /** Where it stands in the input's log: 1, 2, 3… in the order of storing, never used again. */
  readonly position: number
  readonly source: string
  readonly number: RecordNumber
  readonly bytes: Uint8Array
}

export interface InputSummary {
  readonly input: string
  readonly records: number
  readonly bytes: number
  /** The lowest position still held; last + 1 when none is. */
  readonly firstPosition: number
  readonly lastPosition: number
  readonly sources: ReadonlyArray<{ readonly source: string } & StreamCursor>
  readonly consumers: ReadonlyArray<{ readonly consumer: string; readonly position: number }>
}

export class Inbox extends Context.Service<
  Inbox,
  {
    /** The cursor of the current generation of (source, input), from memory; `undefined` before the first commit. */
    readonly cursor: (name: StreamName) => StreamCursor | undefined
    /** Whether a generation was replaced and is refused for ever (spec §8.3). */
    readonly isRetired: (name: StreamName, generation: Id64) => boolean
    /** How many retired generations are kept for (source, input). */
    readonly retiredCount: (name: StreamName) => number
    /**
     * The operator's way on when 64 are kept and a new outbox is refused for that (spec §8.3): forgets all retired
     * generations of (source, input), durably, and succeeds with their number. From then on their outboxes count as new
     * ones: one that still runs would replace the current one again.
     */
    readonly forgetRetired: (name: StreamName) => Effect.Effect<number, StoreError>
    /**
     * Stores batches of different streams in one transaction and succeeds, in their order, once it is on disk. An intent
     * of a generation that is neither current nor retired replaces the current one, which becomes retired (spec §8.3).
     * Concurrent calls may share a transaction. Fails as a whole, storing nothing, when the disk is full or the file is
     * locked. The batches may be used again when it has ended: the inbox keeps copies.
     */
    readonly commit: (intents: ReadonlyArray<StoreIntent>) => Effect.Effect<ReadonlyArray<CommitOutcome>, StoreError>
    /**
     * Records of an input after a position, in order, at least one if there is one, while they fit both bounds; it may
     * end sooner once it has `readEnough` bytes. What it gives is valid until the records are pruned: their room may be
     * used again then, so copy what is kept longer.
     */
    readonly read: (input: string, after: number, most: ReadBounds) => Effect.Effect<InboxBatch, StoreError>
    /** The last position of an input's log, from memory; 0 before the first. */
    readonly lastPosition: (input: string) => number
    /** Emits the last position of an input's log now and whenever it grows; a slow reader sees only the newest. */
    readonly grown: (input: string) => Stream.Stream<number>
    /** A named consumer's durable cursor: the last position it acknowledged; 0 before the first. */
    readonly consumerPosition: (input: string, consumer: string) => Effect.Effect<number, StoreError>
    /**
     * Moves a consumer's cursor up to a position, durably; a lower one changes nothing, one beyond the last position
     * fails. Shares the transaction of whatever is committed just then.
     */
    readonly acknowledge: (input: string, consumer: string, position: number) => Effect.Effect<void, StoreError>
    /**
     * Deletes records of an input up to a position; stream cursors stay (spec §2.3). Returns how many were deleted. Shares
     * the transaction of whatever is committed just then. Room becomes free where all records that were stored together
     * are deleted.
     */
    readonly prune: (input: string, throughPosition: number) => Effect.Effect<number, StoreError>
    readonly summaries: Effect.Effect<ReadonlyArray<InputSummary>, StoreError>
    /** Fails when the store has ended by itself and does nothing any more; a store that cannot has none. */
    readonly ended?: Effect.Effect<never, StoreError>
  }
>()("@pure-link/ports/Inbox") {}

import type { CommitOutcome, Id64, RecordNumber, StoreIntent, StreamCursor, StreamName } from "@pure-link/wire"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { StoreError } from "./StoreError.ts"

/**
 * A receiver's durable logs, one per input, with the cursor of every stream that ends in them (spec §2.2, §2.3). One
 * inbox (a file) holds all inputs of a node; it has one owner process.
 */

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
     * locked.
     */
    readonly commit: (intents: ReadonlyArray<StoreIntent>) => Effect.Effect<ReadonlyArray<CommitOutcome>, StoreError>
    /** Records of an input after a position, in order, at least one if there is one, while they fit both bounds. */
    readonly read: (
      input: string,
      after: number,
      most: { readonly records: number; readonly bytes: number }
    ) => Effect.Effect<ReadonlyArray<InboxRecord>, StoreError>
    /** The last position of an input's log, from memory; 0 before the first. */
    readonly lastPosition: (input: string) => number
    /** Emits the last position of an input's log now and whenever it grows; a slow reader sees only the newest. */
    readonly grown: (input: string) => Stream.Stream<number>
    /** A named consumer's durable cursor: the last position it acknowledged; 0 before the first. */
    readonly consumerPosition: (input: string, consumer: string) => Effect.Effect<number, StoreError>
    /**
     * Moves a consumer's cursor up to a position, durably; a lower one changes nothing, one beyond the last position
     * fails.
     */
    readonly acknowledge: (input: string, consumer: string, position: number) => Effect.Effect<void, StoreError>
    /** Deletes records of an input up to a position; stream cursors stay (spec §2.3). Returns how many were deleted. */
    readonly prune: (input: string, throughPosition: number) => Effect.Effect<number, StoreError>
    readonly summaries: Effect.Effect<ReadonlyArray<InputSummary>, StoreError>
    /** Fails when the store has ended by itself and does nothing any more; a store that cannot has none. */
    readonly ended?: Effect.Effect<never, StoreError>
  }
>()("@pure-link/ports/Inbox") {}

import type { Id64, Life, RecordBatch, RecordNumber, StreamName } from "@pure-link/wire"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { OutboxFull, RecordTooLong, StoreError } from "./StoreError.ts"

/**
 * A sender's durable, ordered queue of records for one destination input (spec §1, §2.1). One outbox has one owner
 * process.
 */

/** What an outbox holds. A snapshot: ask again after an append or a removal. */
export interface OutboxState {
  readonly generation: Id64
  /** The life of this opening: it is listed in `lives` from its first append on. */
  readonly life: Id64
  /** The lowest number still held; last + 1 when empty (spec §4.3). */
  readonly lowestHeld: RecordNumber
  /** The last number appended; 0 before the first. */
  readonly last: RecordNumber
  /** Every life that holds a number ≥ lowestHeld − 1, in order (spec §8.5). */
  readonly lives: ReadonlyArray<Life>
  /**
   * Bytes that count against the limit: those of records held, and of removed ones whose room is not free yet, with
   * `recordOverhead` for each, so that empty records are bounded too. Records that were appended together may become
   * free together.
   */
  readonly heldBytes: number
}

/** What every record counts against an outbox's byte limit beside its own bytes. */
export const recordOverhead = 32

/** How much a read may give: at least one record, if there is one, however long it is. */
export interface ReadBounds {
  readonly records: number
  readonly bytes: number
}

/** A read may end before its bounds once it has this many bytes, where records that were stored together end. */
export const readEnough = 65_536

/**
 * How far a producer had read its own source when these records were appended; stored in the same transaction as they
 * are, so that a producer killed at any moment goes on exactly where the outbox stands (docs/decisions/0007).
 */
export interface ProducerPosition {
  /** What the records come from, such as a file's path: 1 to 4,096 characters. */
  readonly producer: string
  /** Where in it the last of these records ends: an integer below 2^53 whose meaning is the producer's. */
  readonly position: number
}

export class Outbox extends Context.Service<
  Outbox,
  {
    /** The stream this outbox was made for: source, input and shape. */
    readonly stream: StreamName & { readonly shape: Id64 }
    /** The present state, from memory. */
    readonly state: () => OutboxState
    /**
     * Appends records in order and succeeds with their first number once they are on disk. Waits while the outbox is at
     * its byte limit; concurrent appends share one fsync. Interrupting while it waits for room appends nothing; once the
     * append has begun it completes. `sizes` must add up to `bytes.length`, and a record counts `recordOverhead` bytes
     * beside its own. Without records only the position is stored.
     *
     * Both arrays are handed over: nobody changes them any more, whatever comes of the append, and a store may keep them
     * as they are and give views of them away. A small view of a large buffer keeps all of it in memory.
     */
    readonly append: (records: {
      readonly bytes: Uint8Array
      readonly sizes: Uint32Array
      readonly from?: ProducerPosition
    }) => Effect.Effect<RecordNumber, RecordTooLong | OutboxFull | StoreError>
    /** The position of a producer's last append on disk; `undefined` before its first. */
    readonly producerPosition: (producer: string) => number | undefined
    /**
     * Reads consecutive records from `from` on, at least one if it is held, while they fit both bounds; it may end sooner
     * once it has `readEnough` bytes. Empty past the last. Fails with "unreadable" when record `from` should be held and
     * is not there. What it gives is never changed, and may be kept: also after the records are removed.
     */
    readonly read: (from: RecordNumber, most: ReadBounds) => Effect.Effect<RecordBatch, StoreError>
    /**
     * Removes the records up to `n`: they are STORED. Idempotent. They are gone from `state` and `read` at once, and from
     * the disk in groups soon after; a crash before that brings them back, to be STORED again. Room is made at once if
     * appends wait for it, as soon as all records that share it are removed. Fails when `n` is beyond the last record
     * (spec §8.5), removing nothing.
     */
    readonly removeThrough: (n: RecordNumber) => Effect.Effect<void, StoreError>
    /** Fails when the store has ended by itself and does nothing any more; a store that cannot has none. */
    readonly ended?: Effect.Effect<never, StoreError>
  }
>()("@pure-link/ports/Outbox") {}

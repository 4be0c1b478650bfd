import type { Life, RecordBatch, StreamName } from "./records.ts"
import type { Id64, RecordNumber } from "./units.ts"

/**
 * What a receiver machine asks of an inbox and hears back: the one language of the two (spec §10.5).
 */

/** How far a stream is stored (spec §8). */
export interface StreamCursor {
  readonly generation: Id64
  /** The last stored number; 0 before the first. */
  readonly n: RecordNumber
  /** The life of record n; 0n when n is 0. */
  readonly life: Id64
}

/**
 * Complete records n+1… of one stream, to be stored with n advanced, in one transaction. The arrays of the batch are used
 * again once its outcome is told: who keeps them copies them (spec §10.5).
 */
export interface StoreIntent extends StreamName {
  readonly generation: Id64
  readonly batch: RecordBatch
  /** The lives of the batch's records (spec §8.2), in order. */
  readonly lives: ReadonlyArray<Life>
}

/**
 * What a commit did. `Stored`: the batch is on disk and `cursor` covers it. `Conflict`: it did not follow the cursor or failed
 * the fork check of spec §8.6; nothing of it was stored, and `cursor` is what stands.
 */
export type CommitOutcome =
  | { readonly _tag: "Stored"; readonly cursor: StreamCursor }
  | { readonly _tag: "Conflict"; readonly cursor: StreamCursor | undefined }

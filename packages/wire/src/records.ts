import type { Id64, RecordNumber } from "./units.ts"

/**
 * Consecutive records as they cross every boundary: one buffer with all bytes in order, and their sizes. Record `first + i`
 * is the `sizes[i]` bytes after those before it. Nobody changes a batch once it is handed over.
 */
export interface RecordBatch {
  readonly first: RecordNumber
  readonly bytes: Uint8Array
  readonly sizes: Uint32Array
}

/** One opening of an outbox that appended, with the first number it appended (spec §8.2). */
export interface Life {
  readonly life: Id64
  readonly first: RecordNumber
}

/** The life of a record: that of the last entry at or below its number; `undefined` when none is (spec §8.2). */
export const lifeOf = (lives: ReadonlyArray<Life>, number: RecordNumber): Life | undefined => {
  for (let i = lives.length - 1; i >= 0; i--) {
    const entry = lives[i]!
    if (entry.first <= number) return entry
  }
  return undefined
}

/** The number after the last record of a batch. */
export const endOf = (batch: RecordBatch): RecordNumber => batch.first + batch.sizes.length

/** What a stream is called, without its generation (spec §1). */
export interface StreamName {
  readonly source: string
  readonly input: string
}

/** Why a receiver refuses a stream (spec §11.1). */
export const RefusalReason = {
  noSuchInput: 1,
  otherShape: 2,
  sourceNotAllowed: 3,
  forkedOutbox: 4,
  recordsGone: 5,
  retiredGeneration: 6,
  tooManyRuns: 7
} as const
export type RefusalReason = (typeof RefusalReason)[keyof typeof RefusalReason]

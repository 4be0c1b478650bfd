import type { Id64, Life, RecordNumber, StoreIntent, StreamCursor } from "@pure-link/wire"

/**
 * What a commit may store (spec §8.3, §8.4, §8.6), judged against the cursor that stands in the same transaction. Used
 * by every inbox, in memory and on disk, so that both give the same verdicts.
 */

/** Retired generations that are kept for one (source, input) (spec §8.3). */
export const retiredGenerationsKept = 64

/** The part of an intent that the verdict depends on. */
export interface IntentHead extends Pick<StoreIntent, "source" | "input" | "generation" | "lives"> {
  readonly first: RecordNumber
  readonly count: number
}

/** What stands for the intent's (source, input). */
export interface Standing {
  readonly cursor: StreamCursor | undefined
  readonly isRetired: boolean
  readonly retiredCount: number
}

/** `advance`: store it and set the cursor; `replaces` when the cursor's generation becomes retired. */
export type Verdict =
  | { readonly _tag: "Advance"; readonly cursor: StreamCursor; readonly replaces: boolean }
  | { readonly _tag: "Nothing" }
  | { readonly _tag: "Conflict" }

const conflict: Verdict = { _tag: "Conflict" }

export const judge = (intent: IntentHead, { cursor, isRetired, retiredCount }: Standing): Verdict => {
  if (isRetired) return conflict
  const current = cursor?.generation === intent.generation ? cursor : undefined
  const replaces = cursor !== undefined && current === undefined
  if (replaces && retiredCount >= retiredGenerationsKept) return conflict
  const n = current?.n ?? 0
  if (intent.first !== n + 1) return conflict
  if (intent.count === 0) return current === undefined ? conflict : { _tag: "Nothing" }
  const last = n + intent.count
  const life = lifeOfLast(intent.lives, n, current?.life, last)
  if (life === undefined) return conflict
  return { _tag: "Advance", cursor: { generation: intent.generation, n: last, life }, replaces }
}

/**
 * The life of record `last` if records n+1…last follow record n without a fork: each has a life, lives do not
 * contradict, and one that began at or below n is that of record n (spec §8.4).
 */
const lifeOfLast = (
  lives: ReadonlyArray<Life>,
  n: RecordNumber,
  lifeOfN: Id64 | undefined,
  last: RecordNumber
): Id64 | undefined => {
  const seen = new Set<Id64>()
  let first = 0
  let ofNext: Life | undefined
  let ofLast: Life | undefined
  for (const entry of lives) {
    if (entry.first <= first || seen.has(entry.life)) return undefined
    seen.add(entry.life)
    first = entry.first
    if (entry.first > n && entry.life === lifeOfN) return undefined
    if (entry.first <= n + 1) ofNext = entry
    if (entry.first <= last) ofLast = entry
  }
  if (ofNext === undefined || (ofNext.first <= n && ofNext.life !== lifeOfN)) return undefined
  return ofLast?.life
}

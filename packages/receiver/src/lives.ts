import { type Id64, type Life, lifeOf, type RecordNumber } from "@pure-link/wire"

/**
 * The lives of a run's records (spec §8.2) and the two rules that keep forks apart: lists that contradict, and a life
 * that cannot stand after another (spec §8.4).
 */

/**
 * Lives that a run is remembered to list at most: a list holds 8, and lists of a moving first unstored record overlap.
 */
export const livesRemembered = 32

/**
 * The known list with a listed one merged in, without the lives that end at or below `n` (the one that holds `n`
 * stays); `undefined` when they contradict, which is a fork.
 */
export const mergeLives = (
  known: ReadonlyArray<Life>,
  listed: ReadonlyArray<Life>,
  n: RecordNumber
): ReadonlyArray<Life> | undefined => {
  const merged = known.slice()
  for (const entry of listed) {
    const same = merged.find((other) => other.first === entry.first || other.life === entry.life)
    if (same === undefined) merged.push(entry)
    else if (same.first !== entry.first || same.life !== entry.life) return undefined
  }
  merged.sort((a, b) => a.first - b.first)
  return withoutEnded(merged, n)
}

/** Drops the lives that end at or below `n`. */
export const withoutEnded = (lives: ReadonlyArray<Life>, n: RecordNumber): ReadonlyArray<Life> => {
  let ended = 0
  while (ended + 1 < lives.length && lives[ended + 1]!.first <= n) ended += 1
  return ended === 0 ? lives : lives.slice(ended)
}

/** What a list says of the record before a life's first: the life that it follows, if it is listed. */
export const lifeBefore = (lives: ReadonlyArray<Life>, life: Life): Id64 | undefined =>
  life.first > 1 ? lifeOf(lives, life.first - 1)?.life : undefined

/**
 * Whether a record of `life` may stand after record `previous` of `previousLife` (spec §8.2, §8.4): a life that began
 * at or below `previous` must be that of `previous`, and one that began later must not.
 */
export const mayFollow = (previous: RecordNumber, previousLife: Id64, life: Life): boolean =>
  life.first > previous !== (life.life === previousLife)

import { ok as assert } from "node:assert/strict"

/**
 * Records that say which they are, so that whoever stores one knows whether it is the one that was appended: every byte
 * follows from the number, the size and the place.
 */
export const recordOf = (number: number, size: number): Uint8Array => {
  const record = new Uint8Array(size)
  let state = (Math.imul(number, 0x9e3779b1) ^ size) >>> 0
  for (let i = 0; i < size; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    record[i] = state >>> 24
  }
  return record
}

/** Fails when `bytes[start, start + size)` is not record `number` as it was appended. */
export const checkRecord = (number: number, bytes: Uint8Array, start: number, size: number): void => {
  let state = (Math.imul(number, 0x9e3779b1) ^ size) >>> 0
  for (let i = 0; i < size; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    assert(bytes[start + i] === state >>> 24, `byte ${i} of record ${number} is not what was appended`)
  }
}

/** The sizes of records that are all as long as each other. */
export const alike = (count: number, size: number): ReadonlyArray<number> => Array.from({ length: count }, () => size)

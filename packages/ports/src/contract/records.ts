import type { RecordNumber } from "@pure-link/wire"

/** Records for the contract suites, different for every number and length. */

export const recordOf = (number: RecordNumber, size: number): Uint8Array => {
  const bytes = new Uint8Array(size)
  const period = Math.min(size, 4_099)
  for (let i = 0; i < period; i++) bytes[i] = (number * 31 + i * 7 + (i >> 8) + size) & 0xff
  for (let filled = period; filled < size; filled *= 2) bytes.copyWithin(filled, 0, filled)
  return bytes
}

/** Records as one buffer and their sizes. */
export const joined = (records: ReadonlyArray<Uint8Array>): { bytes: Uint8Array; sizes: Uint32Array } => {
  const sizes = Uint32Array.from(records, (record) => record.length)
  const bytes = new Uint8Array(sizes.reduce((sum, size) => sum + size, 0))
  let offset = 0
  for (const record of records) {
    bytes.set(record, offset)
    offset += record.length
  }
  return { bytes, sizes }
}

/** Consecutive records of these sizes. */
export const recordsOf = (first: RecordNumber, sizes: ReadonlyArray<number>) =>
  joined(sizes.map((size, i) => recordOf(first + i, size)))

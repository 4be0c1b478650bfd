import type { Id64 } from "./units.ts"

/**
 * Integers as they travel: unsigned, big-endian, and the varints of RFC 9000 §16. Numbers are exact below 2^53; ids are
 * bigints. Nothing is allocated but the bigint itself. No function here checks room, `readVarint` apart: the callers
 * did.
 */

/** One more than the largest number that travels (spec §3.5). */
const numberLimit = 2 ** 53

/** Eight bytes through which bigints pass; used only within one call. */
const scratch = new DataView(new ArrayBuffer(8))

export const readUint16 = (bytes: Uint8Array, offset: number): number => (bytes[offset]! << 8) | bytes[offset + 1]!

export const readUint24 = (bytes: Uint8Array, offset: number): number =>
  (bytes[offset]! << 16) | (bytes[offset + 1]! << 8) | bytes[offset + 2]!

export const readUint32 = (bytes: Uint8Array, offset: number): number =>
  ((bytes[offset]! << 24) | (bytes[offset + 1]! << 16) | (bytes[offset + 2]! << 8) | bytes[offset + 3]!) >>> 0

/** Exact below 2^53; a larger value reads as some number ≥ 2^53, for the caller to refuse. */
export const readUint64 = (bytes: Uint8Array, offset: number): number =>
  readUint32(bytes, offset) * 2 ** 32 + readUint32(bytes, offset + 4)

export const readId64 = (bytes: Uint8Array, offset: number): Id64 =>
  id64Of(readUint32(bytes, offset), readUint32(bytes, offset + 4))

/** The id of two halves of 4 B each. */
export const id64Of = (high: number, low: number): Id64 => {
  scratch.setUint32(0, high)
  scratch.setUint32(4, low)
  return scratch.getBigUint64(0)
}

/** Writers return the offset after what they wrote. */
export const writeUint16 = (out: Uint8Array, offset: number, value: number): number => {
  out[offset] = value >>> 8
  out[offset + 1] = value
  return offset + 2
}

export const writeUint24 = (out: Uint8Array, offset: number, value: number): number => {
  out[offset] = value >>> 16
  out[offset + 1] = value >>> 8
  out[offset + 2] = value
  return offset + 3
}

export const writeUint32 = (out: Uint8Array, offset: number, value: number): number => {
  out[offset] = value >>> 24
  out[offset + 1] = value >>> 16
  out[offset + 2] = value >>> 8
  out[offset + 3] = value
  return offset + 4
}

/** `value` is below 2^53. */
export const writeUint64 = (out: Uint8Array, offset: number, value: number): number => {
  writeUint32(out, offset, Math.floor(value / 2 ** 32))
  return writeUint32(out, offset + 4, value % 2 ** 32)
}

export const writeId64 = (out: Uint8Array, offset: number, id: Id64): number => {
  scratch.setBigUint64(0, id)
  writeUint32(out, offset, scratch.getUint32(0))
  return writeUint32(out, offset + 4, scratch.getUint32(4))
}

/** What `readVarint` returns instead of a value. */
export const noVarint = -1

/**
 * The varint at `offset`, or `noVarint` when it does not end by `end` or is 2^53 or more. It may be longer than its
 * value needs (RFC 9000 §16). Its own length is `varintLengthAt`.
 */
export const readVarint = (bytes: Uint8Array, offset: number, end: number): number => {
  if (offset >= end) return noVarint
  const first = bytes[offset]!
  if (first < 0x40) return first
  if (first < 0x80) return offset + 2 <= end ? readUint16(bytes, offset) & 0x3fff : noVarint
  if (first < 0xc0) return offset + 4 <= end ? readUint32(bytes, offset) & 0x3fffffff : noVarint
  if (offset + 8 > end) return noVarint
  const value = (readUint32(bytes, offset) & 0x3fffffff) * 2 ** 32 + readUint32(bytes, offset + 4)
  return value < numberLimit ? value : noVarint
}

/** The length of the varint that starts at `offset`: 1, 2, 4 or 8, told by its first byte. */
export const varintLengthAt = (bytes: Uint8Array, offset: number): number => 1 << (bytes[offset]! >>> 6)

/** The shortest length of a varint of this value, which is below 2^53. */
export const varintLength = (value: number): number =>
  value < 0x40 ? 1 : value < 0x4000 ? 2 : value < 0x40000000 ? 4 : 8

/** Writes the shortest varint of a value below 2^53. */
export const writeVarint = (out: Uint8Array, offset: number, value: number): number => {
  if (value < 0x40) {
    out[offset] = value
    return offset + 1
  }
  if (value < 0x4000) return writeUint16(out, offset, value | 0x4000)
  if (value < 0x40000000) return writeUint32(out, offset, (value | 0x80000000) >>> 0)
  writeUint64(out, offset, value)
  out[offset] = out[offset]! | 0xc0
  return offset + 8
}

import { type Bytes, longestRecord } from "@pure-link/wire"

/** How long the buffers of records are that are not complete yet: long enough, and not longer than what they hold is worth. */

/** A record held ahead that is larger than this becomes the head with its buffer, instead of being copied. */
export const adoptedBytes = 65_536

/** The shortest buffer worth making for `end` bytes: a large record of unknown size does not grow part by part. */
export const neededLength = (end: number, size: number): Bytes => {
  if (size >= 0) return size
  return end < adoptedBytes || end >= longestRecord ? end : Math.min(longestRecord, end + (end >>> 3))
}

import * as Schema from "effect/Schema"
import { assert } from "../assert.ts"
import { NumberField } from "../fields.ts"
import { noVarint, readVarint, varintLength, varintLengthAt, writeVarint } from "../integer.ts"
import { longestAcknowledgementMap } from "../limits.ts"
import type { Micros, PacketNumber } from "../units.ts"
import { assertFrame, type FrameCodec, FrameType, malformed } from "./codec.ts"

/**
 * ACK_MAP and SEEN_MAP: packet numbers as a bitmap below the largest, shorter than ranges when many are missing (spec
 * §4.5). Bit i, least significant first, of byte j stands for number largest − (8j + i).
 */

/** Whether bit 0 is set and no bit stands for a number below 0. */
const isMap = (largest: PacketNumber, bytes: Uint8Array, start: number, end: number): boolean => {
  if ((bytes[start]! & 1) === 0) return false
  for (let bit = largest + 1; bit < 8 * (end - start); bit++) {
    if (((bytes[start + (bit >>> 3)]! >>> (bit & 7)) & 1) !== 0) return false
  }
  return true
}

const fields = {
  largest: NumberField,
  /** How long ago the largest number was received, in µs. */
  delay: NumberField,
  bits: Schema.Uint8Array.check(Schema.isBetweenLength(1, longestAcknowledgementMap))
}
const mapFilter = Schema.makeFilter(
  ({ largest, bits }: { readonly largest: number; readonly bits: Uint8Array }) => isMap(largest, bits, 0, bits.length),
  { expected: "bit 0 set, and none below number 0" }
)
export const AckMapFrame = Schema.TaggedStruct("AckMap", fields).check(mapFilter)
export type AckMapFrame = typeof AckMapFrame.Type
export const SeenMapFrame = Schema.TaggedStruct("SeenMap", fields).check(mapFilter)
export type SeenMapFrame = typeof SeenMapFrame.Type

/** The length of a frame with a map of `byteCount` bytes. Compare it with `ackRangesLength` and write the shorter. */
export const ackMapLength = (delay: Micros, largest: PacketNumber, byteCount: number): number =>
  1 + varintLength(largest) + varintLength(delay) + varintLength(byteCount) + byteCount

/** Writes the first `byteCount` bytes of a map, or returns `offset` unchanged when they do not fit. */
export const writeAckMap = (
  out: Uint8Array,
  offset: number,
  limit: number,
  seen: boolean,
  delay: Micros,
  largest: PacketNumber,
  bits: Uint8Array,
  byteCount: number
): number => {
  assert(byteCount >= 1 && byteCount <= longestAcknowledgementMap, "a map of 1 to 1,300 B")
  assert((bits[0]! & 1) === 1, "a map starts at its largest number")
  if (offset + ackMapLength(delay, largest, byteCount) > limit) return offset
  out[offset] = seen ? FrameType.seenMap : FrameType.ackMap
  let at = writeVarint(out, offset + 1, largest)
  at = writeVarint(out, at, delay)
  at = writeVarint(out, at, byteCount)
  for (let i = 0; i < byteCount; i++) out[at + i] = bits[i]!
  return at + byteCount
}

const endOfAckMap = (bytes: Uint8Array, start: number, end: number): number => {
  let at = start + 1
  const largest = readVarint(bytes, at, end)
  if (largest === noVarint) return malformed
  at += varintLengthAt(bytes, at)
  if (readVarint(bytes, at, end) === noVarint) return malformed
  at += varintLengthAt(bytes, at)
  const byteCount = readVarint(bytes, at, end)
  if (byteCount < 1 || byteCount > longestAcknowledgementMap) return malformed
  at += varintLengthAt(bytes, at)
  const mapEnd = at + byteCount
  return mapEnd <= end && isMap(largest, bytes, at, mapEnd) ? mapEnd : malformed
}

const readMap = (bytes: Uint8Array, start: number, end: number): Omit<AckMapFrame, "_tag"> => {
  const mapEnd = endOfAckMap(bytes, start, end)
  assertFrame(mapEnd)
  const delayAt = start + 1 + varintLengthAt(bytes, start + 1)
  const countAt = delayAt + varintLengthAt(bytes, delayAt)
  return {
    largest: readVarint(bytes, start + 1, end),
    delay: readVarint(bytes, delayAt, end),
    bits: bytes.slice(countAt + varintLengthAt(bytes, countAt), mapEnd)
  }
}

const mapLength = ({ largest, delay, bits }: AckMapFrame | SeenMapFrame): number =>
  ackMapLength(delay, largest, bits.length)

const writeMap = (out: Uint8Array, offset: number, frame: AckMapFrame | SeenMapFrame): number => {
  const { _tag, largest, delay, bits } = frame
  return writeAckMap(out, offset, out.length, _tag === "SeenMap", delay, largest, bits, bits.length)
}

export const ackMapCodec: FrameCodec<AckMapFrame> = {
  firstType: FrameType.ackMap,
  lastType: FrameType.ackMap,
  direction: "answer",
  endOf: endOfAckMap,
  read: (bytes, start, end) => ({ _tag: "AckMap", ...readMap(bytes, start, end) }),
  length: mapLength,
  write: writeMap
}

export const seenMapCodec: FrameCodec<SeenMapFrame> = {
  ...ackMapCodec,
  firstType: FrameType.seenMap,
  lastType: FrameType.seenMap,
  read: (bytes, start, end) => ({ _tag: "SeenMap", ...readMap(bytes, start, end) }),
  length: mapLength,
  write: writeMap
}

import * as Schema from "effect/Schema"
import { assert } from "../assert.ts"
import { NumberField } from "../fields.ts"
import { noVarint, readVarint, varintLength, varintLengthAt, writeVarint } from "../integer.ts"
import type { Micros } from "../units.ts"
import { AcknowledgedReader } from "./acknowledged.ts"
import { assertFrame, type FrameCodec, FrameType, malformed } from "./codec.ts"

/** ACK and SEEN: packet numbers as the ranges of RFC 9000 §19.3.1, newest first (spec §4.4). */

/** Both ends belong to the range. */
export const NumberRange = Schema.Struct({ low: NumberField, high: NumberField }).check(
  Schema.makeFilter((range) => range.low <= range.high, { expected: "low ≤ high" })
)
export type NumberRange = typeof NumberRange.Type

/** Newest first, with at least one number between two ranges. */
const areApart = (ranges: ReadonlyArray<NumberRange>): boolean =>
  ranges.every((range, i) => i === 0 || range.high + 2 <= ranges[i - 1]!.low)

const fields = {
  /** How long ago the largest number was received, in µs. */
  delay: NumberField,
  ranges: Schema.NonEmptyArray(NumberRange).check(
    Schema.makeFilter(areApart, { expected: "ranges that fall and do not touch" })
  )
}
export const AckFrame = Schema.TaggedStruct("Ack", fields)
export type AckFrame = typeof AckFrame.Type
export const SeenFrame = Schema.TaggedStruct("Seen", fields)
export type SeenFrame = typeof SeenFrame.Type

/**
 * The length of a frame of these ranges: newest first, both ends within, at least one number between two. Compare it
 * with `ackMapLength` and write the shorter.
 */
export const ackRangesLength = (delay: Micros, lows: Float64Array, highs: Float64Array, count: number): number => {
  assert(count >= 1, "no range to acknowledge")
  let length = firstRangeLength(delay, lows, highs) + varintLength(count - 1)
  for (let i = 1; i < count; i++) length += furtherRangeLength(lows, highs, i)
  return length
}

/** How many of the ranges, from the newest on, fit a frame of at most `room` bytes. */
export const ackRangesThatFit = (
  room: number,
  delay: Micros,
  lows: Float64Array,
  highs: Float64Array,
  count: number
): number => {
  if (count === 0) return 0
  let length = firstRangeLength(delay, lows, highs)
  if (length + varintLength(0) > room) return 0
  let fit = 1
  while (fit < count) {
    length += furtherRangeLength(lows, highs, fit)
    if (length + varintLength(fit) > room) break
    fit += 1
  }
  return fit
}

/** Writes `ackRangesThatFit(limit - offset, …)` ranges; returns `offset` unchanged when that is none. */
export const writeAckRanges = (
  out: Uint8Array,
  offset: number,
  limit: number,
  seen: boolean,
  delay: Micros,
  lows: Float64Array,
  highs: Float64Array,
  count: number
): number => {
  const fit = ackRangesThatFit(limit - offset, delay, lows, highs, count)
  if (fit === 0) return offset
  out[offset] = seen ? FrameType.seen : FrameType.ack
  let at = writeVarint(out, offset + 1, highs[0]!)
  at = writeVarint(out, at, delay)
  at = writeVarint(out, at, fit - 1)
  at = writeVarint(out, at, highs[0]! - lows[0]!)
  for (let i = 1; i < fit; i++) {
    at = writeVarint(out, at, lows[i - 1]! - highs[i]! - 2)
    at = writeVarint(out, at, highs[i]! - lows[i]!)
  }
  return at
}

/** The type byte, largest, delay and first range; the count of further ranges apart. */
const firstRangeLength = (delay: Micros, lows: Float64Array, highs: Float64Array): number =>
  1 + varintLength(highs[0]!) + varintLength(delay) + varintLength(highs[0]! - lows[0]!)

const furtherRangeLength = (lows: Float64Array, highs: Float64Array, i: number): number =>
  varintLength(lows[i - 1]! - highs[i]! - 2) + varintLength(highs[i]! - lows[i]!)

const endOfAck = (bytes: Uint8Array, start: number, end: number): number => {
  let at = start + 1
  const largest = readVarint(bytes, at, end)
  if (largest === noVarint) return malformed
  at += varintLengthAt(bytes, at)
  if (readVarint(bytes, at, end) === noVarint) return malformed
  at += varintLengthAt(bytes, at)
  const further = readVarint(bytes, at, end)
  if (further === noVarint) return malformed
  at += varintLengthAt(bytes, at)
  const first = readVarint(bytes, at, end)
  if (first === noVarint || first > largest) return malformed
  return endOfFurtherRanges(bytes, at + varintLengthAt(bytes, at), end, further, largest - first)
}

/** Each turn takes at least 2 B, so that the frame's bytes bound the loop whatever `further` says. */
const endOfFurtherRanges = (bytes: Uint8Array, start: number, end: number, further: number, lowest: number): number => {
  let at = start
  let low = lowest
  for (let i = 0; i < further; i++) {
    const gap = readVarint(bytes, at, end)
    if (gap === noVarint) return malformed
    at += varintLengthAt(bytes, at)
    const length = readVarint(bytes, at, end)
    if (length === noVarint) return malformed
    at += varintLengthAt(bytes, at)
    low = low - gap - 2 - length
    if (low < 0) return malformed
  }
  return at
}

const readRanges = (bytes: Uint8Array, start: number, end: number): Omit<AckFrame, "_tag"> => {
  assertFrame(endOfAck(bytes, start, end))
  const reader = new AcknowledgedReader()
  reader.read(bytes, start)
  const ranges: Array<NumberRange> = []
  while (reader.next()) ranges.push({ low: reader.low, high: reader.high })
  return { delay: reader.delay, ranges: ranges as [NumberRange, ...Array<NumberRange>] }
}

const rangesLength = ({ delay, ranges }: AckFrame | SeenFrame): number =>
  ackRangesLength(delay, lowsOf(ranges), highsOf(ranges), ranges.length)

const writeRanges = (out: Uint8Array, offset: number, { _tag, delay, ranges }: AckFrame | SeenFrame): number =>
  writeAckRanges(out, offset, out.length, _tag === "Seen", delay, lowsOf(ranges), highsOf(ranges), ranges.length)

const lowsOf = (ranges: ReadonlyArray<NumberRange>): Float64Array => Float64Array.from(ranges, (range) => range.low)
const highsOf = (ranges: ReadonlyArray<NumberRange>): Float64Array => Float64Array.from(ranges, (range) => range.high)

export const ackCodec: FrameCodec<AckFrame> = {
  firstType: FrameType.ack,
  lastType: FrameType.ack,
  direction: "answer",
  endOf: endOfAck,
  read: (bytes, start, end) => ({ _tag: "Ack", ...readRanges(bytes, start, end) }),
  length: rangesLength,
  write: writeRanges
}

export const seenCodec: FrameCodec<SeenFrame> = {
  ...ackCodec,
  firstType: FrameType.seen,
  lastType: FrameType.seen,
  read: (bytes, start, end) => ({ _tag: "Seen", ...readRanges(bytes, start, end) }),
  length: rangesLength,
  write: writeRanges
}

import {
  AcknowledgedReader,
  decodeFrame,
  type Direction,
  encodeFrame,
  Frame,
  FrameCursor,
  frameLength,
  frameTable,
  FrameType,
  RecordsReader,
  StoredReader,
  validateBody
} from "@pure-link/wire"
import * as Schema from "effect/Schema"
import { deepStrictEqual, ok as assert } from "node:assert/strict"
import type { Target } from "./target.ts"
import vectors from "../vectors/frames.json" with { type: "json" }

/**
 * Decrypted bodies (spec §4). All ways to read one must agree: the validator, the object form, the in-place readers; and
 * what is encoded again means the same.
 */

const isFrame = Schema.is(Frame)
const guard = 32

/** The frames as `decodeFrame` reads them; undefined when there is none at some place. */
const decodeAll = (bytes: Uint8Array, start: number, end: number) => {
  const frames: Array<{ readonly frame: Frame; readonly start: number; readonly next: number }> = []
  for (let at = start; at < end;) {
    const decoded = decodeFrame(bytes, at, end)
    if (decoded === undefined) return undefined
    assert(decoded.next > at && decoded.next <= end, "a frame leaves its body, or takes no bytes")
    frames.push({ frame: decoded.frame, start: at, next: decoded.next })
    at = decoded.next
  }
  return frames
}

const fitsDirection = (frame: Frame, direction: Direction): boolean => {
  const own = frameTable[frame._tag].direction
  return own === "both" || own === direction
}

const checkAcknowledged = (bytes: Uint8Array, start: number, frame: Frame): void => {
  const reader = new AcknowledgedReader()
  reader.read(bytes, start)
  const ranges: Array<{ low: number; high: number }> = []
  while (reader.next()) {
    assert(reader.low >= 0 && reader.low <= reader.high && reader.high <= reader.largest, "a range that is none")
    const last = ranges.at(-1)
    assert(last === undefined || reader.high <= last.low - 2, "ranges touch or rise")
    ranges.push({ low: reader.low, high: reader.high })
  }
  assert(ranges[0]?.high === reader.largest, "the largest number is in no range")
  if (frame._tag === "Ack" || frame._tag === "Seen") deepStrictEqual(ranges, frame.ranges)
}

const checkRecords = (bytes: Uint8Array, start: number, next: number, frame: Frame): void => {
  const reader = new RecordsReader()
  reader.read(bytes, start, next)
  let at = reader.dataStart
  for (let i = 0; i < reader.count; i++) at += reader.length(i)
  assert(at === next, "the parts do not end where the frame does")
  assert(reader.offset + reader.length(0) <= 16_777_216, "a part beyond the longest record")
  if (frame._tag === "Records") {
    const { firstDelta, partOffset, endsRecord, parts } = frame
    deepStrictEqual(
      [reader.firstDelta, reader.offset, reader.endsRecord, reader.count],
      [firstDelta, partOffset, endsRecord, parts.length]
    )
  } else if (frame._tag === "Part") {
    deepStrictEqual(
      [reader.firstDelta, reader.offset, reader.endsRecord],
      [frame.delta, frame.partOffset, frame.endsRecord]
    )
  }
}

const checkInPlace = (bytes: Uint8Array, start: number, next: number, frame: Frame): void => {
  const type = bytes[start]!
  if (type >= FrameType.ack && type <= FrameType.seenMap) checkAcknowledged(bytes, start, frame)
  else if (type >= FrameType.partOpen) checkRecords(bytes, start, next, frame)
  else if (frame._tag === "Stored") {
    const reader = new StoredReader()
    reader.read(bytes, start)
    const { n, life, creditRecords, creditBytes } = reader
    deepStrictEqual({ _tag: "Stored", n, life, creditRecords, creditBytes }, { ...frame })
  }
}

/** Encoding what was decoded gives bytes of the told length that decode to the same frame. */
const checkRoundTrip = (frame: Frame, taken: number): void => {
  assert(isFrame(frame), "the frame's own Schema does not admit it")
  const length = frameLength(frame)
  assert(length <= taken, "the encoding is longer than what was read")
  const out = new Uint8Array(length)
  assert(encodeFrame(frame, out, 0) === length)
  const again = decodeFrame(out, 0, length)
  assert(again !== undefined && again.next === length, "the encoding is not read")
  deepStrictEqual(again.frame, frame)
}

const check = (bytes: Uint8Array, start: number, end: number, direction: Direction): void => {
  const isValid = validateBody(bytes, start, end, direction)
  const frames = decodeAll(bytes, start, end)
  const isDecoded =
    frames !== undefined && frames.length > 0 && frames.every(({ frame }) => fitsDirection(frame, direction))
  assert(isValid === isDecoded, "validator and decoder disagree")
  if (!isValid) return
  const cursor = new FrameCursor()
  cursor.reset(bytes, start, end)
  for (const { frame, start: at, next } of frames!) {
    if (frame._tag !== "Padding") {
      assert(cursor.next())
      deepStrictEqual([cursor.start, cursor.end, cursor.type], [at, next, bytes[at]])
      checkInPlace(bytes, at, next, frame)
    }
    checkRoundTrip(frame, next - at)
  }
  assert(!cursor.next(), "the cursor goes on after the last frame")
}

/** Byte 0 says the direction; the rest is the body, which stands amid other bytes that no reader may look at. */
const run = (input: Uint8Array): void => {
  const direction: Direction = ((input[0] ?? 0) & 1) === 0 ? "data" : "answer"
  const body = input.subarray(1)
  const slab = new Uint8Array(body.length + 2 * guard)
  slab.set(body, guard)
  check(slab, guard, guard + body.length, direction)
  const isValid = validateBody(slab, guard, guard + body.length, direction)
  // What stands around a body says nothing about it.
  slab.fill(0xff, 0, guard)
  slab.fill(0xff, guard + body.length)
  assert(validateBody(slab, guard, guard + body.length, direction) === isValid, "bytes outside of the body count")
  if (isValid) check(slab, guard, guard + body.length, direction)
}

const bytesOf = (hex: string): Buffer => Buffer.from(hex.replaceAll(" ", ""), "hex")

const seeds = (): ReadonlyArray<Uint8Array> => [
  ...[...vectors.frames, ...vectors.readOnly].map(({ hex, frame }) => {
    const direction = frameTable[frame._tag as Frame["_tag"]].direction === "answer" ? 1 : 0
    return Uint8Array.from([direction, ...bytesOf(hex)])
  }),
  ...vectors.bodies.map(({ hex, direction }) => Uint8Array.from([direction === "data" ? 0 : 1, ...bytesOf(hex)]))
]

export const bodyTarget: Target = { name: "body", isScript: false, seeds, run }

import * as Schema from "effect/Schema"
import { Id64Field, RecordNumberField } from "../fields.ts"
import { readId64, readUint64, writeId64, writeUint64 } from "../integer.ts"
import { livesInStream } from "../limits.ts"
import type { Life } from "../records.ts"
import { endOfName, NameField, nameLength, readNameBytes, writeNameBytes } from "../utf8.ts"
import { assertFrame, type Contents, type FrameCodec, FrameType, malformed } from "./codec.ts"

/**
 * STREAM: what a run carries, and from where on (spec §4.3, §8.1). Record numbers of the run's RECORDS and PART frames
 * are relative to its base. It is sent until answered, so its object form is cheap enough.
 */

const risesStrictly = (lives: ReadonlyArray<Life>): boolean =>
  lives.every((entry, i) => i === 0 || entry.first > lives[i - 1]!.first)

export const StreamFrame = Schema.TaggedStruct("Stream", {
  /** The last number + 1 when the outbox is empty. */
  lowestHeld: RecordNumberField,
  base: RecordNumberField,
  generation: Id64Field,
  shape: Id64Field,
  source: NameField,
  input: NameField,
  lives: Schema.Array(Schema.Struct({ life: Id64Field, first: RecordNumberField })).check(
    Schema.isMaxLength(livesInStream),
    Schema.makeFilter(risesStrictly, { expected: "first numbers that rise strictly" })
  )
})
export interface StreamFrame extends Contents<typeof StreamFrame.Type> {}

/** Fixed fields, from the type byte to the shape. */
const fixedLength = 33
const lifeLength = 16

const isRecordNumber = (number: number): boolean => number >= 1 && number <= Number.MAX_SAFE_INTEGER

const endOfStream = (bytes: Uint8Array, start: number, end: number): number => {
  if (start + fixedLength > end) return malformed
  if (!isRecordNumber(readUint64(bytes, start + 1)) || !isRecordNumber(readUint64(bytes, start + 9))) return malformed
  const sourceEnd = endOfName(bytes, start + fixedLength, end)
  if (sourceEnd < 0) return malformed
  const inputEnd = endOfName(bytes, sourceEnd, end)
  return inputEnd < 0 ? malformed : endOfLives(bytes, inputEnd, end)
}

const endOfLives = (bytes: Uint8Array, offset: number, end: number): number => {
  if (offset >= end) return malformed
  const count = bytes[offset]!
  const livesEnd = offset + 1 + count * lifeLength
  if (count > livesInStream || livesEnd > end) return malformed
  let previous = 0
  for (let at = offset + 1; at < livesEnd; at += lifeLength) {
    const first = readUint64(bytes, at + 8)
    if (first <= previous || !isRecordNumber(first)) return malformed
    previous = first
  }
  return livesEnd
}

export const readStream = (bytes: Uint8Array, start: number, end: number): typeof StreamFrame.Type => {
  assertFrame(endOfStream(bytes, start, end))
  const inputAt = start + fixedLength + 1 + bytes[start + fixedLength]!
  const livesAt = inputAt + 1 + bytes[inputAt]!
  const lives: Array<Life> = []
  for (let i = 0, at = livesAt + 1; i < bytes[livesAt]!; i++, at += lifeLength) {
    lives.push({ life: readId64(bytes, at), first: readUint64(bytes, at + 8) })
  }
  return {
    _tag: "Stream",
    lowestHeld: readUint64(bytes, start + 1),
    base: readUint64(bytes, start + 9),
    generation: readId64(bytes, start + 17),
    shape: readId64(bytes, start + 25),
    source: readNameBytes(bytes, start + fixedLength),
    input: readNameBytes(bytes, inputAt),
    lives
  }
}

export const streamFrameLength = (frame: StreamFrame): number =>
  fixedLength + 1 + nameLength(frame.source) + 1 + nameLength(frame.input) + 1 + frame.lives.length * lifeLength

export const writeStream = (out: Uint8Array, offset: number, frame: StreamFrame): number => {
  out[offset] = FrameType.stream
  writeUint64(out, offset + 1, frame.lowestHeld)
  writeUint64(out, offset + 9, frame.base)
  writeId64(out, offset + 17, frame.generation)
  writeId64(out, offset + 25, frame.shape)
  let at = writeNameBytes(out, offset + fixedLength, frame.source)
  at = writeNameBytes(out, at, frame.input)
  out[at++] = frame.lives.length
  for (const { life, first } of frame.lives) at = writeUint64(out, writeId64(out, at, life), first)
  return at
}

export const streamCodec: FrameCodec<typeof StreamFrame.Type> = {
  firstType: FrameType.stream,
  lastType: FrameType.stream,
  direction: "data",
  endOf: endOfStream,
  read: readStream,
  length: streamFrameLength,
  write: writeStream
}

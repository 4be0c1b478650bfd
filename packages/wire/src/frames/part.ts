import * as Schema from "effect/Schema"
import { Uint32Field } from "../fields.ts"
import { readUint16, readUint32, writeUint16, writeUint32 } from "../integer.ts"
import { longestRecord } from "../limits.ts"
import { assertFrame, type Contents, type FrameCodec, FrameType, malformed } from "./codec.ts"

/**
 * PART: one part whose offset in its record needs more than the 2 B of RECORDS (spec §4.2). `RecordsReader` reads it
 * too.
 */

export const PartFrame = Schema.TaggedStruct("Part", {
  /** The record's number less the stream's base. */
  delta: Uint32Field,
  partOffset: Schema.Natural.check(Schema.isLessThan(longestRecord)),
  /** Whether the part ends its record. */
  endsRecord: Schema.Boolean,
  bytes: Schema.Uint8Array.check(Schema.isBetweenLength(1, 2 ** 16 - 1))
}).check(
  Schema.makeFilter((frame) => frame.partOffset + frame.bytes.length <= longestRecord, {
    expected: "a part within the longest record"
  })
)
export interface PartFrame extends Contents<typeof PartFrame.Type> {}

/** Bytes of a PART frame that are not record bytes. */
export const partFrameOverhead = 11

/** Writes all of PART but its bytes, which belong at the returned offset. */
export const writePartHeader = (
  out: Uint8Array,
  offset: number,
  delta: number,
  partOffset: number,
  length: number,
  endsRecord: boolean
): number => {
  out[offset] = endsRecord ? FrameType.partEnd : FrameType.partOpen
  writeUint32(out, offset + 1, delta)
  writeUint32(out, offset + 5, partOffset)
  return writeUint16(out, offset + 9, length)
}

const endOfPart = (bytes: Uint8Array, start: number, end: number): number => {
  if (start + partFrameOverhead > end) return malformed
  const length = readUint16(bytes, start + 9)
  if (length === 0 || readUint32(bytes, start + 5) + length > longestRecord) return malformed
  const frameEnd = start + partFrameOverhead + length
  return frameEnd <= end ? frameEnd : malformed
}

const readPart = (bytes: Uint8Array, start: number, end: number): typeof PartFrame.Type => {
  assertFrame(endOfPart(bytes, start, end))
  const dataStart = start + partFrameOverhead
  return {
    _tag: "Part",
    delta: readUint32(bytes, start + 1),
    partOffset: readUint32(bytes, start + 5),
    endsRecord: bytes[start] === FrameType.partEnd,
    bytes: bytes.slice(dataStart, dataStart + readUint16(bytes, start + 9))
  }
}

const writePart = (out: Uint8Array, offset: number, frame: PartFrame): number => {
  const { delta, partOffset, bytes, endsRecord } = frame
  const dataStart = writePartHeader(out, offset, delta, partOffset, bytes.length, endsRecord)
  out.set(bytes, dataStart)
  return dataStart + bytes.length
}

export const partCodec: FrameCodec<typeof PartFrame.Type> = {
  firstType: FrameType.partOpen,
  lastType: FrameType.partEnd,
  direction: "data",
  endOf: endOfPart,
  read: readPart,
  length: (frame) => partFrameOverhead + frame.bytes.length,
  write: writePart
}

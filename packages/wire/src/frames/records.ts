import * as Schema from "effect/Schema"
import { assert } from "../assert.ts"
import { Uint16Field, Uint32Field } from "../fields.ts"
import { readUint16, readUint32, writeUint16, writeUint32 } from "../integer.ts"
import { partsInFrame } from "../limits.ts"
import { assertFrame, type Contents, type FrameCodec, FrameType, malformed } from "./codec.ts"
import { partFrameOverhead } from "./part.ts"

/**
 * RECORDS: parts of consecutive records in columns, a table of lengths and then the bytes of all parts (spec §4.1).
 * Part i belongs to record base + firstDelta + i. Only the first may start inside its record, only the last may end
 * inside its own.
 */

const endsBit = 0x40
const wideBit = 0x20
const countMask = 0x1f
/** The type byte, the first number and the offset. */
const fixedLength = 7

/** An empty part says something only as a whole empty record. */
const emptyPartsAreRecords = (frame: {
  readonly partOffset: number
  readonly endsRecord: boolean
  readonly parts: ReadonlyArray<Uint8Array>
}): boolean =>
  frame.parts.every(
    (part, i) =>
      part.length > 0 || ((i > 0 || frame.partOffset === 0) && (i < frame.parts.length - 1 || frame.endsRecord))
  )

export const RecordsFrame = Schema.TaggedStruct("Records", {
  /** The first part's record number less the stream's base. */
  firstDelta: Uint32Field,
  /** Where the first part starts in its record. */
  partOffset: Uint16Field,
  /** Whether the last part ends its record. */
  endsRecord: Schema.Boolean,
  parts: Schema.Array(Schema.Uint8Array.check(Schema.isMaxLength(2 ** 16 - 1))).check(
    Schema.isBetweenLength(1, partsInFrame)
  )
}).check(Schema.makeFilter(emptyPartsAreRecords, { expected: "no empty part but whole empty records" }))
export interface RecordsFrame extends Contents<typeof RecordsFrame.Type> {}

/** Bytes of a RECORDS frame that are not record bytes; `wide` when any length is above 255. */
export const recordsFrameOverhead = (parts: number, wide: boolean): number => fixedLength + (wide ? 2 * parts : parts)

/** Reads RECORDS or PART in place; PART is one part with a longer offset. */
export class RecordsReader {
  count = 0
  /** The first part's record number less the stream's base. */
  firstDelta = 0
  /** Where the first part starts in its record; the others start at 0. */
  offset = 0
  /** Whether the last part ends its record; the others do. */
  endsRecord = false
  /** Where the bytes of the first part start; those of the others follow. */
  dataStart = 0
  /** The bytes of all parts. */
  total = 0
  #bytes: Uint8Array = new Uint8Array(0)
  #lengthsStart = 0
  #wide = false

  /** [start, end) is a validated RECORDS or PART; its bytes must stay while lengths are asked for. */
  read(bytes: Uint8Array, start: number, end: number): void {
    const type = bytes[start]!
    this.#bytes = bytes
    this.firstDelta = readUint32(bytes, start + 1)
    if (type >= FrameType.records) {
      this.count = (type & countMask) + 1
      this.#wide = (type & wideBit) !== 0
      this.endsRecord = (type & endsBit) !== 0
      this.offset = readUint16(bytes, start + 5)
      this.#lengthsStart = start + fixedLength
      this.dataStart = start + recordsFrameOverhead(this.count, this.#wide)
    } else {
      assert(type === FrameType.partOpen || type === FrameType.partEnd, "neither RECORDS nor PART")
      this.count = 1
      this.#wide = true
      this.endsRecord = type === FrameType.partEnd
      this.offset = readUint32(bytes, start + 5)
      this.#lengthsStart = start + 9
      this.dataStart = start + partFrameOverhead
    }
    this.total = end - this.dataStart
  }

  /** Writes the lengths of the first `count` parts to `out[at…]` and returns their sum. */
  copyLengths(out: Uint32Array, at: number, count: number): number {
    const bytes = this.#bytes
    const start = this.#lengthsStart
    let sum = 0
    if (this.#wide) for (let i = 0; i < count; i++) sum += out[at + i] = readUint16(bytes, start + 2 * i)
    else for (let i = 0; i < count; i++) sum += out[at + i] = bytes[start + i]!
    return sum
  }

  /** The length of part `i`. */
  length(i: number): number {
    return this.#wide ? readUint16(this.#bytes, this.#lengthsStart + 2 * i) : this.#bytes[this.#lengthsStart + i]!
  }
}

/**
 * Writes all of RECORDS but the parts' bytes, which belong at the returned offset. Lengths take 1 B each if all fit.
 */
export const writeRecordsHeader = (
  out: Uint8Array,
  offset: number,
  firstDelta: number,
  partOffset: number,
  lengths: Uint16Array,
  count: number,
  endsRecord: boolean
): number => {
  assert(count >= 1 && count <= partsInFrame, "RECORDS of 1 to 32 parts")
  writeUint32(out, offset + 1, firstDelta)
  const start = writeUint16(out, offset + 5, partOffset)
  // Most are narrow: they are written so, and again if one turns out to be long.
  let bits = 0
  for (let i = 0; i < count; i++) {
    const length = lengths[i]!
    bits |= length
    out[start + i] = length
  }
  const wide = bits > 255
  out[offset] = FrameType.records | (endsRecord ? endsBit : 0) | (wide ? wideBit : 0) | (count - 1)
  if (!wide) return start + count
  for (let i = 0; i < count; i++) writeUint16(out, start + 2 * i, lengths[i]!)
  return start + 2 * count
}

/** The offset after the RECORDS at `start`, or `malformed`, as its codec says it. */
export const endOfRecords = (bytes: Uint8Array, start: number, end: number): number => {
  const type = bytes[start]!
  const last = type & countMask
  const wide = (type & wideBit) !== 0
  const dataStart = start + recordsFrameOverhead(last + 1, wide)
  if (dataStart > end) return malformed
  const lengths = start + fixedLength
  let frameEnd = dataStart
  if (wide) for (let i = 0; i <= last; i++) frameEnd += readUint16(bytes, lengths + 2 * i)
  else for (let i = 0; i <= last; i++) frameEnd += bytes[lengths + i]!
  if (frameEnd > end) return malformed
  // An empty part in between is a whole record; the first and the last must say so.
  const lengthOf = (i: number): number => (wide ? readUint16(bytes, lengths + 2 * i) : bytes[lengths + i]!)
  const startsInside = readUint16(bytes, start + 5) !== 0
  if (startsInside && lengthOf(0) === 0) return malformed
  return (type & endsBit) === 0 && lengthOf(last) === 0 ? malformed : frameEnd
}

const readRecords = (bytes: Uint8Array, start: number, end: number): typeof RecordsFrame.Type => {
  assertFrame(endOfRecords(bytes, start, end))
  const reader = new RecordsReader()
  reader.read(bytes, start, end)
  const parts: Array<Uint8Array> = []
  for (let i = 0, at = reader.dataStart; i < reader.count; at += reader.length(i++)) {
    parts.push(bytes.slice(at, at + reader.length(i)))
  }
  const { firstDelta, offset: partOffset, endsRecord } = reader
  return { _tag: "Records", firstDelta, partOffset, endsRecord, parts }
}

const writeRecords = (out: Uint8Array, offset: number, frame: RecordsFrame): number => {
  const { firstDelta, partOffset, parts, endsRecord } = frame
  const lengths = Uint16Array.from(parts, (part) => part.length)
  let at = writeRecordsHeader(out, offset, firstDelta, partOffset, lengths, parts.length, endsRecord)
  for (const part of parts) {
    out.set(part, at)
    at += part.length
  }
  return at
}

const recordsFrameLength = ({ parts }: RecordsFrame): number =>
  parts.reduce(
    (sum, part) => sum + part.length,
    recordsFrameOverhead(
      parts.length,
      parts.some((p) => p.length > 255)
    )
  )

export const recordsCodec: FrameCodec<typeof RecordsFrame.Type> = {
  firstType: FrameType.records,
  lastType: 0xff,
  direction: "data",
  endOf: endOfRecords,
  read: readRecords,
  length: recordsFrameLength,
  write: writeRecords
}

import * as Schema from "effect/Schema"
import { assert } from "../assert.ts"
import { Id64Field, NumberField, Uint32Field } from "../fields.ts"
import { id64Of, readUint32, readUint64, writeId64, writeUint32, writeUint64 } from "../integer.ts"
import { largestRecordCredit } from "../limits.ts"
import type { Bytes, Id64, RecordNumber } from "../units.ts"
import { assertFrame, type Contents, type FrameCodec, FrameType, malformed } from "./codec.ts"

/**
 * STORED: the last record that the inbox committed, its life, and credit beyond it (spec §4, §10.6). In every answer.
 */

export const StoredFrame = Schema.TaggedStruct("Stored", {
  n: NumberField,
  /** 0n when n is 0. */
  life: Id64Field,
  creditRecords: Schema.Natural.check(Schema.isLessThanOrEqualTo(largestRecordCredit)),
  creditBytes: Uint32Field
}).check(Schema.makeFilter((frame) => frame.n > 0 || frame.life === 0n, { expected: "no life for n = 0" }))
export interface StoredFrame extends Contents<typeof StoredFrame.Type> {}

export const storedFrameLength = 25

/** Reads STORED in place. Answers about one life share one bigint. */
export class StoredReader {
  n: RecordNumber = 0
  life: Id64 = 0n
  creditRecords = 0
  creditBytes: Bytes = 0
  #lifeHigh = 0
  #lifeLow = 0

  /** `start` is the offset of a validated STORED. */
  read(bytes: Uint8Array, start: number): void {
    assert(bytes[start] === FrameType.stored, "not STORED")
    this.n = readUint64(bytes, start + 1)
    const high = readUint32(bytes, start + 9)
    const low = readUint32(bytes, start + 13)
    if (high !== this.#lifeHigh || low !== this.#lifeLow) {
      this.#lifeHigh = high
      this.#lifeLow = low
      this.life = id64Of(high, low)
    }
    this.creditRecords = readUint32(bytes, start + 17)
    this.creditBytes = readUint32(bytes, start + 21)
  }
}

export const writeStored = (
  out: Uint8Array,
  offset: number,
  n: RecordNumber,
  life: Id64,
  creditRecords: number,
  creditBytes: Bytes
): number => {
  out[offset] = FrameType.stored
  writeUint64(out, offset + 1, n)
  writeId64(out, offset + 9, life)
  writeUint32(out, offset + 17, creditRecords)
  return writeUint32(out, offset + 21, creditBytes)
}

const endOfStored = (bytes: Uint8Array, start: number, end: number): number => {
  if (start + storedFrameLength > end) return malformed
  const n = readUint64(bytes, start + 1)
  if (n > Number.MAX_SAFE_INTEGER || readUint32(bytes, start + 17) > largestRecordCredit) return malformed
  const hasLife = readUint32(bytes, start + 9) !== 0 || readUint32(bytes, start + 13) !== 0
  return n === 0 && hasLife ? malformed : start + storedFrameLength
}

export const readStored = (bytes: Uint8Array, start: number, end: number): typeof StoredFrame.Type => {
  assertFrame(endOfStored(bytes, start, end))
  const reader = new StoredReader()
  reader.read(bytes, start)
  const { n, life, creditRecords, creditBytes } = reader
  return { _tag: "Stored", n, life, creditRecords, creditBytes }
}

export const storedCodec: FrameCodec<typeof StoredFrame.Type> = {
  firstType: FrameType.stored,
  lastType: FrameType.stored,
  direction: "answer",
  endOf: endOfStored,
  read: readStored,
  length: () => storedFrameLength,
  write: (out, offset, frame) => writeStored(out, offset, frame.n, frame.life, frame.creditRecords, frame.creditBytes)
}

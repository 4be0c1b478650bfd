import {
  id64Of,
  readUint24,
  readUint32,
  readUint64,
  writeId64,
  writeUint24,
  writeUint32,
  writeUint64
} from "./integer.ts"
import { tagLength } from "./limits.ts"
import type { Epoch, Id64, PacketNumber } from "./units.ts"

/**
 * The header in the clear that opens every packet (spec §3.2–§3.6): one mutable reader, one writer per kind, and the
 * expansion of short packet numbers. It is also the additional data of the packet's AEAD.
 */

/** Bits 7–6 of the first byte (spec §3.2). */
export const Kind = { shortData: 0, longData: 1, answer: 2, lost: 3 } as const
export type Kind = (typeof Kind)[keyof typeof Kind]

/** Header bytes by kind (spec §3.3). */
export const shortHeaderLength = 12
export const longHeaderLength = 21
export const answerHeaderLength = 25
export const lostHeaderLength = 17
const headerLengths = [shortHeaderLength, longHeaderLength, answerHeaderLength, lostHeaderLength] as const

/**
 * What a header says. One instance per reader, filled anew by each `read`; meaningless after a `read` that returned
 * false.
 */
export class PacketHeader {
  kind: Kind = Kind.shortData
  epochBits = 0
  keyId = 0
  runPrefix = 0
  /** The whole run of a long header, else 0n. */
  run: Id64 = 0n
  /** The reply run of an answer or LOST, else 0n. */
  replyRun: Id64 = 0n
  /** Low 24 bits in a short header, the full number in a long one and in an answer, 0 in LOST. */
  number = 0
  /** Header bytes: the body starts at `start + length`. */
  length = 0
  /** The last reply run read, by halves, so that answers of one reply run share one bigint. */
  #replyRunHigh = 0
  #replyRunLow = 0
  #replyRun: Id64 = 0n

  /**
   * False when the bytes are too short for the header and a tag, reserved bits are set, or the number is impossible.
   */
  read(bytes: Uint8Array, start: number, end: number): boolean {
    if (end <= start) return false
    const flags = bytes[start]!
    this.kind = (flags >>> 6) as Kind
    this.epochBits = flags & 0x0f
    this.length = headerLengths[this.kind]
    if ((flags & 0x30) !== 0 || end - start < this.length + tagLength) return false
    if (this.kind === Kind.lost && this.epochBits !== 0) return false
    this.keyId = readUint32(bytes, start + 1)
    this.runPrefix = readUint32(bytes, start + 5)
    this.run = this.kind === Kind.longData ? id64Of(this.runPrefix, readUint32(bytes, start + 9)) : 0n
    this.replyRun = this.kind >= Kind.answer ? this.#readReplyRun(bytes, start + 9) : 0n
    this.number = this.#readNumber(bytes, start)
    return this.number <= Number.MAX_SAFE_INTEGER
  }

  #readReplyRun(bytes: Uint8Array, offset: number): Id64 {
    const high = readUint32(bytes, offset)
    const low = readUint32(bytes, offset + 4)
    if (high !== this.#replyRunHigh || low !== this.#replyRunLow) {
      this.#replyRunHigh = high
      this.#replyRunLow = low
      this.#replyRun = id64Of(high, low)
    }
    return this.#replyRun
  }

  #readNumber(bytes: Uint8Array, start: number): number {
    switch (this.kind) {
      case Kind.shortData:
        return readUint24(bytes, start + 9)
      case Kind.longData:
        return readUint64(bytes, start + 13)
      case Kind.answer:
        return readUint64(bytes, start + 17)
      case Kind.lost:
        return 0
    }
  }
}

/** The epoch as bits 3–0 of the flags carry it: 0 means epoch 0 and nothing else does (spec §3.2). */
export const epochBitsOf = (epoch: Epoch): number => (epoch === 0 ? 0 : 1 + ((epoch - 1) % 15))

/** The first 4 B of a run (spec §3.3). */
export const runPrefixOf = (run: Id64): number => Number(run >> 32n)

/**
 * Writers return the offset after the header. `number` is the full packet number; short headers carry its low 24 bits.
 */
export const writeShortHeader = (
  out: Uint8Array,
  offset: number,
  epochBits: number,
  keyId: number,
  runPrefix: number,
  number: PacketNumber
): number => {
  out[offset] = (Kind.shortData << 6) | epochBits
  writeUint32(out, offset + 1, keyId)
  writeUint32(out, offset + 5, runPrefix)
  return writeUint24(out, offset + 9, number % 2 ** 24)
}

export const writeLongHeader = (
  out: Uint8Array,
  offset: number,
  epochBits: number,
  keyId: number,
  run: Id64,
  number: PacketNumber
): number => {
  out[offset] = (Kind.longData << 6) | epochBits
  writeUint32(out, offset + 1, keyId)
  writeId64(out, offset + 5, run)
  return writeUint64(out, offset + 13, number)
}

export const writeAnswerHeader = (
  out: Uint8Array,
  offset: number,
  epochBits: number,
  keyId: number,
  runPrefix: number,
  replyRun: Id64,
  number: PacketNumber
): number => {
  out[offset] = (Kind.answer << 6) | epochBits
  writeUint32(out, offset + 1, keyId)
  writeUint32(out, offset + 5, runPrefix)
  writeId64(out, offset + 9, replyRun)
  return writeUint64(out, offset + 17, number)
}

export const writeLostHeader = (
  out: Uint8Array,
  offset: number,
  keyId: number,
  runPrefix: number,
  replyRun: Id64
): number => {
  out[offset] = Kind.lost << 6
  writeUint32(out, offset + 1, keyId)
  writeUint32(out, offset + 5, runPrefix)
  return writeId64(out, offset + 9, replyRun)
}

/** How many numbers a short header tells apart, and where the last such block of numbers below 2^53 starts. */
const shortNumbers = 2 ** 24
const lastBlock = 2 ** 53 - shortNumbers

/**
 * The full number of a short header: the value with these low 24 bits that is nearest to the largest number opened, the
 * higher one of two equally near (spec §3.6). `largestOpened` is −1 when none was.
 */
export const expandPacketNumber = (truncated: number, largestOpened: PacketNumber): PacketNumber => {
  if (largestOpened < 0) return truncated
  const low = largestOpened % shortNumbers
  const block = largestOpened - low
  const ahead = truncated - low
  if (ahead > shortNumbers / 2 && block > 0) return block - shortNumbers + truncated
  if (ahead <= -shortNumbers / 2 && block < lastBlock) return block + shortNumbers + truncated
  return block + truncated
}

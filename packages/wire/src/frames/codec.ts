import { assert } from "../assert.ts"

/**
 * What the codec of a frame is. Each frame has one file: its Schema, which is its object form, and its binary form by
 * hand. Hot frames have in-place readers and writers besides; object forms serve rare frames, tests, vectors and tools.
 */

/** The type byte of each frame; RECORDS takes all from 0x80 on (spec §4). */
export const FrameType = {
  padding: 0x00,
  ping: 0x01,
  stream: 0x02,
  offer: 0x03,
  response: 0x04,
  ack: 0x10,
  seen: 0x11,
  ackMap: 0x12,
  seenMap: 0x13,
  stored: 0x14,
  accept: 0x15,
  challenge: 0x16,
  refused: 0x17,
  name: 0x18,
  ecn: 0x19,
  partOpen: 0x40,
  partEnd: 0x41,
  records: 0x80
} as const

/** From the sender of a stream, or back to it (spec §1). */
export type Direction = "data" | "answer"

/** What `endOf` functions return for bytes that are not such a frame. */
export const malformed = -1

/** A frame's fields, its tag apart: what writers take. */
export type Contents<F> = Omit<F, "_tag">

/** `start` is always the offset of the type byte, which the caller has looked at. */
export interface FrameCodec<F> {
  readonly firstType: number
  readonly lastType: number
  readonly direction: Direction | "both"
  /** The offset after the frame, or `malformed`: checks everything that spec §4 says of it, and allocates nothing. */
  endOf(bytes: Uint8Array, start: number, end: number): number
  /** The frame that `endOf` accepted. Its bytes are copies. */
  read(bytes: Uint8Array, start: number, end: number): F
  /** The bytes that `write` writes. */
  length(frame: F): number
  write(out: Uint8Array, offset: number, frame: F): number
}

/** Object readers hold their caller to having validated the frame. */
export const assertFrame = (end: number): void => assert(end !== malformed, "read of a frame that was not validated")

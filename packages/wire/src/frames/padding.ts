import * as Schema from "effect/Schema"
import { type FrameCodec, FrameType } from "./codec.ts"

/** PADDING: one byte that says nothing. It fills packets up, in both directions (spec §4). */

export const PaddingFrame = Schema.TaggedStruct("Padding", {})
export type PaddingFrame = typeof PaddingFrame.Type

/** Writes `count` frames of PADDING. */
export const writePadding = (out: Uint8Array, offset: number, count: number): number => {
  out.fill(FrameType.padding, offset, offset + count)
  return offset + count
}

export const paddingCodec: FrameCodec<PaddingFrame> = {
  firstType: FrameType.padding,
  lastType: FrameType.padding,
  direction: "both",
  endOf: (_bytes, start) => start + 1,
  read: () => ({ _tag: "Padding" }),
  length: () => 1,
  write: (out, offset) => writePadding(out, offset, 1)
}

import * as Schema from "effect/Schema"
import { type FrameCodec, FrameType } from "./codec.ts"

/** NAME: the receiver opened packets of a run whose stream it does not know, and asks for STREAM (spec §4, §8.1). */

export const NameFrame = Schema.TaggedStruct("Name", {})
export type NameFrame = typeof NameFrame.Type

export const nameFrameLength = 1

export const writeName = (out: Uint8Array, offset: number): number => {
  out[offset] = FrameType.name
  return offset + nameFrameLength
}

export const nameCodec: FrameCodec<NameFrame> = {
  firstType: FrameType.name,
  lastType: FrameType.name,
  direction: "answer",
  endOf: (_bytes, start) => start + nameFrameLength,
  read: () => ({ _tag: "Name" }),
  length: () => nameFrameLength,
  write: writeName
}

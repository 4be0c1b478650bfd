import * as Schema from "effect/Schema"
import { RefusalReason } from "../records.ts"
import { assertFrame, type Contents, type FrameCodec, FrameType, malformed } from "./codec.ts"

/** REFUSED: the receiver keeps nothing of this stream, and why (spec §4, §11.1). */

export const RefusedFrame = Schema.TaggedStruct("Refused", { reason: Schema.Literals(Object.values(RefusalReason)) })
export interface RefusedFrame extends Contents<typeof RefusedFrame.Type> {}

export const refusedFrameLength = 2

const endOfRefused = (bytes: Uint8Array, start: number, end: number): number => {
  if (start + refusedFrameLength > end) return malformed
  const reason = bytes[start + 1]!
  return reason >= RefusalReason.noSuchInput && reason <= RefusalReason.tooManyRuns
    ? start + refusedFrameLength
    : malformed
}

export const readRefused = (bytes: Uint8Array, start: number, end: number): typeof RefusedFrame.Type => {
  assertFrame(endOfRefused(bytes, start, end))
  return { _tag: "Refused", reason: bytes[start + 1]! as RefusalReason }
}

export const writeRefused = (out: Uint8Array, offset: number, frame: RefusedFrame): number => {
  out[offset] = FrameType.refused
  out[offset + 1] = frame.reason
  return offset + refusedFrameLength
}

export const refusedCodec: FrameCodec<typeof RefusedFrame.Type> = {
  firstType: FrameType.refused,
  lastType: FrameType.refused,
  direction: "answer",
  endOf: endOfRefused,
  read: readRefused,
  length: () => refusedFrameLength,
  write: writeRefused
}

import * as Schema from "effect/Schema"
import { type FrameCodec, FrameType } from "./codec.ts"

/** PING: asks for an answer and carries nothing (spec §4, §9.6). */

export const PingFrame = Schema.TaggedStruct("Ping", {})
export type PingFrame = typeof PingFrame.Type

export const writePing = (out: Uint8Array, offset: number): number => {
  out[offset] = FrameType.ping
  return offset + 1
}

export const pingCodec: FrameCodec<PingFrame> = {
  firstType: FrameType.ping,
  lastType: FrameType.ping,
  direction: "data",
  endOf: (_bytes, start) => start + 1,
  read: () => ({ _tag: "Ping" }),
  length: () => 1,
  write: writePing
}

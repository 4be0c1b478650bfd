import * as Schema from "effect/Schema"
import { Id64Field } from "../fields.ts"
import { readId64, writeId64 } from "../integer.ts"
import { assertFrame, type Contents, type FrameCodec, FrameType, malformed } from "./codec.ts"

/** RESPONSE: returns the token of a CHALLENGE, which validates the address that it went to (spec §4, §13.2). */

export const ResponseFrame = Schema.TaggedStruct("Response", { token: Id64Field })
export interface ResponseFrame extends Contents<typeof ResponseFrame.Type> {}

export const responseFrameLength = 9

const endOfResponse = (_bytes: Uint8Array, start: number, end: number): number =>
  start + responseFrameLength <= end ? start + responseFrameLength : malformed

export const readResponse = (bytes: Uint8Array, start: number, end: number): typeof ResponseFrame.Type => {
  assertFrame(endOfResponse(bytes, start, end))
  return { _tag: "Response", token: readId64(bytes, start + 1) }
}

export const writeResponse = (out: Uint8Array, offset: number, frame: ResponseFrame): number => {
  out[offset] = FrameType.response
  return writeId64(out, offset + 1, frame.token)
}

export const responseCodec: FrameCodec<typeof ResponseFrame.Type> = {
  firstType: FrameType.response,
  lastType: FrameType.response,
  direction: "data",
  endOf: endOfResponse,
  read: readResponse,
  length: () => responseFrameLength,
  write: writeResponse
}

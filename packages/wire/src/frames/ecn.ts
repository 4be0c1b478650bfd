import * as Schema from "effect/Schema"
import { NumberField } from "../fields.ts"
import { noVarint, readVarint, varintLength, varintLengthAt, writeVarint } from "../integer.ts"
import { assertFrame, type Contents, type FrameCodec, FrameType, malformed } from "./codec.ts"

/** ECN: how many packets of the run came with each ECN mark, as RFC 9000 §19.3.2 counts them (spec §4). */

export const EcnFrame = Schema.TaggedStruct("Ecn", { ect0: NumberField, ect1: NumberField, ce: NumberField })
export interface EcnFrame extends Contents<typeof EcnFrame.Type> {}

const endOfEcn = (bytes: Uint8Array, start: number, end: number): number => {
  let offset = start + 1
  for (let i = 0; i < 3; i++) {
    if (readVarint(bytes, offset, end) === noVarint) return malformed
    offset += varintLengthAt(bytes, offset)
  }
  return offset
}

export const readEcn = (bytes: Uint8Array, start: number, end: number): typeof EcnFrame.Type => {
  assertFrame(endOfEcn(bytes, start, end))
  const second = start + 1 + varintLengthAt(bytes, start + 1)
  const third = second + varintLengthAt(bytes, second)
  return {
    _tag: "Ecn",
    ect0: readVarint(bytes, start + 1, end),
    ect1: readVarint(bytes, second, end),
    ce: readVarint(bytes, third, end)
  }
}

export const ecnFrameLength = (frame: EcnFrame): number =>
  1 + varintLength(frame.ect0) + varintLength(frame.ect1) + varintLength(frame.ce)

export const writeEcn = (out: Uint8Array, offset: number, frame: EcnFrame): number => {
  out[offset] = FrameType.ecn
  return writeVarint(out, writeVarint(out, writeVarint(out, offset + 1, frame.ect0), frame.ect1), frame.ce)
}

export const ecnCodec: FrameCodec<typeof EcnFrame.Type> = {
  firstType: FrameType.ecn,
  lastType: FrameType.ecn,
  direction: "answer",
  endOf: endOfEcn,
  read: readEcn,
  length: ecnFrameLength,
  write: writeEcn
}

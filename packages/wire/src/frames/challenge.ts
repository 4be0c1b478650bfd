import * as Schema from "effect/Schema"
import { Id64Field } from "../fields.ts"
import { readId64, writeId64 } from "../integer.ts"
import { assertFrame, type Contents, type FrameCodec, FrameType, malformed } from "./codec.ts"

/** CHALLENGE: a token to return from a new address, and whether its IP changed, not only its port (spec §4, §13). */

export const ChallengeFrame = Schema.TaggedStruct("Challenge", { ipChanged: Schema.Boolean, token: Id64Field })
export interface ChallengeFrame extends Contents<typeof ChallengeFrame.Type> {}

export const challengeFrameLength = 10

const endOfChallenge = (bytes: Uint8Array, start: number, end: number): number =>
  start + challengeFrameLength <= end && bytes[start + 1]! <= 1 ? start + challengeFrameLength : malformed

export const readChallenge = (bytes: Uint8Array, start: number, end: number): typeof ChallengeFrame.Type => {
  assertFrame(endOfChallenge(bytes, start, end))
  return { _tag: "Challenge", ipChanged: bytes[start + 1] === 1, token: readId64(bytes, start + 2) }
}

export const writeChallenge = (out: Uint8Array, offset: number, frame: ChallengeFrame): number => {
  out[offset] = FrameType.challenge
  out[offset + 1] = frame.ipChanged ? 1 : 0
  return writeId64(out, offset + 2, frame.token)
}

export const challengeCodec: FrameCodec<typeof ChallengeFrame.Type> = {
  firstType: FrameType.challenge,
  lastType: FrameType.challenge,
  direction: "answer",
  endOf: endOfChallenge,
  read: readChallenge,
  length: () => challengeFrameLength,
  write: writeChallenge
}

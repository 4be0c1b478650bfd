import * as Schema from "effect/Schema"
import { publicKeyLength, PublicKeyField, Uint32Field } from "../fields.ts"
import { readUint32, writeUint32 } from "../integer.ts"
import { assertFrame, type Contents, type FrameCodec, FrameType, malformed } from "./codec.ts"

/** ACCEPT: the receiver's ephemeral key for an offered epoch, with the first 4 B of the OFFER's key (spec §4, §7.2). */

export const AcceptFrame = Schema.TaggedStruct("Accept", {
  epoch: Uint32Field,
  echo: Uint32Field,
  publicKey: PublicKeyField
})
export interface AcceptFrame extends Contents<typeof AcceptFrame.Type> {}

export const acceptFrameLength = 9 + publicKeyLength

const endOfAccept = (_bytes: Uint8Array, start: number, end: number): number =>
  start + acceptFrameLength <= end ? start + acceptFrameLength : malformed

export const readAccept = (bytes: Uint8Array, start: number, end: number): typeof AcceptFrame.Type => {
  assertFrame(endOfAccept(bytes, start, end))
  return {
    _tag: "Accept",
    epoch: readUint32(bytes, start + 1),
    echo: readUint32(bytes, start + 5),
    publicKey: bytes.slice(start + 9, start + acceptFrameLength)
  }
}

export const writeAccept = (out: Uint8Array, offset: number, frame: AcceptFrame): number => {
  out[offset] = FrameType.accept
  writeUint32(out, offset + 1, frame.epoch)
  writeUint32(out, offset + 5, frame.echo)
  out.set(frame.publicKey, offset + 9)
  return offset + acceptFrameLength
}

export const acceptCodec: FrameCodec<typeof AcceptFrame.Type> = {
  firstType: FrameType.accept,
  lastType: FrameType.accept,
  direction: "answer",
  endOf: endOfAccept,
  read: readAccept,
  length: () => acceptFrameLength,
  write: writeAccept
}

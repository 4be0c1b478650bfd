import * as Schema from "effect/Schema"
import { publicKeyLength, PublicKeyField, Uint32Field } from "../fields.ts"
import { readUint32, writeUint32 } from "../integer.ts"
import { assertFrame, type Contents, type FrameCodec, FrameType, malformed } from "./codec.ts"

/**
 * OFFER: the sender's ephemeral key for the next epoch of the run (spec §4, §7.1). Whether it counts is §7.2's matter.
 */

export const OfferFrame = Schema.TaggedStruct("Offer", { epoch: Uint32Field, publicKey: PublicKeyField })
export interface OfferFrame extends Contents<typeof OfferFrame.Type> {}

export const offerFrameLength = 5 + publicKeyLength

const endOfOffer = (_bytes: Uint8Array, start: number, end: number): number =>
  start + offerFrameLength <= end ? start + offerFrameLength : malformed

export const readOffer = (bytes: Uint8Array, start: number, end: number): typeof OfferFrame.Type => {
  assertFrame(endOfOffer(bytes, start, end))
  return {
    _tag: "Offer",
    epoch: readUint32(bytes, start + 1),
    publicKey: bytes.slice(start + 5, start + offerFrameLength)
  }
}

export const writeOffer = (out: Uint8Array, offset: number, frame: OfferFrame): number => {
  out[offset] = FrameType.offer
  writeUint32(out, offset + 1, frame.epoch)
  out.set(frame.publicKey, offset + 5)
  return offset + offerFrameLength
}

export const offerCodec: FrameCodec<typeof OfferFrame.Type> = {
  firstType: FrameType.offer,
  lastType: FrameType.offer,
  direction: "data",
  endOf: endOfOffer,
  read: readOffer,
  length: () => offerFrameLength,
  write: writeOffer
}

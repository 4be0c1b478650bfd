import * as Schema from "effect/Schema"
import { acceptCodec, AcceptFrame } from "./accept.ts"
import { ackCodec, AckFrame, seenCodec, SeenFrame } from "./ack.ts"
import { ackMapCodec, AckMapFrame, seenMapCodec, SeenMapFrame } from "./ackMap.ts"
import { challengeCodec, ChallengeFrame } from "./challenge.ts"
import { assertFrame, type Direction, type FrameCodec, FrameType, malformed } from "./codec.ts"
import { ecnCodec, EcnFrame } from "./ecn.ts"
import { nameCodec, NameFrame } from "./name.ts"
import { offerCodec, OfferFrame } from "./offer.ts"
import { paddingCodec, PaddingFrame } from "./padding.ts"
import { partCodec, PartFrame } from "./part.ts"
import { pingCodec, PingFrame } from "./ping.ts"
import { endOfRecords, recordsCodec, RecordsFrame } from "./records.ts"
import { refusedCodec, RefusedFrame } from "./refused.ts"
import { responseCodec, ResponseFrame } from "./response.ts"
import { storedCodec, StoredFrame } from "./stored.ts"
import { streamCodec, StreamFrame } from "./stream.ts"

/**
 * The frame table of spec §4 and what is read through it: whole bodies validated before any frame takes effect, a
 * cursor over a validated body, and the object form of every frame.
 */

export * from "./accept.ts"
export * from "./ack.ts"
export * from "./ackMap.ts"
export * from "./acknowledged.ts"
export * from "./challenge.ts"
export { type Contents, type Direction, type FrameCodec, FrameType, malformed } from "./codec.ts"
export * from "./ecn.ts"
export * from "./name.ts"
export * from "./offer.ts"
export * from "./padding.ts"
export * from "./part.ts"
export * from "./ping.ts"
export * from "./records.ts"
export * from "./refused.ts"
export * from "./response.ts"
export * from "./stored.ts"
export * from "./stream.ts"

/** Every frame, in object form. */
export const Frame = Schema.Union([
  PaddingFrame,
  PingFrame,
  StreamFrame,
  OfferFrame,
  ResponseFrame,
  PartFrame,
  RecordsFrame,
  AckFrame,
  SeenFrame,
  AckMapFrame,
  SeenMapFrame,
  StoredFrame,
  AcceptFrame,
  ChallengeFrame,
  RefusedFrame,
  NameFrame,
  EcnFrame
])
export type Frame = typeof Frame.Type

/** The codec of every frame: a frame without one does not compile. */
export const frameTable: { readonly [Tag in Frame["_tag"]]: FrameCodec<Extract<Frame, { readonly _tag: Tag }>> } = {
  Padding: paddingCodec,
  Ping: pingCodec,
  Stream: streamCodec,
  Offer: offerCodec,
  Response: responseCodec,
  Part: partCodec,
  Records: recordsCodec,
  Ack: ackCodec,
  Seen: seenCodec,
  AckMap: ackMapCodec,
  SeenMap: seenMapCodec,
  Stored: storedCodec,
  Accept: acceptCodec,
  Challenge: challengeCodec,
  Refused: refusedCodec,
  Name: nameCodec,
  Ecn: ecnCodec
}

/** The codec of each of the 256 type bytes; `undefined` for a type that no frame has. */
const codecOfType: ReadonlyArray<FrameCodec<Frame> | undefined> = Array.from({ length: 256 }, (_, type) =>
  (Object.values(frameTable) as ReadonlyArray<FrameCodec<Frame>>).find(
    (codec) => type >= codec.firstType && type <= codec.lastType
  )
)

/**
 * Whether the bytes are a body of this direction: at least one frame, each known, well-formed, of the right direction,
 * and the last one ending at `end` (spec §4). Only a body that passes may be read by anything else here.
 */
export const validateBody = (bytes: Uint8Array, start: number, end: number, direction: Direction): boolean => {
  let offset = start
  while (offset < end) {
    const codec = codecOfType[bytes[offset]!]
    if (codec === undefined || (codec.direction !== direction && codec.direction !== "both")) return false
    offset = codec.endOf(bytes, offset, end)
    if (offset === malformed) return false
  }
  return end > start
}

/**
 * The offset after the one RECORDS of a body that has nothing else but PADDING behind it; `malformed` for any other body,
 * valid or not. Most packets of a transfer are such (spec §9.2), and this is all that is to be known of them.
 */
export const endOfLoneRecords = (bytes: Uint8Array, start: number, end: number): number => {
  if (start >= end || bytes[start]! < FrameType.records) return malformed
  const frameEnd = endOfRecords(bytes, start, end)
  if (frameEnd === malformed) return malformed
  for (let i = frameEnd; i < end; i++) if (bytes[i] !== FrameType.padding) return malformed
  return frameEnd
}

/** Walks over the frames of a validated body. */
export class FrameCursor {
  /** The type byte of the frame under the cursor. */
  type = 0
  /** The offset of its type byte. */
  start = 0
  /** The offset after it. */
  end = 0
  #bytes: Uint8Array = new Uint8Array(0)
  #bodyEnd = 0

  /** Stands before the first frame. */
  reset(bytes: Uint8Array, start: number, end: number): void {
    this.#bytes = bytes
    this.end = start
    this.#bodyEnd = end
  }

  /** Moves to the next frame that is not PADDING; false after the last. */
  next(): boolean {
    let offset = this.end
    while (offset < this.#bodyEnd && this.#bytes[offset] === FrameType.padding) offset += 1
    this.start = offset
    this.end = offset
    if (offset >= this.#bodyEnd) return false
    this.type = this.#bytes[offset]!
    const end = codecOfType[this.type]?.endOf(this.#bytes, offset, this.#bodyEnd) ?? malformed
    assertFrame(end)
    this.end = end
    return true
  }
}

/** The bytes that `encodeFrame` writes. */
export const frameLength = (frame: Frame): number => (frameTable[frame._tag] as FrameCodec<Frame>).length(frame)

/** Writes a frame that its Schema admits; returns the offset after it. The room must be there: ask `frameLength`. */
export const encodeFrame = (frame: Frame, out: Uint8Array, offset: number): number =>
  (frameTable[frame._tag] as FrameCodec<Frame>).write(out, offset, frame)

/** The frame at `start` and the offset after it; `undefined` when there is none. Its bytes are copies. */
export const decodeFrame = (
  bytes: Uint8Array,
  start: number,
  end: number
): { readonly frame: Frame; readonly next: number } | undefined => {
  const codec = start < end ? codecOfType[bytes[start]!] : undefined
  const next = codec?.endOf(bytes, start, end) ?? malformed
  return codec === undefined || next === malformed ? undefined : { frame: codec.read(bytes, start, end), next }
}

import { assert, describe, it } from "@effect/vitest"
import { decodeFrame, type Direction, encodeFrame, Frame, frameLength, frameTable, validateBody } from "@pure-link/wire"
import * as Schema from "effect/Schema"
import document from "./frames.json" with { type: "json" }

/** The frozen frames and bodies (spec §4, §19), written by hand from the specification. */

interface FrameVector {
  readonly meaning: string
  readonly frame: { readonly _tag: string }
  readonly hex: string
}

interface BodyVector {
  readonly meaning: string
  readonly direction: string
  readonly valid: boolean
  readonly hex: string
}

const frames: ReadonlyArray<FrameVector> = document.frames
const readOnly: ReadonlyArray<FrameVector> = document.readOnly
const bodies: ReadonlyArray<BodyVector> = document.bodies

const plainHex = (hex: string): string => hex.replaceAll(" ", "")
const bytesOf = (hex: string): Uint8Array => new Uint8Array(Buffer.from(plainHex(hex), "hex"))

/** Fields that frames.json writes in hex: ids, and bytes. */
const idFields = new Set(["generation", "shape", "life", "token"])
const byteFields = new Set(["publicKey", "bytes", "bits"])

/** The frame of a vector, held to its Schema. */
const frameOf = (vector: FrameVector): Frame =>
  Schema.decodeUnknownSync(Frame)(
    JSON.parse(JSON.stringify(vector.frame), (key, value: unknown) => {
      if (idFields.has(key)) return BigInt(`0x${value as string}`)
      if (byteFields.has(key)) return bytesOf(value as string)
      return key === "parts" ? (value as ReadonlyArray<string>).map(bytesOf) : value
    })
  )

const sameFrame = Schema.toEquivalence(Frame)

describe("frames.json", () => {
  it("holds every frame", () => {
    assert.deepStrictEqual(new Set(frames.map((vector) => vector.frame._tag)), new Set(Object.keys(frameTable)))
  })

  it("writes hex in whole bytes", () => {
    for (const { hex } of [...frames, ...readOnly, ...bodies]) assert.match(plainHex(hex), /^([0-9a-f]{2})*$/)
  })

  for (const vector of frames) {
    it(`${vector.frame._tag} is written to the frozen bytes: ${vector.meaning}`, () => {
      const frame = frameOf(vector)
      const out = new Uint8Array(4_096)
      const end = encodeFrame(frame, out, 5)
      assert.strictEqual(Buffer.from(out.subarray(5, end)).toString("hex"), plainHex(vector.hex))
      assert.strictEqual(frameLength(frame), end - 5)
    })
  }

  for (const vector of [...frames, ...readOnly]) {
    it(`${vector.frame._tag} is read from the frozen bytes: ${vector.meaning}`, () => {
      const frame = frameOf(vector)
      const bytes = bytesOf(vector.hex)
      const direction = frameTable[frame._tag].direction
      assert.isTrue(validateBody(bytes, 0, bytes.length, direction === "both" ? "data" : direction))
      const decoded = decodeFrame(bytes, 0, bytes.length)
      assert.strictEqual(decoded?.next, bytes.length)
      assert.isTrue(sameFrame(decoded!.frame, frame))
    })
  }

  for (const { meaning, direction, valid, hex } of bodies) {
    it(`a body of ${direction} is ${valid ? "valid" : "refused"}: ${meaning}`, () => {
      const bytes = bytesOf(hex)
      assert.strictEqual(validateBody(bytes, 0, bytes.length, direction as Direction), valid)
    })
  }
})

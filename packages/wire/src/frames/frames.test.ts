import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import { Id64Field, NumberField, RecordNumberField } from "../fields.ts"
import { livesInStream, longestAcknowledgementMap } from "../limits.ts"
import {
  AckMapFrame,
  decodeFrame,
  type Direction,
  encodeFrame,
  Frame,
  FrameCursor,
  frameLength,
  frameTable,
  FrameType,
  SeenMapFrame,
  StreamFrame,
  validateBody
} from "./index.ts"

const sameFrame = Schema.toEquivalence(Frame)
const isFrame = Schema.is(Frame)

/** STREAM with up to all 8 lives, which the Schema alone seldom generates. */
const manyLives = Arbitrary.map(
  Arbitrary.all({
    stream: Arbitrary.schema(StreamFrame),
    lives: Arbitrary.array(Arbitrary.schema(Schema.Struct({ life: Id64Field, first: RecordNumberField })), {
      maxLength: livesInStream
    })
  }),
  ({ stream, lives }): Frame => {
    const byFirst = new Map(lives.map((entry) => [entry.first, entry]))
    return { ...stream, lives: [...byFirst.values()].sort((a, b) => a.first - b.first) }
  }
)

/** ACK and SEEN with many ranges, built from the lowest up. */
const manyRanges = Arbitrary.map(
  Arbitrary.all({
    seen: Arbitrary.schema(Schema.Boolean),
    delay: Arbitrary.schema(NumberField),
    steps: Arbitrary.array(Arbitrary.schema(Schema.Struct({ gap: Schema.Natural, length: Schema.Natural })), {
      minLength: 1,
      maxLength: 100
    })
  }),
  ({ seen, delay, steps }): Frame => {
    const ranges: Array<{ low: number; high: number }> = []
    let next = 0
    for (const { gap, length } of steps) {
      const low = next + (gap % 2 ** 40)
      const high = low + (length % 2 ** 40)
      ranges.unshift({ low, high })
      next = high + 2
    }
    return { _tag: seen ? "Seen" : "Ack", delay, ranges: ranges as [(typeof ranges)[0] & {}, ...typeof ranges] }
  }
)

/** ACK_MAP and SEEN_MAP of any bits that may be set. */
const maps = Arbitrary.map(
  Arbitrary.all({
    seen: Arbitrary.schema(Schema.Boolean),
    largest: Arbitrary.schema(NumberField),
    delay: Arbitrary.schema(NumberField),
    bits: Arbitrary.array(Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))), {
      minLength: 1,
      maxLength: longestAcknowledgementMap
    })
  }),
  ({ seen, largest, delay, bits }): Frame => {
    const map = Uint8Array.from(bits, (byte, j) => byte & (2 ** Math.max(0, Math.min(8, largest + 1 - 8 * j)) - 1))
    map[0] = map[0]! | 1
    return { _tag: seen ? "SeenMap" : "AckMap", largest, delay, bits: map }
  }
)

/** What each frame's Schema generates; maps apart, most of which the Schema would have to discard. */
const arbitraries: ReadonlyArray<readonly [string, Arbitrary.Arbitrary<Frame>]> = [
  ...Frame.members
    .filter((member) => member !== AckMapFrame && member !== SeenMapFrame)
    .map((member) => [member.fields._tag.schema.literal, Arbitrary.schema<Schema.Codec<Frame>>(member)] as const),
  ["AckMap and SeenMap", maps],
  ["Stream of many lives", manyLives],
  ["Ack and Seen of many ranges", manyRanges]
]

const anyFrame = Arbitrary.flatMap(
  Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: arbitraries.length - 1 }))),
  (i) => arbitraries[i]![1]
)

const out = new Uint8Array(2 ** 21)

const directionsOf = (frame: Frame): ReadonlyArray<Direction> => {
  const { direction } = frameTable[frame._tag]
  return direction === "both" ? ["data", "answer"] : [direction]
}

describe("every frame", () => {
  for (const [name, arbitrary] of arbitraries) {
    it.prop(
      `${name}: comes back equal, as long as declared, in its own directions only, and never cut short`,
      [arbitrary],
      ([frame]) => {
        const start = 3
        out.fill(0xa5, 0, 8)
        const end = encodeFrame(frame, out, start)
        assert.strictEqual(end - start, frameLength(frame))
        for (const direction of ["data", "answer"] as const) {
          assert.strictEqual(validateBody(out, start, end, direction), directionsOf(frame).includes(direction))
        }
        const decoded = decodeFrame(out, start, end)
        assert.strictEqual(decoded?.next, end)
        assert.isTrue(sameFrame(decoded!.frame, frame))
        const step = Math.max(1, Math.floor((end - start) / 200))
        for (let cut = start; cut < end; cut += step) {
          assert.isFalse(validateBody(out, start, cut, directionsOf(frame)[0]!), `cut to ${cut - start}`)
          assert.isUndefined(decodeFrame(out, start, cut))
        }
      },
      { arbitrary: { runs: 150 } }
    )
  }

  it("has type bytes that no other frame has, and the others are refused", () => {
    const owners = Array.from(
      { length: 256 },
      (_, type) => Object.values(frameTable).filter((codec) => type >= codec.firstType && type <= codec.lastType).length
    )
    const known = new Set<number>(Object.values(FrameType))
    for (const [type, count] of owners.entries()) {
      assert.strictEqual(count, known.has(type) || type >= FrameType.records ? 1 : 0, `type ${type}`)
      const alone = new Uint8Array(64)
      alone[0] = type
      if (count === 0) {
        assert.isFalse(validateBody(alone, 0, 64, "data"), `type ${type}`)
        assert.isFalse(validateBody(alone, 0, 64, "answer"), `type ${type}`)
      }
    }
  })
})

/** Several frames of one direction as one body, with the offsets where they start. */
const writeBody = (
  frames: ReadonlyArray<Frame>,
  start: number
): { readonly borders: Set<number>; readonly end: number } => {
  const borders = new Set<number>()
  let at = start
  for (const frame of frames) {
    at = encodeFrame(frame, out, at)
    borders.add(at)
  }
  return { borders, end: at }
}

const bodies = Arbitrary.map(
  Arbitrary.all({
    direction: Arbitrary.schema(Schema.Literals(["data", "answer"])),
    frames: Arbitrary.array(anyFrame, { minLength: 1, maxLength: 12 })
  }),
  ({ direction, frames }) => ({ direction, frames: frames.filter((frame) => directionsOf(frame).includes(direction)) })
)

describe("a body", () => {
  it("without any frame is refused", () => {
    assert.isFalse(validateBody(out, 5, 5, "data"))
    assert.isFalse(validateBody(out, 5, 5, "answer"))
  })

  it.prop("is valid exactly when it ends where a frame ends", [bodies], ([{ direction, frames }]) => {
    const { borders, end } = writeBody(frames, 2)
    for (let cut = 2; cut <= end; cut++) {
      assert.strictEqual(validateBody(out, 2, cut, direction), borders.has(cut), `cut to ${cut - 2} of ${end - 2}`)
    }
  })

  it.prop("with one frame of the other direction anywhere is refused", [bodies], ([{ direction, frames }]) => {
    const foreign: Frame = direction === "data" ? { _tag: "Name" } : { _tag: "Ping" }
    for (let i = 0; i <= frames.length; i++) {
      const { end } = writeBody([...frames.slice(0, i), foreign, ...frames.slice(i)], 0)
      assert.isFalse(validateBody(out, 0, end, direction))
    }
  })

  it.prop("is walked frame by frame, PADDING left out", [bodies], ([{ direction, frames }]) => {
    const { end } = writeBody(frames, 4)
    if (!validateBody(out, 4, end, direction)) return frames.length === 0
    const cursor = new FrameCursor()
    cursor.reset(out, 4, end)
    const walked: Array<Frame> = []
    while (cursor.next()) {
      assert.strictEqual(cursor.type, out[cursor.start])
      const decoded = decodeFrame(out, cursor.start, cursor.end)
      assert.strictEqual(decoded?.next, cursor.end)
      walked.push(decoded!.frame)
    }
    assert.isFalse(cursor.next(), "after the last frame")
    const expected = frames.filter((frame) => frame._tag !== "Padding")
    assert.strictEqual(walked.length, expected.length)
    return walked.every((frame, i) => sameFrame(frame, expected[i]!))
  })

  it("that was not validated stops a cursor loudly", () => {
    const cursor = new FrameCursor()
    cursor.reset(Uint8Array.of(0x05), 0, 1)
    assert.throws(() => cursor.next(), /not validated/)
  })
})

/** A small deterministic generator (mulberry32), for loops too long for shrinking cases. */
const seeded =
  (seed: number) =>
  (below: number): number => {
    seed = (seed + 0x6d2b79f5) | 0
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
  }

/** Whatever is accepted must decode to what the Schema admits, and come back the same when written again. */
const judge = (bytes: Uint8Array): number => {
  let accepted = 0
  for (const direction of ["data", "answer"] as const) {
    if (!validateBody(bytes, 0, bytes.length, direction)) continue
    accepted += 1
    for (let at = 0; at < bytes.length;) {
      const decoded = decodeFrame(bytes, at, bytes.length)!
      assert.isTrue(isFrame(decoded.frame), `${decoded.frame._tag} accepted against its Schema`)
      const end = encodeFrame(decoded.frame, out, 0)
      assert.isTrue(sameFrame(decodeFrame(out, 0, end)!.frame, decoded.frame))
      at = decoded.next
    }
  }
  return accepted
}

describe("garbage", () => {
  it("is judged, never thrown at, and accepted only as the Schema admits", () => {
    const random = seeded(1)
    const types = [...Object.values(FrameType), 0xc0, 0xe1]
    let accepted = 0
    for (let round = 0; round < 20_000; round++) {
      const bytes = Uint8Array.from({ length: 1 + random(60) }, () => (random(2) === 0 ? random(256) : random(4)))
      bytes[0] = types[random(types.length)]!
      accepted += judge(bytes)
    }
    assert.isAtLeast(accepted, 200, "some of the garbage must be well-formed for this test to say anything")
  })

  it.prop(
    "made by changing one byte of a body is accepted only as the Schema admits",
    [bodies, Schema.Natural, Schema.Natural],
    ([{ frames }, where, change]) => {
      const { end } = writeBody(frames, 0)
      if (end === 0) return
      const bytes = out.slice(0, end)
      for (let i = 0; i < Math.min(end, 60); i++) {
        const at = (where + i) % end
        const kept = bytes[at]!
        bytes[at] = kept ^ (1 + ((change + i) % 255))
        judge(bytes)
        bytes[at] = kept
      }
    },
    { arbitrary: { runs: 150 } }
  )
})

describe("names", () => {
  /** A STREAM body whose source is exactly these bytes. */
  const streamNamed = (name: ReadonlyArray<number>): Uint8Array => {
    const numbers = [0, 0, 0, 0, 0, 0, 0, 1]
    return Uint8Array.from([2, ...numbers, ...numbers, ...new Uint8Array(16), name.length, ...name, 1, 0x61, 0])
  }
  const accepts = (name: ReadonlyArray<number>): boolean => {
    const bytes = streamNamed(name)
    return validateBody(bytes, 0, bytes.length, "data")
  }

  it("are 1 to 64 B long", () => {
    for (let length = 0; length <= 80; length++) {
      assert.strictEqual(accepts(Array.from({ length }, () => 0x78)), length >= 1 && length <= 64, `${length} B`)
    }
  })

  it("are UTF-8 exactly when the platform's decoder says so", () => {
    const random = seeded(2)
    const strict = new TextDecoder("utf-8", { fatal: true })
    /** Bytes around which UTF-8 changes its mind. */
    const borders = Buffer.from("00417f808f909fa0bfc0c1c2dfe0e1ecedeeeff0f1f3f4f5f8ff", "hex")
    let wellFormed = 0
    for (let round = 0; round < 60_000; round++) {
      const name = Array.from({ length: 1 + random(4) }, (_, i) =>
        i === 0 || random(3) === 0 ? borders[random(borders.length)]! : 0x80 + random(0x40)
      )
      let isText = true
      try {
        strict.decode(Uint8Array.from(name))
      } catch {
        isText = false
      }
      if (isText) wellFormed += 1
      assert.strictEqual(accepts(name), isText, Buffer.from(name).toString("hex"))
    }
    assert.isAtLeast(wellFormed, 1_000)
  })

  it("keep a leading U+FEFF: other bytes, another name", () => {
    const bytes = streamNamed([0xef, 0xbb, 0xbf, 0x61])
    const decoded = decodeFrame(bytes, 0, bytes.length)!.frame as typeof StreamFrame.Type
    assert.strictEqual(decoded.source, "\ufeffa")
    assert.strictEqual(frameLength(decoded), bytes.length)
  })

  it("that are not UTF-8 in JavaScript either, or too long, are refused by the Schema", () => {
    const { source } = StreamFrame.fields
    for (const name of ["", "\ud800", "a\udc00", "x".repeat(65), "ü".repeat(33), "😀".repeat(17)]) {
      assert.isFalse(Schema.is(source)(name), name)
    }
    for (const name of ["x", "x".repeat(64), "ü".repeat(32), "😀".repeat(16)]) {
      assert.isTrue(Schema.is(source)(name), name)
    }
  })
})

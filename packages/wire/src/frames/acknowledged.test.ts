import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import {
  AcknowledgedReader,
  ackMapLength,
  ackRangesLength,
  ackRangesThatFit,
  validateBody,
  writeAckMap,
  writeAckRanges
} from "./index.ts"

const out = new Uint8Array(20_000)
const reader = new AcknowledgedReader()

interface Ranges {
  readonly lows: Float64Array
  readonly highs: Float64Array
  readonly count: number
}

/** The ranges of a set of numbers, newest first: slow and plain. */
const rangesOf = (numbers: ReadonlySet<number>): Ranges => {
  const falling = [...numbers].sort((a, b) => b - a)
  const highs = falling.filter((number) => !numbers.has(number + 1))
  const lows = falling.filter((number) => !numbers.has(number - 1))
  return { lows: Float64Array.from(lows), highs: Float64Array.from(highs), count: lows.length }
}

const mapOf = (numbers: ReadonlySet<number>): { readonly largest: number; readonly bits: Uint8Array } => {
  const largest = Math.max(...numbers)
  const bits = new Uint8Array(Math.floor((largest - Math.min(...numbers)) / 8) + 1)
  for (const number of numbers) {
    const bit = largest - number
    bits[bit >> 3] = bits[bit >> 3]! | (1 << (bit & 7))
  }
  return { largest, bits }
}

/** What the reader says, with the promise that it holds: ranges fall and do not touch. */
const readRanges = (start: number): ReadonlyArray<readonly [number, number]> => {
  const ranges: Array<readonly [number, number]> = []
  reader.read(out, start)
  while (reader.next()) {
    assert.isAtMost(reader.low, reader.high)
    if (ranges.length > 0) assert.isAtMost(reader.high, ranges.at(-1)![0] - 2)
    ranges.push([reader.low, reader.high])
  }
  assert.isFalse(reader.next())
  return ranges
}

const pairs = ({ lows, highs }: Ranges): ReadonlyArray<readonly [number, number]> =>
  Array.from(lows, (low, i) => [low, highs[i]!] as const)

/** Numbers that lie somewhere in a few thousand above some start. */
const numberSets = Arbitrary.map(
  Arbitrary.all({
    start: Arbitrary.schema(Schema.Natural.check(Schema.isLessThan(2 ** 52))),
    runs: Arbitrary.array(
      Arbitrary.schema(
        Schema.Struct({
          gap: Schema.Natural.check(Schema.isLessThan(40)),
          length: Schema.Natural.check(Schema.isLessThan(30))
        })
      ),
      { minLength: 1, maxLength: 60 }
    )
  }),
  ({ start, runs }) => {
    const numbers = new Set<number>()
    let next = start
    for (const { gap, length } of runs) {
      next += gap
      for (let i = 0; i <= length; i++) numbers.add(next++)
    }
    return numbers
  }
)

describe("acknowledged numbers", () => {
  it.prop("are read alike from ranges and from a map", [numberSets, Schema.Boolean], ([numbers, seen]) => {
    const ranges = rangesOf(numbers)
    const delay = 12_345
    const rangesEnd = writeAckRanges(out, 3, out.length, seen, delay, ranges.lows, ranges.highs, ranges.count)
    assert.strictEqual(rangesEnd - 3, ackRangesLength(delay, ranges.lows, ranges.highs, ranges.count))
    assert.isTrue(validateBody(out, 3, rangesEnd, "answer"))
    assert.deepStrictEqual(readRanges(3), pairs(ranges))
    assert.deepStrictEqual([reader.seen, reader.largest, reader.delay], [seen, ranges.highs[0]!, delay])

    const { largest, bits } = mapOf(numbers)
    const mapEnd = writeAckMap(out, 5, out.length, seen, delay, largest, bits, bits.length)
    assert.strictEqual(mapEnd - 5, ackMapLength(delay, largest, bits.length))
    assert.isTrue(validateBody(out, 5, mapEnd, "answer"))
    assert.deepStrictEqual(readRanges(5), pairs(ranges))
    assert.deepStrictEqual([reader.seen, reader.largest, reader.delay], [seen, largest, delay])
  })

  it("are read at the ends of the number space", () => {
    for (const numbers of [[0], [2 ** 53 - 1], [0, 2], [2 ** 53 - 1, 2 ** 53 - 3]]) {
      const ranges = rangesOf(new Set(numbers))
      writeAckRanges(out, 0, out.length, false, 0, ranges.lows, ranges.highs, ranges.count)
      assert.deepStrictEqual(readRanges(0), pairs(ranges))
      const { largest, bits } = mapOf(new Set(numbers))
      writeAckMap(out, 0, out.length, false, 0, largest, bits, bits.length)
      assert.deepStrictEqual(readRanges(0), pairs(ranges))
    }
  })

  /** Every room from none to more than enough. */
  const writesWhatFits = (numbers: ReadonlySet<number>): void => {
    const ranges = rangesOf(numbers)
    const lengthOf = (count: number): number => ackRangesLength(7, ranges.lows, ranges.highs, count)
    for (let room = 0; room <= lengthOf(ranges.count) + 2; room++) {
      const fit = ackRangesThatFit(room, 7, ranges.lows, ranges.highs, ranges.count)
      out.fill(0xee, 0, 9 + room + 8)
      const end = writeAckRanges(out, 9, 9 + room, false, 7, ranges.lows, ranges.highs, ranges.count)
      assert.strictEqual(end - 9, fit === 0 ? 0 : lengthOf(fit))
      assert.isAtMost(end, 9 + room)
      if (fit < ranges.count) assert.isAbove(lengthOf(fit + 1), room)
      if (fit > 0) assert.deepStrictEqual(readRanges(9), pairs(ranges).slice(0, fit))
      assert.isTrue(
        out.subarray(end, 9 + room + 8).every((byte) => byte === 0xee),
        "nothing behind the frame"
      )
    }
  }

  it.prop(
    "are written as far as they fit, newest first, and no further",
    [numberSets],
    ([numbers]) => {
      writesWhatFits(numbers)
    },
    { arbitrary: { runs: 50 } }
  )

  it("are written as far as they fit where the count of ranges grows to two bytes", () => {
    writesWhatFits(new Set(Array.from({ length: 80 }, (_, i) => 3 * i)))
  })

  it("fit nothing when there are none, and no map that is longer than the room", () => {
    assert.strictEqual(ackRangesThatFit(1_000, 0, new Float64Array(4), new Float64Array(4), 0), 0)
    const bits = Uint8Array.of(1, 0x80)
    const length = ackMapLength(0, 20, 2)
    assert.strictEqual(writeAckMap(out, 4, 4 + length - 1, false, 0, 20, bits, 2), 4)
    assert.strictEqual(writeAckMap(out, 4, 4 + length, false, 0, 20, bits, 2), 4 + length)
  })

  it("are shorter as ranges when few are missing, and as a map when many are", () => {
    const shorter = (numbers: ReadonlySet<number>): "ranges" | "map" => {
      const ranges = rangesOf(numbers)
      const { largest, bits } = mapOf(numbers)
      const asRanges = ackRangesLength(100, ranges.lows, ranges.highs, ranges.count)
      return asRanges <= ackMapLength(100, largest, bits.length) ? "ranges" : "map"
    }
    const hundreds = Array.from({ length: 10 }, (_, i) => i * 100)
    const thousand = Array.from({ length: 1_000 }, (_, i) => 5_000 + i)
    assert.strictEqual(shorter(new Set(thousand)), "ranges")
    assert.strictEqual(shorter(new Set(thousand.filter((number) => number % 200 !== 0))), "ranges")
    assert.strictEqual(shorter(new Set(hundreds)), "ranges")
    assert.strictEqual(shorter(new Set(thousand.filter((number) => number % 2 === 0))), "map")
    assert.strictEqual(shorter(new Set(thousand.filter((number) => number % 5 !== 0))), "map")
  })

  it("of 10,400 numbers with every other missing fit one map of 1,300 B, read back whole", () => {
    const numbers = new Set(Array.from({ length: 5_200 }, (_, i) => 40_000 - 2 * i))
    const { largest, bits } = mapOf(numbers)
    assert.strictEqual(bits.length, 1_300)
    const end = writeAckMap(out, 0, 1_452 - 25 - 16, false, 500, largest, bits, bits.length)
    assert.isAbove(end, 1_300)
    assert.isTrue(validateBody(out, 0, end, "answer"))
    assert.deepStrictEqual(readRanges(0), pairs(rangesOf(numbers)))
  })
})

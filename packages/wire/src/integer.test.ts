import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import { Id64Field } from "./fields.ts"
import {
  noVarint,
  readId64,
  readUint16,
  readUint24,
  readUint32,
  readUint64,
  readVarint,
  varintLength,
  varintLengthAt,
  writeId64,
  writeUint16,
  writeUint24,
  writeUint32,
  writeUint64,
  writeVarint
} from "./integer.ts"

const bytesOf = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex.replaceAll(" ", ""), "hex"))
const hexOf = (bytes: Uint8Array, start: number, end: number): string =>
  Buffer.from(bytes.subarray(start, end)).toString("hex")

/** Numbers near every power of two below 2^53, where lengths and halves change. */
const edges = Array.from({ length: 54 }, (_, bits) => 2 ** bits)
  .flatMap((power) => [power - 1, power, power + 1])
  .filter((value) => value < 2 ** 53)

describe("integers", () => {
  it("are big-endian", () => {
    const out = new Uint8Array(8)
    assert.strictEqual(writeUint16(out, 0, 0x0102), 2)
    assert.strictEqual(hexOf(out, 0, 2), "0102")
    assert.strictEqual(writeUint24(out, 1, 0x010203), 4)
    assert.strictEqual(hexOf(out, 1, 4), "010203")
    assert.strictEqual(writeUint32(out, 2, 0xf1020304), 6)
    assert.strictEqual(hexOf(out, 2, 6), "f1020304")
    assert.strictEqual(writeUint64(out, 0, 0x1f_0203_0405_0607), 8)
    assert.strictEqual(hexOf(out, 0, 8), "001f020304050607")
    assert.strictEqual(writeId64(out, 0, 0xf102030405060708n), 8)
    assert.strictEqual(hexOf(out, 0, 8), "f102030405060708")
  })

  it("read back what was written, unsigned, at the edges of their sizes", () => {
    const out = new Uint8Array(16)
    for (const value of edges) {
      writeUint64(out, 3, value)
      assert.strictEqual(readUint64(out, 3), value)
      if (value < 2 ** 32) assert.strictEqual(readUint32(out, writeUint32(out, 5, value) - 4), value)
      if (value < 2 ** 24) assert.strictEqual(readUint24(out, writeUint24(out, 5, value) - 3), value)
      if (value < 2 ** 16) assert.strictEqual(readUint16(out, writeUint16(out, 5, value) - 2), value)
    }
  })

  it("a number of 2^53 or more reads as one that the caller refuses", () => {
    for (const hex of ["0020000000000000", "0020000000000001", "8000000000000000", "ffffffffffffffff"]) {
      assert.isAtLeast(readUint64(bytesOf(hex), 0), 2 ** 53)
    }
  })

  it.prop("ids keep all 64 bits", [Id64Field], ([id]) => {
    const out = new Uint8Array(9)
    assert.strictEqual(writeId64(out, 1, id), 9)
    assert.strictEqual(readId64(out, 1), id)
  })
})

describe("varints", () => {
  it("are those of RFC 9000 appendix A.1", () => {
    assert.strictEqual(readVarint(bytesOf("9d7f3e7d"), 0, 4), 494_878_333)
    assert.strictEqual(readVarint(bytesOf("7bbd"), 0, 2), 15_293)
    assert.strictEqual(readVarint(bytesOf("25"), 0, 1), 37)
    assert.strictEqual(readVarint(bytesOf("4025"), 0, 2), 37)
    assert.strictEqual(readVarint(bytesOf("c000 0000 8000 0001"), 0, 8), 2 ** 31 + 1)
  })

  it("take the shortest form, and read back", () => {
    const out = new Uint8Array(10)
    for (const value of edges) {
      const end = writeVarint(out, 1, value)
      const shortest = value < 64 ? 1 : value < 16_384 ? 2 : value < 1_073_741_824 ? 4 : 8
      assert.strictEqual(end - 1, shortest)
      assert.strictEqual(varintLength(value), shortest)
      assert.strictEqual(varintLengthAt(out, 1), shortest)
      assert.strictEqual(readVarint(out, 1, end), value)
      for (let cut = 1; cut < end; cut++) assert.strictEqual(readVarint(out, 1, cut), noVarint)
    }
  })

  it("of 2^53 or more are refused", () => {
    assert.strictEqual(readVarint(bytesOf("c01fffffffffffff"), 0, 8), 2 ** 53 - 1)
    assert.strictEqual(readVarint(bytesOf("c020000000000000"), 0, 8), noVarint)
    assert.strictEqual(readVarint(bytesOf("ffffffffffffffff"), 0, 8), noVarint)
  })

  it.prop(
    "of any bytes are what bigint arithmetic says",
    [
      Arbitrary.array(Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))), {
        minLength: 8,
        maxLength: 8
      })
    ],
    ([list]) => {
      const bytes = Uint8Array.from(list)
      const length = 1 << (bytes[0]! >> 6)
      const all = BigInt(`0x${hexOf(bytes, 0, length)}`)
      const value = all & ((1n << BigInt(8 * length - 2)) - 1n)
      assert.strictEqual(readVarint(bytes, 0, 8), value < 2n ** 53n ? Number(value) : noVarint)
    },
    { arbitrary: { runs: 500 } }
  )
})

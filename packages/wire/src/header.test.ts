import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import { Id64Field, NumberField, Uint32Field } from "./fields.ts"
import {
  epochBitsOf,
  expandPacketNumber,
  Kind,
  PacketHeader,
  runPrefixOf,
  writeAnswerHeader,
  writeLongHeader,
  writeLostHeader,
  writeShortHeader
} from "./header.ts"
import { tagLength } from "./limits.ts"

const keyId = 0xc1c2c3c4
const run = 0xa1a2a3a4a5a6a7a8n
const runPrefix = 0xa1a2a3a4
const replyRun = 0xb1b2b3b4b5b6b7b8n
const number = 0x1f_1234_5678_9abc

/** Headers as spec §3.3 lays them out, written down by hand. */
const layouts = {
  short: "05 c1c2c3c4 a1a2a3a4 789abc",
  long: "40 c1c2c3c4 a1a2a3a4a5a6a7a8 001f123456789abc",
  answer: "8f c1c2c3c4 a1a2a3a4 b1b2b3b4b5b6b7b8 001f123456789abc",
  lost: "c0 c1c2c3c4 a1a2a3a4 b1b2b3b4b5b6b7b8"
}

/** The header's bytes with an empty body and a tag behind them. */
const packetOf = (hex: string): Uint8Array =>
  Uint8Array.from([...Buffer.from(hex.replaceAll(" ", ""), "hex"), ...new Uint8Array(tagLength)])

const fieldsOf = (header: PacketHeader): object => ({ ...header })

describe("headers", () => {
  it("are written as spec §3.3 lays them out", () => {
    const out = new Uint8Array(64)
    const expectHeader = (end: number, layout: string): void =>
      assert.strictEqual(Buffer.from(out.subarray(7, end)).toString("hex"), layout.replaceAll(" ", ""))
    expectHeader(writeShortHeader(out, 7, 5, keyId, runPrefix, number), layouts.short)
    expectHeader(writeLongHeader(out, 7, 0, keyId, run, number), layouts.long)
    expectHeader(writeAnswerHeader(out, 7, 15, keyId, runPrefix, replyRun, number), layouts.answer)
    expectHeader(writeLostHeader(out, 7, keyId, runPrefix, replyRun), layouts.lost)
  })

  it("are read field by field, each kind clearing what it does not carry", () => {
    const header = new PacketHeader()
    const cases: ReadonlyArray<readonly [string, object]> = [
      [layouts.long, { kind: Kind.longData, epochBits: 0, run, replyRun: 0n, number, length: 21 }],
      [layouts.answer, { kind: Kind.answer, epochBits: 15, run: 0n, replyRun, number, length: 25 }],
      [layouts.short, { kind: Kind.shortData, epochBits: 5, run: 0n, replyRun: 0n, number: 0x789abc, length: 12 }],
      [layouts.lost, { kind: Kind.lost, epochBits: 0, run: 0n, replyRun, number: 0, length: 17 }]
    ]
    for (const [hex, fields] of cases) {
      const packet = packetOf(hex)
      assert.isTrue(header.read(packet, 0, packet.length))
      assert.deepStrictEqual(fieldsOf(header), { keyId, runPrefix, ...fields })
    }
  })

  it("are read at any offset, and not beyond the end", () => {
    const header = new PacketHeader()
    for (const hex of Object.values(layouts)) {
      const packet = packetOf(hex)
      const shifted = new Uint8Array(packet.length + 40)
      shifted.set(packet, 9)
      for (let end = 9; end < 9 + packet.length; end++) assert.isFalse(header.read(shifted, 9, end), `${hex} to ${end}`)
      assert.isTrue(header.read(shifted, 9, 9 + packet.length))
      assert.strictEqual(header.keyId, keyId)
    }
  })

  it("with a reserved bit set are refused", () => {
    for (const hex of Object.values(layouts)) {
      for (const bits of [0x10, 0x20, 0x30]) {
        const packet = packetOf(hex)
        packet[0] = packet[0]! | bits
        assert.isFalse(new PacketHeader().read(packet, 0, packet.length))
      }
    }
  })

  it("of LOST with epoch bits are refused", () => {
    for (let bits = 1; bits <= 15; bits++) {
      const packet = packetOf(layouts.lost)
      packet[0] = packet[0]! | bits
      assert.isFalse(new PacketHeader().read(packet, 0, packet.length))
    }
  })

  it("with a number of 2^53 or more are refused", () => {
    for (const hex of [layouts.long, layouts.answer]) {
      const header = new PacketHeader()
      const withNumber = (digits: string): Uint8Array => packetOf(hex.replace("001f123456789abc", digits))
      const largest = withNumber("001fffffffffffff")
      assert.isTrue(header.read(largest, 0, largest.length))
      assert.strictEqual(header.number, 2 ** 53 - 1)
      for (const digits of ["0020000000000000", "0020000000000001", "ffffffffffffffff"]) {
        const packet = withNumber(digits)
        assert.isFalse(header.read(packet, 0, packet.length), digits)
      }
    }
  })

  it("of one reply run after another each tell their own", () => {
    const header = new PacketHeader()
    const out = new Uint8Array(64)
    for (const id of [1n, 1n, 0n, 1n << 32n, 2n ** 64n - 1n, 1n]) {
      const end = writeAnswerHeader(out, 0, 1, keyId, runPrefix, id, 3)
      assert.isTrue(header.read(out, 0, end + tagLength))
      assert.strictEqual(header.replyRun, id)
    }
  })

  it.prop(
    "of any bytes are read or refused, never thrown at",
    [Schema.Uint8Array],
    ([bytes]) => {
      assert.isBoolean(new PacketHeader().read(bytes, 0, bytes.length))
    },
    { arbitrary: { runs: 500, size: 60 } }
  )

  it.prop("round trip", [Id64Field, Id64Field, Uint32Field, NumberField], ([run, reply, key, n]) => {
    const out = new Uint8Array(64)
    const header = new PacketHeader()
    assert.isTrue(header.read(out, 0, writeLongHeader(out, 0, 0, key, run, n) + tagLength))
    assert.deepStrictEqual([header.run, header.keyId, header.runPrefix, header.number], [run, key, runPrefixOf(run), n])
    assert.isTrue(header.read(out, 0, writeAnswerHeader(out, 0, 1, key, runPrefixOf(run), reply, n) + tagLength))
    assert.deepStrictEqual([header.replyRun, header.runPrefix, header.number], [reply, runPrefixOf(run), n])
  })
})

describe("epoch bits", () => {
  it("are 0 for epoch 0 only, and cycle through 1 to 15", () => {
    const table = [
      [0, 0],
      [1, 1],
      [2, 2],
      [15, 15],
      [16, 1],
      [30, 15],
      [31, 1],
      [2 ** 32 - 1, 15]
    ] as const
    for (const [epoch, bits] of table) assert.strictEqual(epochBitsOf(epoch), bits, `epoch ${epoch}`)
  })
})

/** The slow twin of spec §3.6: among all numbers with these low bits, the nearest; of two equally near, the higher. */
const nearest = (truncated: number, largest: number): number => {
  const block = BigInt(Math.max(largest, 0)) >> 24n
  const candidates = [block - 1n, block, block + 1n]
    .map((high) => (high << 24n) + BigInt(truncated))
    .filter((candidate) => candidate >= 0n && candidate < 2n ** 53n)
  const distance = (candidate: bigint): bigint =>
    candidate > BigInt(largest) ? candidate - BigInt(largest) : BigInt(largest) - candidate
  return Number(candidates.reduce((best, candidate) => (distance(candidate) <= distance(best) ? candidate : best)))
}

describe("short packet numbers", () => {
  it("expand to the nearest number at every edge", () => {
    const table: ReadonlyArray<readonly [largest: number, truncated: number, expanded: number]> = [
      [-1, 0, 0],
      [-1, 0xffffff, 0xffffff],
      [0, 0x800000, 0x800000],
      [0, 0xffffff, 0xffffff],
      [0xffffff, 0x000000, 0x1000000],
      [0x1000000, 0xffffff, 0xffffff],
      [0x1000000, 0x7fffff, 0x17fffff],
      [0x1000000, 0x800000, 0x1800000],
      [0x1000000, 0x800001, 0x800001],
      [0x17fffff, 0x000000, 0x1000000],
      [0x1800000, 0x000000, 0x2000000],
      [0x1800000, 0x000001, 0x1000001],
      // RFC 9000 §A.3, with 24 bits in place of 16: 0xa82f9b32 after 0xa82f30ea.
      [0xa82f30ea, 0x2f9b32, 0xa82f9b32],
      [0xa8ffffff, 0x000000, 0xa9000000],
      [0xa9000000, 0xffffff, 0xa8ffffff],
      [2 ** 53 - 1, 0xffffff, 2 ** 53 - 1],
      [2 ** 53 - 1, 0x000000, 2 ** 53 - 2 ** 24],
      [2 ** 53 - 2 ** 24, 0xffffff, 2 ** 53 - 2 ** 24 - 1],
      [2 ** 53 - 2 ** 24 - 1, 0x000000, 2 ** 53 - 2 ** 24]
    ]
    for (const [largest, truncated, expanded] of table) {
      assert.strictEqual(expandPacketNumber(truncated, largest), expanded, `${truncated} after ${largest}`)
      assert.strictEqual(nearest(truncated, largest), expanded)
    }
  })

  it.prop(
    "expand as the slow twin says",
    [
      Schema.Int.check(Schema.isBetween({ minimum: -1, maximum: 2 ** 53 - 1 })),
      Arbitrary.map(Arbitrary.schema(Uint32Field), (value) => value % 2 ** 24)
    ],
    ([largest, truncated]) => {
      assert.strictEqual(expandPacketNumber(truncated, largest), nearest(truncated, largest))
    },
    { arbitrary: { runs: 500 } }
  )

  it("come back exact within half the space of the largest", () => {
    const out = new Uint8Array(64)
    const header = new PacketHeader()
    for (const largest of [2 ** 24, 2 ** 32 + 5, 2 ** 50 + 2 ** 23]) {
      for (const distance of [-(2 ** 23) + 1, -65_536, -1, 0, 1, 65_536, 2 ** 23]) {
        const end = writeShortHeader(out, 0, 1, keyId, runPrefix, largest + distance)
        assert.isTrue(header.read(out, 0, end + tagLength))
        assert.strictEqual(expandPacketNumber(header.number, largest), largest + distance)
      }
    }
  })
})

import { assert, describe, it } from "@effect/vitest"
import { encodeFrame, type Life, longestRecord, RecordsReader } from "@pure-link/wire"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import { content } from "../test/scriptedPeer.ts"
import { Assembly } from "./assembly.ts"
import { Chunk } from "./chunk.ts"
import { Verdict } from "./verdict.ts"
import { ByteRanges } from "./byteRanges.ts"
import { MemoryShare, ReceiverMemory } from "./memory.ts"

const mebibyte = 1_048_576
const limit = 16 * mebibyte
const lifeA: Life = { life: 0xan, first: 1 }
const onlyA = [lifeA]

/** The assembly of a stream with this limit, in a receiver of this total. */
const assemblyOf = (perStream: number, n = 0, life = 0n, memory = new ReceiverMemory(perStream, 8 * limit)): Assembly =>
  new Assembly(n, life, new MemoryShare(memory))

const keep = (
  assembly: Assembly,
  number: number,
  offset: number,
  bytes: Uint8Array,
  ends: boolean,
  lives = onlyA
): Verdict => assembly.keepPart(lives, number, offset, bytes, 0, bytes.length, ends)

const wholes = (assembly: Assembly, first: number, parts: ReadonlyArray<Uint8Array>, lives = onlyA): Verdict => {
  const out = new Uint8Array(70_000)
  const end = encodeFrame({ _tag: "Records", firstDelta: first, partOffset: 0, endsRecord: true, parts }, out, 0)
  const reader = new RecordsReader()
  reader.read(out, 0, end)
  return assembly.keep(lives, first, reader, out)
}

/** Takes and stores everything that is complete; the records in order. */
const storeAll = (assembly: Assembly, mostBytes = 4 * mebibyte): ReadonlyArray<Uint8Array> => {
  const records: Array<Uint8Array> = []
  for (let cut = assembly.batch(mostBytes); cut !== undefined; cut = assembly.batch(mostBytes)) {
    assert.strictEqual(cut.batch.first, assembly.n + 1)
    let start = 0
    for (const size of cut.batch.sizes) records.push(cut.batch.bytes.slice(start, (start += size)))
    assembly.advance(assembly.n + cut.batch.sizes.length, cut.lives.at(-1)!.life)
  }
  return records
}

const sizesOfScript = Arbitrary.schema(Schema.Array(Schema.Literals([0, 1, 61, 255, 256, 1_013, 5_000, 70_000])))
const orders = Arbitrary.schema(Schema.Array(Schema.Natural))

describe("assembly", () => {
  it.prop(
    "gives back every record once and in order, whatever parts come in whatever order, twice or stored between",
    [sizesOfScript, orders],
    ([sizes, order]) => {
      const memory = new ReceiverMemory(limit, 8 * limit)
      const assembly = assemblyOf(limit, 0, 0n, memory)
      const records = sizes.map((size, i) => content(i + 1, size))
      let parts = records.flatMap((bytes, i) => {
        const cuts: Array<{ number: number; offset: number; bytes: Uint8Array; ends: boolean }> = []
        const step = 1 + ((order[i % Math.max(1, order.length)] ?? 0) % 1_400)
        for (let offset = 0; offset === 0 || offset < bytes.length; offset += Math.max(step, (bytes.length / 40) | 0)) {
          const end = Math.min(bytes.length, offset + Math.max(step, (bytes.length / 40) | 0))
          cuts.push({ number: i + 1, offset, bytes: bytes.slice(offset, end), ends: end === bytes.length })
        }
        return cuts
      })
      for (const [i, swap] of order.entries()) {
        if (parts.length === 0) break
        const from = (i * 7) % parts.length
        const to = swap % parts.length
        const moved = parts[from]!
        parts[from] = parts[to]!
        parts[to] = moved
      }
      parts = [...parts, ...parts.slice(0, 5)]
      const stored: Array<Uint8Array> = []
      const held = new Map<number, number>()
      for (const [i, part] of parts.entries()) {
        assert.strictEqual(keep(assembly, part.number, part.offset, part.bytes, part.ends), Verdict.kept)
        if (part.number > assembly.n) {
          held.set(part.number, Math.max(held.get(part.number) ?? 0, part.offset + part.bytes.length))
        }
        if (i % 5 === 4) stored.push(...storeAll(assembly, 2_000))
        for (const number of held.keys()) if (number <= assembly.n) held.delete(number)
        // The reference: held bytes are the sum of the extents of what is not stored.
        assert.strictEqual(
          assembly.heldBytes,
          [...held.values()].reduce((sum, extent) => sum + extent, 0)
        )
        assert.strictEqual(memory.used, assembly.heldBytes)
        assert.isAtLeast(memory.allocated, memory.used)
      }
      stored.push(...storeAll(assembly, 2_000))
      assert.deepStrictEqual(stored, records)
      assert.strictEqual(assembly.heldBytes, 0)
      assert.deepStrictEqual([memory.used, memory.allocated], [0, 0])
      assert.isFalse(assembly.isHolding)
    },
    { arbitrary: { runs: 80, seed: 5 } }
  )

  it("appends frames of whole records in order without holding anything ahead", () => {
    const assembly = assemblyOf(limit)
    const records = Array.from({ length: 96 }, (_, i) => content(i + 1, 61))
    for (let i = 0; i < 96; i += 32) assert.strictEqual(wholes(assembly, i + 1, records.slice(i, i + 32)), Verdict.kept)
    assert.strictEqual(assembly.complete, 96)
    assert.deepStrictEqual(storeAll(assembly), records)
  })

  it("joins a record over the frames that carry its parts in order", () => {
    const assembly = assemblyOf(limit)
    const record = content(1, 3_000)
    const out = new Uint8Array(4_000)
    for (const [offset, end] of [
      [0, 1_000],
      [1_000, 2_000],
      [2_000, 3_000]
    ] as const) {
      const parts = end === 3_000 ? [record.slice(offset), content(2, 10)] : [record.slice(offset, end)]
      const frame = { firstDelta: 0, partOffset: offset, endsRecord: end === 3_000, parts }
      const reader = new RecordsReader()
      reader.read(out, 0, encodeFrame({ _tag: "Records", ...frame }, out, 0))
      assert.strictEqual(assembly.keep(onlyA, 1, reader, out), Verdict.kept)
    }
    assert.deepStrictEqual(storeAll(assembly), [record, content(2, 10)])
  })

  it("stores an empty record between others", () => {
    const assembly = assemblyOf(limit)
    assert.strictEqual(wholes(assembly, 1, [content(1, 5), new Uint8Array(0), content(3, 5)]), Verdict.kept)
    assert.strictEqual(keep(assembly, 5, 0, new Uint8Array(0), true), Verdict.kept)
    assert.strictEqual(keep(assembly, 4, 0, new Uint8Array(0), true), Verdict.kept)
    assert.deepStrictEqual(
      storeAll(assembly).map((record) => record.length),
      [5, 0, 5, 0, 0]
    )
  })

  it("takes a record of 16 MiB in order, and one whose parts come last first", () => {
    for (const backwards of [false, true]) {
      const assembly = assemblyOf(limit)
      const record = content(1, longestRecord)
      const parts = Array.from({ length: Math.ceil(longestRecord / 60_000) }, (_, i) => i * 60_000)
      for (const offset of backwards ? parts.reverse() : parts) {
        const bytes = record.subarray(offset, offset + 60_000)
        const ends = offset + bytes.length === longestRecord
        assert.strictEqual(keep(assembly, 1, offset, bytes, ends), Verdict.kept)
      }
      const [stored] = storeAll(assembly)
      assert.strictEqual(Buffer.compare(stored!, record), 0)
    }
  })

  it("cuts batches at the bound, and never within a record", () => {
    const assembly = assemblyOf(limit)
    wholes(assembly, 1, [content(1, 600), content(2, 600), content(3, 600)])
    assert.deepStrictEqual([...assembly.batch(1_200)!.batch.sizes], [600, 600])
    assert.deepStrictEqual([...assembly.batch(100)!.batch.sizes], [600])
  })

  it("cuts one batch where many came at the same pace before", () => {
    const assembly = assemblyOf(limit)
    let batches = 0
    for (let round = 0; round < 4; round++) {
      for (let i = 0; i < 64; i++) wholes(assembly, 1 + 64 * round + i, [content(i, 1_013)])
      batches = 0
      for (let cut = assembly.batch(limit); cut !== undefined; cut = assembly.batch(limit)) {
        assembly.advance(assembly.n + cut.batch.sizes.length, 0xan)
        batches += 1
      }
    }
    assert.strictEqual(batches, 1)
  })

  it("does not change the bytes of a batch that was handed over", () => {
    const assembly = assemblyOf(limit)
    wholes(assembly, 1, [content(1, 600)])
    const { batch } = assembly.batch(limit)!
    for (let number = 2; number < 40; number++) wholes(assembly, number, [content(number, 600)])
    assert.deepStrictEqual(batch.bytes.slice(), content(1, 600))
  })

  it("refuses bytes beyond the known end and a second end, and changes nothing held", () => {
    const assembly = assemblyOf(limit)
    keep(assembly, 2, 50, content(2, 50), true)
    assert.strictEqual(keep(assembly, 2, 60, content(9, 41), false), Verdict.contradiction)
    assert.strictEqual(keep(assembly, 2, 0, content(9, 90), true), Verdict.contradiction)
    keep(assembly, 3, 50, content(3, 50), false)
    assert.strictEqual(keep(assembly, 3, 0, content(9, 99), true), Verdict.contradiction)
    assert.strictEqual(assembly.heldBytes, 200)
    wholes(assembly, 1, [content(1, 10)])
    assert.strictEqual(keep(assembly, 1, 0, content(1, 11), false), Verdict.contradiction)
    assert.strictEqual(keep(assembly, 1, 0, content(1, 9), true), Verdict.contradiction)
    assert.strictEqual(keep(assembly, 1, 0, content(1, 10), true), Verdict.kept)
  })

  it("keeps parts under the life they came with, and no other", () => {
    const assembly = assemblyOf(limit)
    const livesB = [{ life: 0xbn, first: 1 }]
    keep(assembly, 1, 0, content(1, 5), false)
    assert.strictEqual(keep(assembly, 1, 5, content(1, 5), true, livesB), Verdict.otherLife)
    keep(assembly, 2, 5, content(1, 5), false)
    assert.strictEqual(keep(assembly, 2, 0, content(1, 5), false, livesB), Verdict.otherLife)
    keep(assembly, 1, 5, content(1, 5), true)
    assert.strictEqual(keep(assembly, 1, 0, content(1, 5), false, livesB), Verdict.otherLife)
    assert.strictEqual(keep(assembly, 9, 0, content(1, 5), false, []), Verdict.otherLife)
  })

  it("drops a record held ahead whose life cannot follow once it is next", () => {
    const assembly = assemblyOf(limit)
    assert.strictEqual(keep(assembly, 2, 0, content(2, 5), true, [{ life: 0xbn, first: 1 }]), Verdict.kept)
    assert.strictEqual(keep(assembly, 1, 0, content(1, 5), true), Verdict.kept)
    assert.isTrue(assembly.droppedHeld)
    assert.strictEqual(assembly.complete, 1)
    assert.strictEqual(assembly.heldBytes, 5)
  })

  it("names the lives of a batch, each with its first number", () => {
    const assembly = assemblyOf(limit)
    const lives = [lifeA, { life: 0xbn, first: 3 }]
    wholes(
      assembly,
      1,
      [1, 2, 3, 4].map((number) => content(number, 5)),
      lives
    )
    assert.deepStrictEqual(assembly.batch(10)!.lives, [lifeA])
    assert.deepStrictEqual(assembly.batch(limit)!.lives, lives)
    assembly.advance(2, 0xan)
    assert.deepStrictEqual(assembly.batch(limit)!.lives, [lives[1]!])
  })

  it("keeps nothing beyond 65,536 records past n", () => {
    const assembly = assemblyOf(limit, 10, 0xan)
    assert.strictEqual(keep(assembly, 10 + 65_536, 0, content(1, 1), true), Verdict.kept)
    assert.strictEqual(keep(assembly, 10 + 65_537, 0, content(1, 1), true), Verdict.noRoom)
  })

  it("always has room for record n+1, and for nothing beyond it once its size takes all", () => {
    const assembly = assemblyOf(mebibyte)
    assert.strictEqual(keep(assembly, 1, longestRecord - 10, content(1, 10), true), Verdict.kept)
    assert.strictEqual(assembly.heldBytes, longestRecord)
    assert.strictEqual(keep(assembly, 2, 0, content(2, 1), true), Verdict.noRoom)
    assert.strictEqual(keep(assembly, 1, 0, content(1, 10), false), Verdict.kept)
  })

  it("gives the record after complete ones no more than the limit, so that a store that hangs bounds memory", () => {
    const assembly = assemblyOf(mebibyte)
    let number = 1
    while (keep(assembly, number, 0, content(1, 60_000), true) === Verdict.kept) number += 1
    assert.isAtMost(assembly.heldBytes, mebibyte)
    assert.isAbove(assembly.heldBytes, mebibyte - 60_000)
    assembly.advance(1, 0xan)
    assert.strictEqual(keep(assembly, number, 0, content(1, 60_000), true), Verdict.kept)
  })

  it("does not let a small head keep the large buffer of what was stored before it", () => {
    const memory = new ReceiverMemory(limit, 8 * limit)
    const assembly = assemblyOf(limit, 0, 0n, memory)
    for (let offset = 0; offset < 9 * mebibyte; offset += 65_536) {
      keep(assembly, 1, offset, content(1, 65_536), offset + 65_536 === 9 * mebibyte)
    }
    keep(assembly, 2, 0, content(2, 10), false)
    assert.isAbove(memory.allocated, 9 * mebibyte)
    assert.strictEqual(storeAll(assembly).length, 1)
    assert.isAtMost(memory.allocated, 4 * mebibyte)
    keep(assembly, 2, 10, content(2, 10), true)
    assert.deepStrictEqual(storeAll(assembly), [Uint8Array.of(...content(2, 10), ...content(2, 10))])
    assert.strictEqual(memory.allocated, 0)
  })

  it("holds what an honest sender may send within the credit, to the byte", () => {
    const assembly = assemblyOf(100_000)
    for (let number = 10; number >= 1; number--) {
      assert.strictEqual(keep(assembly, number, 0, content(number, 10_000), true), Verdict.kept, `${number}`)
    }
    assert.strictEqual(assembly.heldBytes, 100_000)
  })

  it("is not led beyond limit and one record by gapped parts of many large records, newest first", () => {
    const assembly = assemblyOf(limit)
    let highest = 0
    for (let number = 60; number >= 1; number--) {
      for (const offset of [longestRecord - 1, 8 * mebibyte, 5, 1]) {
        keep(assembly, number, offset, content(1, 1), offset === longestRecord - 1)
        highest = Math.max(highest, assembly.heldBytes)
      }
    }
    assert.isAtMost(highest, limit + longestRecord)
  })

  it("bounds the ranges of hostile gaps, and so what one more part costs", () => {
    const assembly = assemblyOf(limit)
    const byte = content(1, 1)
    let refused = 0
    for (let offset = 2 * 100_000; offset > 0; offset -= 2) {
      if (keep(assembly, 1, offset, byte, false) === Verdict.noRoom) refused += 1
    }
    assert.strictEqual(refused, 100_000 - 16_385)
    assert.strictEqual(keep(assembly, 1, 200_001, byte, false), Verdict.kept, "what touches a range adds none")
  })

  it("skips what the inbox stored meanwhile, and continues with what is held beyond", () => {
    const assembly = assemblyOf(limit)
    keep(assembly, 1, 0, content(1, 5), false)
    keep(assembly, 3, 0, content(3, 5), true)
    keep(assembly, 5, 0, content(5, 5), true)
    assembly.advance(4, 0xan)
    assert.strictEqual(assembly.complete, 5)
    assert.strictEqual(assembly.heldBytes, 5)
    assert.deepStrictEqual(storeAll(assembly), [content(5, 5)])
  })

  it("holds nothing after a reset", () => {
    const assembly = assemblyOf(limit)
    wholes(assembly, 1, [content(1, 5)])
    keep(assembly, 2, 3, content(1, 5), false)
    keep(assembly, 4, 3, content(1, 5), false)
    assembly.reset(7, 0xan)
    assert.strictEqual(assembly.heldBytes, 0)
    assert.isFalse(assembly.isHolding)
    assert.strictEqual(wholes(assembly, 8, [content(8, 5)]), Verdict.kept)
    assert.deepStrictEqual(storeAll(assembly), [content(8, 5)])
  })
})

describe("a chunk that is never empty", () => {
  it("keeps sizes and lives of what is not stored only, and those of the batch under way as they are", () => {
    const chunk = new Chunk(1, new Uint8Array(20_000), new Uint32Array(16))
    const lifeOfRecord = (number: number): Life => ({ life: BigInt(1 + Math.floor(number / 50)), first: 1 })
    let appended = 0
    const append = () => chunk.append(++appended % 3, lifeOfRecord(appended))
    for (let i = 0; i < 20; i++) append()
    while (appended < 10_000) {
      const { batch, lives } = chunk.batch(1_000)
      const { first } = batch
      const last = first + batch.sizes.length - 1
      assert.deepStrictEqual(
        lives.map(({ life }) => life),
        [...new Set([lifeOfRecord(first).life, lifeOfRecord(last).life])]
      )
      for (let i = 0; i < 20; i++) append()
      assert.deepStrictEqual(
        [...batch.sizes],
        Array.from(batch.sizes, (_, i) => (first + i) % 3)
      )
      chunk.release(last)
      assert.strictEqual(chunk.sizeOf(appended), appended % 3)
      assert.strictEqual(chunk.lifeOf(last + 1).life, lifeOfRecord(last + 1).life)
      assert.isAtMost(chunk.spareSizes.length, 64)
    }
  })
})

describe("byte ranges", () => {
  it.prop(
    "equal a set of bytes",
    [Arbitrary.schema(Schema.Array(Schema.Struct({ low: Schema.Natural, length: Schema.Literals([1, 2, 3, 9, 30]) })))],
    ([adds]) => {
      const ranges = new ByteRanges()
      const bytes = new Set<number>()
      for (const add of adds) {
        const low = add.low % 120
        const high = low + add.length
        const touches = [...bytes].some((byte) => byte >= low - 1 && byte <= high)
        assert.strictEqual(ranges.splits(low, high), !touches)
        let isCovered = true
        for (let byte = low; byte < high; byte++) if (!bytes.has(byte)) isCovered = false
        assert.strictEqual(ranges.covers(low, high), isCovered)
        ranges.add(low, high)
        for (let byte = low; byte < high; byte++) bytes.add(byte)
        const runs = [...bytes].filter((byte) => !bytes.has(byte - 1)).length
        assert.strictEqual(ranges.count, runs)
        const end = Math.max(...bytes) + 1
        assert.strictEqual(ranges.isWhole(end), bytes.size === end)
      }
    },
    { arbitrary: { runs: 200, seed: 3 } }
  )
})

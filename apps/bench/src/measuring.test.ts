/**
 * What a measurement is made of: what the pattern checker notices, what the verdict says, what is counted when, and what
 * the floor's framing carries.
 */
import { assert, describe, it } from "@effect/vitest"
import { keyIdOf, nodeSuite } from "@pure-link/keys"
import { Kind, PacketHeader } from "@pure-link/wire"
import { allocated } from "./allocationWatch.ts"
import { perPacket } from "./commands/allocations.ts"
import { Packer, tableOffset, Unpacker } from "./floor/framing.ts"
import { datagramBytes } from "./floor/floor.ts"
import { Garbage, garbagePerTrain, garbageStride } from "./garbage.ts"
import { Arrivals } from "./goodput.ts"
import { senderIdentity } from "./identities.ts"
import { Latencies } from "./latencies.ts"
import { Meter } from "./meter.ts"
import { figures } from "./pairRun.ts"
import { Pattern, RecordCheck, sentAtOf } from "./pattern.ts"
import { measured, noWork } from "./sample.ts"
import { judgeFloor, median, percentile } from "./verdict.ts"

/** Checks records 1 to `count` of a pattern after a change of the bytes. */
const badAfter = (size: number, change: (bytes: Uint8Array, sizes: Uint32Array) => void, from = 1): number => {
  const pattern = new Pattern(size)
  const count = Math.min(pattern.period, 200)
  const bytes = pattern.bytes.slice(0, count * size)
  const sizes = new Uint32Array(count).fill(size)
  change(bytes, sizes)
  const check = new RecordCheck("every")
  check.batch(bytes, 0, sizes, 0, count, from)
  return check.bad
}

describe("the pattern", () => {
  it("of every size passes as it is, round after round", () => {
    for (const size of [0, 1, 3, 4, 11, 12, 13, 61, 1_013, 16_384, 300_000]) {
      const pattern = new Pattern(size)
      for (const strictness of ["every", "sampled"] as const) {
        const check = new RecordCheck(strictness)
        for (let round = 0; round < 3; round++) {
          const first = round * pattern.period + 1
          check.batch(pattern.bytes, 0, pattern.sizes, 0, pattern.period, first)
        }
        assert.strictEqual(check.bad, 0, `${size} B, ${strictness}`)
        assert.strictEqual(check.records, 3 * pattern.period)
        assert.strictEqual(check.bytes, 3 * pattern.bytes.length)
      }
    }
  })

  it("notices one changed byte, wherever it is, but in the send time", () => {
    for (const at of [0, 3, 12, 30, 60]) {
      assert.strictEqual(
        badAfter(61, (bytes) => (bytes[61 * 7 + at]! ^= 1)),
        1,
        `byte ${at}`
      )
    }
    assert.strictEqual(
      badAfter(61, (bytes) => (bytes[61 * 7 + 5]! ^= 1)),
      0
    )
  })

  it("notices two records that changed places, a record of another length, and one that was left out", () => {
    const swapped = badAfter(61, (bytes) => {
      const third = bytes.slice(61 * 3, 61 * 4)
      bytes.copyWithin(61 * 3, 61 * 4, 61 * 5)
      bytes.set(third, 61 * 4)
    })
    assert.strictEqual(swapped, 2)
    assert.isAbove(
      badAfter(61, (_, sizes) => {
        sizes[5] = 60
        sizes[6] = 62
      }),
      0
    )
    const pattern = new Pattern(61)
    const check = new RecordCheck("sampled")
    check.batch(pattern.bytes, 0, pattern.sizes, 0, 10, 1)
    check.batch(pattern.bytes, 61 * 11, pattern.sizes, 0, 10, 12)
    assert.strictEqual(check.bad, 1)
  })

  it("notices records that come twice, and takes another outbox for a new beginning", () => {
    const pattern = new Pattern(61)
    const check = new RecordCheck("sampled")
    for (const first of [1, 11, 11, 1]) check.batch(pattern.bytes, (first - 1) * 61, pattern.sizes, 0, 10, first)
    assert.strictEqual(check.bad, 1)
  })

  it("sampled still notices a wrong index, end and length in every record", () => {
    const pattern = new Pattern(61)
    for (const at of [0, 60]) {
      const bytes = pattern.bytes.slice(0, 61 * 100)
      for (let record = 0; record < 100; record++) bytes[record * 61 + at]! ^= 0x80
      const check = new RecordCheck("sampled")
      check.batch(bytes, 0, pattern.sizes, 0, 100, 1)
      assert.strictEqual(check.bad, 100)
    }
  })

  it("carries a send time that the check does not mind", () => {
    const pattern = new Pattern(200)
    const record = pattern.stamped(3, 1_234.5)
    assert.strictEqual(sentAtOf(new DataView(record.buffer), 0, 200), 1_234.5)
    const check = new RecordCheck("every", pattern)
    check.batch(pattern.bytes, 0, pattern.sizes, 0, 2, 1)
    check.batch(record, 0, Uint32Array.of(200), 0, 1, 3)
    assert.strictEqual(check.bad, 0)
  })
})

describe("a verdict", () => {
  it("takes the median of the ratios pair by pair, not the ratio of medians", () => {
    const { counts, ratio_to_floor, ratios } = judgeFloor(1_013, [2, 6, 3], [2, 3, 1], 0)
    assert.deepStrictEqual(ratios, [1, 2, 3])
    assert.strictEqual(ratio_to_floor, 2)
    assert.isTrue(counts)
  })

  it("does not count when the floor is more than 1.7 times the guide's", () => {
    assert.isTrue(judgeFloor(61, [0.3], [0.137 * 1.69], 0).counts)
    const slow = judgeFloor(61, [0.3], [0.137 * 1.71], 0)
    assert.isFalse(slow.counts)
    assert.match(slow.why!, /1\.71 times/)
  })

  it("does not count with bad records, and has no guide for another size", () => {
    assert.isFalse(judgeFloor(61, [0.2], [0.137], 1).counts)
    const { counts, guide_us_per_record } = judgeFloor(500, [9], [9], 0)
    assert.isTrue(counts)
    assert.isNull(guide_us_per_record)
  })

  it("knows medians and percentiles", () => {
    assert.strictEqual(median([5, 1, 3]), 3)
    assert.strictEqual(median([4, 1, 3, 2]), 2.5)
    assert.isNaN(median([]))
    const sorted = Float64Array.from({ length: 100 }, (_, i) => i + 1)
    assert.deepStrictEqual(
      [0.5, 0.99, 1].map((fraction) => percentile(sorted, fraction)),
      [50, 99, 100]
    )
    const latencies = new Latencies()
    for (let millis = 2_000; millis >= 1; millis--) latencies.add(millis)
    assert.deepStrictEqual(latencies.summary, { p50_ms: 1_000, p99_ms: 1_980, max_ms: 2_000 })
  })
})

describe("a measurement", () => {
  const sample = (at: number, records: number, sent: number, micros: number) => ({
    ...noWork,
    at,
    records,
    datagramsSent: sent,
    datagramsReceived: sent,
    sendCalls: sent / 10,
    userMicros: micros,
    systemMicros: micros / 2,
    preemptions: 0
  })

  it("is the difference of two samples", () => {
    const end = measured(sample(1_000, 100, 50, 10), sample(3_000, 1_100, 250, 2_010))
    assert.strictEqual(end.records_per_s, 500)
    assert.strictEqual(end.cpu_us_per_record, 3)
    assert.strictEqual(end.per_send_call, 10)
    assert.isNull(end.per_receive_call)
    assert.strictEqual(end.busy, 0.002)
  })

  it("opens after the warm-up, when enough went through, and closes after its records", () => {
    const closed: Array<number> = []
    let records = 0
    const meter = new Meter({ warmUpSeconds: 0, warmUpRecords: 100, count: 50 }, () => ({ ...noWork, records }), {
      closed: (measurement) => closed.push(measurement.records)
    })
    for (records = 0; records <= 200; records += 10) meter.tick(records)
    assert.deepStrictEqual(closed, [50])
  })

  it("adds up both ends", () => {
    const end = measured(sample(0, 0, 0, 0), sample(1_000, 1_000, 500, 2_000))
    const both = figures(end, end, 0)
    assert.strictEqual(both.cpu_us_per_record, 6)
    assert.strictEqual(both.cpu_us_per_packet, 12)
  })

  it("of allocations adds up what grew between collections", () => {
    const heap = (used: number) => ({ usedHeapSize: used, externalMemory: used / 2 })
    const pauses = [
      { before: heap(500), after: heap(200) },
      { before: heap(900), after: heap(100) }
    ]
    const allocation = allocated(heap(100), pauses, heap(300))
    assert.deepStrictEqual(allocation, { heap_bytes: 400 + 700 + 200, external_bytes: 650, collections: 2 })
    assert.strictEqual(perPacket(allocation, 13).heap_bytes_per_packet, 100)
  })
})

describe("goodput", () => {
  it("is told over the whole time, after the first seconds, and second by second", () => {
    const arrivals = new Arrivals(2)
    for (let millis = 10_000; millis <= 14_000; millis += 500) arrivals.add(millis, 10, 125_000)
    assert.deepStrictEqual(arrivals.whole, { messages: 90, bytes: 1_125_000, seconds: 4, mbit_s: 2.25 })
    assert.deepStrictEqual(arrivals.afterSkip, { messages: 50, bytes: 625_000, seconds: 2, mbit_s: 2.5 })
    assert.deepStrictEqual(
      arrivals.series.map(({ messages }) => messages),
      [20, 20, 20, 20, 10]
    )
  })

  it("of nothing is nothing", () => {
    const arrivals = new Arrivals(2)
    assert.strictEqual(arrivals.whole.mbit_s, 0)
    assert.isUndefined(arrivals.afterSkip)
  })
})

describe("the floor's framing", () => {
  /** Sends packets of a pattern through and checks what comes out. */
  const through = (
    size: number,
    packets: number,
    spoil: (slab: Uint8Array, packet: number) => boolean = () => true
  ) => {
    const packer = new Packer(new Pattern(size))
    const check = new RecordCheck("every")
    const unpacker = new Unpacker(65_536, (bytes, sizes, count, first) => {
      check.batch(bytes, 0, sizes, 0, count, first)
    })
    const slab = new Uint8Array(datagramBytes)
    const source = Buffer.from(slab.buffer)
    for (let packet = 0; packet < packets; packet++) {
      packer.pack(slab, 0)
      if (spoil(slab, packet)) unpacker.unpack(slab, source, 0)
    }
    unpacker.flush()
    return { bad: check.bad + unpacker.breaks, whole: check.records, packed: packer.record - 1, unpacker }
  }

  it("carries records of every size, whole", () => {
    for (const size of [1, 2, 61, 700, 1_013, 1_407, 1_412, 1_413, 16_384, 300_000]) {
      const { bad, packed, unpacker, whole } = through(size, 1_000)
      assert.strictEqual(bad, 0, `${size} B`)
      assert.strictEqual(whole, packed, `${size} B`)
      assert.strictEqual(unpacker.records, packed)
      assert.isAbove(whole, 0)
    }
  })

  it("notices a packet that is missing and a byte that is another", () => {
    assert.isAbove(through(1_013, 100, (_, packet) => packet !== 50).bad, 0)
    const spoilt = through(61, 100, (slab, packet) => {
      if (packet === 50) for (let at = 200; at < 212; at++) slab[tableOffset + at]! ^= 1
      return true
    })
    assert.isAbove(spoilt.bad, 0)
  })
})

describe("garbage", () => {
  it("claims what its kind says", () => {
    const garbage = new Garbage(0x1234_5678)
    const keyId = keyIdOf(nodeSuite, senderIdentity.publicKey)
    const header = new PacketHeader()
    const seen = (kind: "unknown-key" | "known-key" | "new-run" | "live-run") => {
      garbage.fill(kind)
      for (let i = 0; i < garbagePerTrain; i++) {
        const start = i * garbageStride
        assert.isTrue(header.read(garbage.slab, start, start + garbage.lengths[i]!), kind)
        assert.strictEqual(header.keyId === keyId, kind !== "unknown-key", kind)
        assert.strictEqual(header.kind, kind === "new-run" ? Kind.longData : Kind.shortData, kind)
        assert.strictEqual(header.runPrefix === 0x1234_5678, kind === "live-run", kind)
      }
    }
    for (const kind of ["unknown-key", "known-key", "new-run", "live-run"] as const) seen(kind)
    garbage.fill("noise")
    assert.isAbove(new Set(garbage.lengths).size, 20)
  })
})

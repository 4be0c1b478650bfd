import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { PacketHeader, writeShortHeader } from "../header.ts"
import { largestDatagram, partsInFrame, tagLength } from "../limits.ts"
import {
  decodeFrame,
  encodeFrame,
  FrameCursor,
  FrameType,
  PartFrame,
  partFrameOverhead,
  RecordsFrame,
  recordsFrameOverhead,
  RecordsReader,
  validateBody,
  writePadding,
  writePartHeader,
  writeRecordsHeader
} from "./index.ts"

const out = new Uint8Array(2 ** 21)
const reader = new RecordsReader()

/** The parts that the reader sees, as they lie in the packet. */
const partsOf = (bytes: Uint8Array): ReadonlyArray<Uint8Array> => {
  const parts: Array<Uint8Array> = []
  for (let i = 0, at = reader.dataStart; i < reader.count; at += reader.length(i++)) {
    parts.push(bytes.slice(at, at + reader.length(i)))
  }
  return parts
}

describe("the records reader", () => {
  it.prop("reads RECORDS in place as the object form says", [RecordsFrame], ([frame]) => {
    reader.read(out, 6, encodeFrame(frame, out, 6))
    const { firstDelta, partOffset, endsRecord, parts } = frame
    assert.deepStrictEqual([reader.firstDelta, reader.offset, reader.endsRecord], [firstDelta, partOffset, endsRecord])
    assert.deepStrictEqual(
      partsOf(out),
      parts.map((part) => part.slice())
    )
    const lengths = new Uint32Array(40).fill(9)
    const sum = reader.copyLengths(lengths, 3, parts.length)
    assert.deepStrictEqual([...lengths.subarray(2, 4 + parts.length)], [9, ...parts.map((part) => part.length), 9])
    assert.deepStrictEqual([sum, reader.total], [sum, sum])
    assert.strictEqual(
      sum,
      parts.reduce((total, part) => total + part.length, 0)
    )
  })

  it.prop("reads PART in place as RECORDS of one part", [PartFrame, RecordsFrame], ([part, records]) => {
    reader.read(out, 0, encodeFrame(records, out, 0))
    reader.read(out, 6, encodeFrame(part, out, 6))
    assert.deepStrictEqual(
      [reader.count, reader.firstDelta, reader.offset, reader.endsRecord],
      [1, part.delta, part.partOffset, part.endsRecord]
    )
    assert.deepStrictEqual(partsOf(out), [part.bytes.slice()])
  })
})

describe("the records writers", () => {
  it("take one byte per length exactly when all lengths fit one, and as much as declared", () => {
    for (const [lengths, wide] of [
      [[255, 0, 255], false],
      [[1, 256], true],
      [[256], true],
      [[0], false]
    ] as const) {
      const dataStart = writeRecordsHeader(out, 0, 9, 0, Uint16Array.from(lengths), lengths.length, true)
      assert.strictEqual(dataStart, recordsFrameOverhead(lengths.length, wide))
      assert.strictEqual((out[0]! & 0x20) !== 0, wide)
    }
    assert.strictEqual(writePartHeader(out, 0, 1, 70_000, 5, false), partFrameOverhead)
  })

  it("use only as many lengths as they are told", () => {
    const lengths = Uint16Array.of(1, 2, 60_000)
    assert.strictEqual(writeRecordsHeader(out, 0, 0, 0, lengths, 2, true), recordsFrameOverhead(2, false))
  })

  it("refuse more parts than a frame holds, and none", () => {
    const lengths = new Uint16Array(partsInFrame + 1).fill(1)
    assert.throws(() => writeRecordsHeader(out, 0, 0, 0, lengths, partsInFrame + 1, true))
    assert.throws(() => writeRecordsHeader(out, 0, 0, 0, lengths, 0, true))
    const dataStart = writeRecordsHeader(out, 0, 0, 0, lengths, partsInFrame, true)
    assert.strictEqual(dataStart, recordsFrameOverhead(partsInFrame, false))
  })
})

describe("an empty part", () => {
  /** A body of one RECORDS frame with these lengths, all bytes zero. */
  const isBody = (partOffset: number, lengths: ReadonlyArray<number>, endsRecord: boolean): boolean => {
    const dataStart = writeRecordsHeader(out, 0, 1, partOffset, Uint16Array.from(lengths), lengths.length, endsRecord)
    return validateBody(
      out,
      0,
      lengths.reduce((sum, length) => sum + length, dataStart),
      "data"
    )
  }

  it("is allowed only as a whole empty record", () => {
    assert.isTrue(isBody(0, [0], true))
    assert.isFalse(isBody(0, [0], false), "says nothing")
    assert.isFalse(isBody(5, [0], true), "only the end of a record")
    assert.isTrue(isBody(5, [3, 0], true))
    assert.isFalse(isBody(5, [3, 0], false))
    assert.isTrue(isBody(0, [0, 3], false))
    assert.isFalse(isBody(5, [0, 3], false))
    assert.isTrue(isBody(5, [3, 0, 0, 300], false))
    assert.isTrue(
      isBody(
        0,
        Array.from({ length: 32 }, () => 0),
        true
      )
    )
  })
})

/**
 * Cuts a drain of equal records into full packets as spec §5 and §9.2 have it, slowly and plainly, and returns the
 * packets. Their record bytes are a pattern that a reader can check.
 */
const drain = (recordLength: number, records: number, firstDelta: number): Array<Uint8Array> => {
  const packets: Array<Uint8Array> = []
  const bodyEnd = largestDatagram - tagLength
  let record = 0
  let done = 0
  for (let number = 1; record < records; number++) {
    const packet = new Uint8Array(largestDatagram)
    const frameStart = writeShortHeader(packet, 0, 1, 0xc1c2c3c4, 0xa1a2a3a4, number)
    const wide = recordLength > 255
    const lengths: Array<number> = []
    const first = record
    const partOffset = done
    let room = bodyEnd - frameStart - recordsFrameOverhead(0, wide)
    while (record < records && lengths.length < partsInFrame) {
      const left = room - (wide ? 2 : 1)
      const rest = recordLength - done
      if (left < rest && (recordLength <= 255 ? left < 64 : left < 1)) break
      const length = Math.min(rest, left)
      lengths.push(length)
      room = left - length
      done = (done + length) % recordLength
      if (done > 0) break
      record += 1
    }
    let at = writeRecordsHeader(
      packet,
      frameStart,
      firstDelta + first,
      partOffset,
      Uint16Array.from(lengths),
      lengths.length,
      done === 0
    )
    for (const [i, length] of lengths.entries()) {
      for (let k = 0; k < length; k++) packet[at++] = first + i + (i === 0 ? partOffset : 0) + k
    }
    const left = bodyEnd - at
    if (left < 3) at = writePadding(packet, at, left)
    packets.push(packet.subarray(0, at + tagLength))
  }
  return packets
}

/** Record bytes of a packet, checked against the pattern of `drain`. */
const recordBytes = (packet: Uint8Array, base: number): number => {
  const header = new PacketHeader()
  assert.isTrue(header.read(packet, 0, packet.length))
  const bodyEnd = packet.length - tagLength
  assert.isTrue(validateBody(packet, header.length, bodyEnd, "data"))
  const cursor = new FrameCursor()
  cursor.reset(packet, header.length, bodyEnd)
  assert.isTrue(cursor.next())
  assert.isAtLeast(cursor.type, FrameType.records)
  reader.read(packet, cursor.start, cursor.end)
  let at = reader.dataStart
  let wrong = 0
  for (let i = 0; i < reader.count; i++) {
    const offset = i === 0 ? reader.offset : 0
    for (let k = 0; k < reader.length(i); k++) {
      if (packet[at++] !== ((reader.firstDelta - base + i + offset + k) & 0xff)) wrong += 1
    }
  }
  assert.strictEqual(wrong, 0, "bytes that are not those of the drain")
  assert.isFalse(cursor.next(), "no control frame")
  return at - reader.dataStart
}

describe("the framing sum of spec §5", () => {
  it("is at most 41 B in every full packet of a drain of 1,013 B records, at any record number", () => {
    const records = 2_000
    for (const firstDelta of [0, 2 ** 32 - 2 ** 20 - records]) {
      const packets = drain(1_013, records, firstDelta)
      const overheads = packets.map((packet) => packet.length - recordBytes(packet, firstDelta))
      const full = overheads.slice(0, -1)
      assert.isTrue(
        packets.slice(0, -1).every((packet) => packet.length === largestDatagram),
        "every packet is full"
      )
      assert.strictEqual(Math.max(...full), 41)
      assert.strictEqual(
        packets.reduce((sum, packet, i) => sum + packet.length - overheads[i]!, 0),
        records * 1_013
      )
    }
  })

  it("is 22 records of 61 B in 1,399 B", () => {
    const packets = drain(61, 220, 5)
    assert.strictEqual(packets.length, 10)
    for (const packet of packets) {
      assert.strictEqual(packet.length, 1_399)
      assert.strictEqual(recordBytes(packet, 5), 22 * 61)
    }
  })
})

describe("a part's end", () => {
  const lengths = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 900 }))
  it.prop("is at most 16 MiB, to the byte", [lengths], ([length]) => {
    const longest = 16 * 1_024 * 1_024
    const bodyOf = (partOffset: number): number => writePartHeader(out, 0, 7, partOffset, length, true) + length
    assert.isTrue(validateBody(out, 0, bodyOf(longest - length), "data"))
    assert.strictEqual(decodeFrame(out, 0, bodyOf(longest - length))?.next, partFrameOverhead + length)
    assert.isFalse(validateBody(out, 0, bodyOf(longest - length + 1), "data"))
    assert.isFalse(validateBody(out, 0, bodyOf(2 ** 32 - 1), "data"))
  })
})

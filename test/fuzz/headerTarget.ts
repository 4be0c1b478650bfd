import {
  answerHeaderLength,
  Kind,
  longHeaderLength,
  lostHeaderLength,
  PacketHeader,
  runPrefixOf,
  shortHeaderLength,
  tagLength,
  writeAnswerHeader,
  writeLongHeader,
  writeLostHeader,
  writeShortHeader
} from "@pure-link/wire"
import { deepStrictEqual, ok as assert } from "node:assert/strict"
import type { Target } from "./target.ts"

/** Headers (spec §3.2–§3.5): what is read is written to the same bytes again; what is not read is impossible. */

const lengths = [shortHeaderLength, longHeaderLength, answerHeaderLength, lostHeaderLength]

const writeAgain = (header: PacketHeader, out: Uint8Array): number => {
  const { kind, epochBits, keyId, runPrefix, run, replyRun, number } = header
  switch (kind) {
    case Kind.shortData:
      return writeShortHeader(out, 0, epochBits, keyId, runPrefix, number)
    case Kind.longData:
      return writeLongHeader(out, 0, epochBits, keyId, run, number)
    case Kind.answer:
      return writeAnswerHeader(out, 0, epochBits, keyId, runPrefix, replyRun, number)
    case Kind.lost:
      return writeLostHeader(out, 0, keyId, runPrefix, replyRun)
  }
}

/** Why spec §3 refuses the bytes, found the slow way. */
const mustRefuse = (bytes: Uint8Array): boolean => {
  const flags = bytes[0]
  if (flags === undefined || (flags & 0x30) !== 0) return true
  const kind = flags >>> 6
  if (bytes.length < lengths[kind]! + tagLength || (kind === Kind.lost && (flags & 0x0f) !== 0)) return true
  if (kind !== Kind.longData && kind !== Kind.answer) return false
  return Buffer.from(bytes).readBigUInt64BE(lengths[kind]! - 8) >= 2n ** 53n
}

const seeds = (): ReadonlyArray<Uint8Array> => {
  const run = 0x0102030405060708n
  const write = (header: (out: Uint8Array) => number): Uint8Array => {
    const out = new Uint8Array(60).fill(7)
    return out.slice(0, header(out) + tagLength)
  }
  return [
    write((out) => writeShortHeader(out, 0, 0, 0xfeedbeef, runPrefixOf(run), 5)),
    write((out) => writeLongHeader(out, 0, 1, 0xfeedbeef, run, 2 ** 53 - 1)),
    write((out) => writeAnswerHeader(out, 0, 15, 0xfeedbeef, runPrefixOf(run), ~run & 0xffffffffffffffffn, 70_000)),
    write((out) => writeLostHeader(out, 0, 1, runPrefixOf(run), run))
  ]
}

export const headerTarget: Target = {
  name: "header",
  isScript: false,
  seeds,
  run: (input) => {
    const header = new PacketHeader()
    // The packet stands in the middle of a longer buffer, as in a receive slab.
    const slab = new Uint8Array(input.length + 16).fill(0xa5)
    slab.set(input, 8)
    const isRead = header.read(slab, 8, 8 + input.length)
    deepStrictEqual(isRead, !mustRefuse(input), "read and spec §3 disagree")
    if (!isRead) return
    assert(header.length === lengths[header.kind])
    assert(header.run === 0n || runPrefixOf(header.run) === header.runPrefix)
    const out = new Uint8Array(40)
    assert(writeAgain(header, out) === header.length)
    deepStrictEqual(out.subarray(0, header.length), input.subarray(0, header.length), "another header is written")
  }
}

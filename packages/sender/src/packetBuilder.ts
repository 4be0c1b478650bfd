import type { Offer } from "@pure-link/keys"
import {
  type Bytes,
  type Epoch,
  epochBitsOf,
  FrameType,
  type Id64,
  type PacketNumber,
  partFrameOverhead,
  partsInFrame,
  recordsFrameOverhead,
  type RecordNumber,
  smallestEpochPacket,
  type StreamFrame,
  streamFrameLength,
  tagLength,
  writeLongHeader,
  writeOffer,
  writePartHeader,
  writeRecordsHeader,
  writeResponse,
  writeShortHeader,
  writeStream
} from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import type { Position, RecordQueue } from "./recordQueue.ts"

/**
 * Writes one packet in place, but for its tag: header, control frames, then parts of records as spec §4.1, §4.2 and §9.2
 * cut them, then padding. It knows layout and room; what goes in is the link's matter.
 */

/** Records up to this length are cut only when at least `leastCut` bytes of room are left for them (spec §9.2). */
const shortRecord = 255
const leastCut = 64
/** Fewer bytes than this left over in a full packet are PADDING (spec §9.2). */
const leastLeftOver = 3
const largestShortOffset = 0xffff
/** No frame with records is shorter: that of one empty record. */
const leastFrame = recordsFrameOverhead(1, false)

/** A run as headers name it. */
interface RunId {
  readonly id: Id64
  readonly prefix: number
}

export class PacketBuilder {
  /** Record bytes written into the packet so far. */
  recordBytes: Bytes = 0
  /** Whether the packet carries parts, which may all be empty records. */
  hasRecords = false
  /** The header is short, and no control frame is in the packet. */
  isPlain = true

  readonly #keyId: number
  readonly #lengths = new Uint16Array(partsInFrame)
  #out: Uint8Array = new Uint8Array(0)
  #start = 0
  #bodyStart = 0
  #at = 0
  #limit = 0
  #epoch: Epoch = 0

  constructor(keyId: number) {
    this.#keyId = keyId
  }

  /** Begins a packet of at most `size` bytes at `out[start…]`; the long header names the whole run (spec §3.7). */
  begin(
    out: Uint8Array,
    start: number,
    size: Bytes,
    long: boolean,
    run: RunId,
    epoch: Epoch,
    number: PacketNumber
  ): void {
    assert(start + size <= out.length, "no room for a datagram")
    const bits = epochBitsOf(epoch)
    this.#out = out
    this.#start = start
    this.#limit = start + size - tagLength
    this.#epoch = epoch
    this.#bodyStart = long
      ? writeLongHeader(out, start, bits, this.#keyId, run.id, number)
      : writeShortHeader(out, start, bits, this.#keyId, run.prefix, number)
    this.#at = this.#bodyStart
    this.recordBytes = 0
    this.hasRecords = false
    this.isPlain = !long
  }

  /** Bytes left for frames. */
  get room(): Bytes {
    return this.#limit - this.#at
  }

  addStream(frame: StreamFrame): void {
    this.isPlain = false
    assert(this.#at + streamFrameLength(frame) <= this.#limit, "STREAM does not fit the packet")
    this.#at = writeStream(this.#out, this.#at, frame)
  }

  addOffer(offer: Offer): void {
    this.isPlain = false
    this.#at = writeOffer(this.#out, this.#at, offer)
  }

  addResponse(token: Id64): void {
    this.isPlain = false
    this.#at = writeResponse(this.#out, this.#at, { token })
  }

  /** PING and PADDING to the packet's end. */
  addPathProbe(): void {
    this.isPlain = false
    this.#out[this.#at++] = FrameType.ping
    this.#padTo(this.#limit)
  }

  /** Writes parts from `start` towards `end` while there is room; returns how far they reach. */
  addSpan(queue: RecordQueue, base: RecordNumber, start: Position, end: Position): Position {
    let reached = start
    while (reached < end && this.room >= leastFrame) {
      const from = reached
      reached = this.#addFrame(queue, base, from, end)
      if (reached === from) break
    }
    return reached
  }

  /** Adds a span only if all of it fits; says whether it did. */
  addWholeSpan(queue: RecordQueue, base: RecordNumber, start: Position, end: Position): boolean {
    const at = this.#at
    const { recordBytes, hasRecords } = this
    if (this.addSpan(queue, base, start, end) === end) return true
    this.#at = at
    this.recordBytes = recordBytes
    this.hasRecords = hasRecords
    return false
  }

  /** Completes the packet; returns its length with the tag that is to come. `isFull`: more was waiting than fitted. */
  finish(isFull: boolean): Bytes {
    if (this.#at === this.#bodyStart) this.#out[this.#at++] = FrameType.ping
    if (isFull && this.#limit - this.#at < leastLeftOver) this.#padTo(this.#limit)
    if (this.#epoch > 0) this.#padTo(this.#start + smallestEpochPacket - tagLength)
    return this.#at + tagLength - this.#start
  }

  get headerLength(): Bytes {
    return this.#bodyStart - this.#start
  }

  #padTo(end: number): void {
    if (end - this.#at > leastLeftOver) this.#out.fill(FrameType.padding, this.#at, end)
    else for (let at = this.#at; at < end; at++) this.#out[at] = FrameType.padding
    this.#at = Math.max(this.#at, end)
  }

  /** Writes one RECORDS or PART frame from `start` on; returns how far it reaches, `start` itself for want of room. */
  #addFrame(queue: RecordQueue, base: RecordNumber, start: Position, end: Position): Position {
    const number = queue.recordAt(start)
    const offset = start - queue.positionOf(number)
    return offset > largestShortOffset
      ? this.#addPart(queue, base, number, offset, end)
      : this.#addRecords(queue, base, number, offset, end)
  }

  #addPart(queue: RecordQueue, base: RecordNumber, number: RecordNumber, offset: Bytes, end: Position): Position {
    const start = queue.positionOf(number) + offset
    const rest = Math.min(queue.lengthOf(number) - offset, end - start)
    const length = Math.min(rest, this.#limit - this.#at - partFrameOverhead)
    if (length < 1) return start
    const endsRecord = length === queue.lengthOf(number) - offset
    this.#at = writePartHeader(this.#out, this.#at, number - base, offset, length, endsRecord)
    this.#copy(queue, number, offset, length)
    return start + length + (endsRecord ? 1 : 0)
  }

  #addRecords(queue: RecordQueue, base: RecordNumber, first: RecordNumber, offset: Bytes, end: Position): Position {
    const room = this.#limit - this.#at
    const start = queue.positionOf(first) + offset
    let count = queue.wholeRecords(first, start, end, room - recordsFrameOverhead(0, false), this.#lengths)
    let number = first + count
    let position = count > 0 ? queue.positionOf(number) : start
    let bytes = position - start - count
    let wide = false
    let endsRecord = true
    while (count < partsInFrame && position < end && endsRecord) {
      const recordEnd = queue.positionOf(number + 1)
      endsRecord = end >= recordEnd
      let length = (endsRecord ? recordEnd - 1 : end) - position
      if (length > room - bytes - recordsFrameOverhead(count + 1, wide || length > 255)) {
        length = cutLength(room - bytes, count + 1, wide)
        if (length < (queue.lengthOf(number) > shortRecord ? 1 : leastCut)) {
          endsRecord = true
          break
        }
        endsRecord = false
      }
      wide ||= length > 255
      this.#lengths[count++] = length
      bytes += length
      position = endsRecord ? recordEnd : position + length
      number++
    }
    if (count === 0) return start
    this.#at = writeRecordsHeader(this.#out, this.#at, first - base, offset, this.#lengths, count, endsRecord)
    this.#copy(queue, first, offset, bytes)
    queue.expect(endsRecord ? number : number - 1)
    return position
  }

  #copy(queue: RecordQueue, number: RecordNumber, offset: Bytes, length: Bytes): void {
    queue.copy(number, offset, length, this.#out, this.#at)
    this.#at += length
    this.recordBytes += length
    this.hasRecords = true
  }
}

/** The longest part that still fits as the last of `count`, in the width of lengths that gives it more. */
const cutLength = (room: Bytes, count: number, wide: boolean): number => {
  // Two records or three meet in the packets of a drain by turns; either way they carry equally many bytes.
  const lengths = count === 2 ? 3 : count
  const inWide = room - recordsFrameOverhead(lengths, true)
  return wide ? inWide : Math.max(inWide, Math.min(255, room - recordsFrameOverhead(lengths, false)))
}

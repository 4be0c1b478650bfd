import { type Bytes, type Micros, readUint16, readUint32, writeUint16, writeUint32 } from "@pure-link/wire"

/**
 * What the reference flow puts into datagrams, and how large real TCP would be: a segment of data is 1,448 bytes behind
 * TCP's header with timestamps (RFC 7323), an acknowledgement has up to three SACK blocks (RFC 2018), and 8 bytes of a
 * datagram's UDP header stand for as many of TCP's. Sequence numbers count segments instead of bytes: all are full but
 * the last of a flow.
 */

export const segmentBytes: Bytes = 1_448
/** TCP's 20 bytes and 12 of timestamps, less the 8 that UDP's header takes. */
export const headerBytes: Bytes = 24
/** Kind and length of the SACK option, padded, and each of its blocks. */
const sackOptionBytes: Bytes = 4
const blockBytes: Bytes = 8
/** As many blocks as fit beside timestamps. */
export const mostBlocks = 3
export const largestSegmentDatagram: Bytes = headerBytes + segmentBytes

const dataKind = 1
const acknowledgementKind = 2
const numberOffset = 16

/** TCP's timestamp clock: a millisecond, and never 0, which says "none" (Linux: `tcp_time_stamp_ms`). */
export const timestampAt = (now: Micros): number => Math.floor(now / 1_000) + 1

/** The segment read last; one instance per reader, reused. */
export class Segment {
  isData = false
  /** Bytes of data, 0 in an acknowledgement. */
  payload: Bytes = 0
  timestamp = 0
  /** In an acknowledgement the timestamp that it answers. */
  echo = 0
  /** In an acknowledgement how many segments from `number` on the receiver has room for. */
  window = 0
  /** Of the data, or the first segment not yet received in order. */
  number = 0
  /** SACK blocks from `starts` to before `ends`; the first may be a D-SACK (RFC 2883). */
  blocks = 0
  readonly starts = new Float64Array(mostBlocks)
  readonly ends = new Float64Array(mostBlocks)

  /** False if these are not the bytes of a segment. */
  read(bytes: Uint8Array): boolean {
    const blocks = bytes[1]!
    const tail = blocks === 0 ? 0 : sackOptionBytes + blocks * blockBytes
    if (bytes.length < headerBytes + tail || blocks > mostBlocks) return false
    this.isData = bytes[0] === dataKind
    if (!this.isData && bytes[0] !== acknowledgementKind) return false
    this.payload = readUint16(bytes, 2)
    this.timestamp = readUint32(bytes, 4)
    this.echo = readUint32(bytes, 8)
    this.window = readUint32(bytes, 12)
    this.number = readUint32(bytes, numberOffset)
    this.blocks = blocks
    for (let i = 0; i < blocks; i++) {
      const offset = headerBytes + sackOptionBytes + i * blockBytes
      this.starts[i] = readUint32(bytes, offset)
      this.ends[i] = readUint32(bytes, offset + 4)
    }
    return true
  }
}

/** Both writers start at `out[0]`, leave the data itself as it is, and return the length of the datagram. */
export const writeData = (out: Uint8Array, number: number, payload: Bytes, timestamp: number): Bytes => {
  writeHeader(out, dataKind, 0, payload, timestamp)
  writeUint32(out, 8, 0)
  writeUint32(out, 12, 0)
  writeUint32(out, numberOffset, number)
  return headerBytes + payload
}

export const writeAcknowledgement = (
  out: Uint8Array,
  number: number,
  window: number,
  timestamp: number,
  echo: number,
  starts: Float64Array,
  ends: Float64Array,
  blocks: number
): Bytes => {
  writeHeader(out, acknowledgementKind, blocks, 0, timestamp)
  writeUint32(out, 8, echo)
  writeUint32(out, 12, window)
  writeUint32(out, numberOffset, number)
  if (blocks === 0) return headerBytes
  let offset = headerBytes + sackOptionBytes
  for (let i = 0; i < blocks; i++) offset = writeUint32(out, writeUint32(out, offset, starts[i]!), ends[i]!)
  return offset
}

const writeHeader = (out: Uint8Array, kind: number, blocks: number, payload: Bytes, timestamp: number): void => {
  out[0] = kind
  out[1] = blocks
  writeUint16(out, 2, payload)
  writeUint32(out, 4, timestamp)
}

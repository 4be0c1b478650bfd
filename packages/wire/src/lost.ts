import { readUint24, readUint32, writeUint24, writeUint32 } from "./integer.ts"
import { lostLength } from "./limits.ts"
import type { PacketNumber } from "./units.ts"

/**
 * The body of LOST (spec §12.2): what it repeats of the packet that drew it, so that its sender can tell the packet among
 * those in flight. Layout: flags 1, low 3 B of the number, last 8 B of the tag.
 */

/** Bytes of the echo: what stands between LOST's header and its tag. */
export const lostEchoLength = 12

/** What identifies one packet by its bytes. One instance per reader, filled anew by each `read` or `take`. */
export class PacketEcho {
  /** The first byte of the packet (spec §3.2). */
  flags = 0
  /** The low 24 bits of its number. */
  number = 0
  /** The last 8 B of its tag, by halves. */
  tagHigh = 0
  tagLow = 0

  /** Reads the echo in the opened body of a LOST; false when the body has another length. */
  read(bytes: Uint8Array, start: number, end: number): boolean {
    if (end - start !== lostEchoLength) return false
    this.flags = bytes[start]!
    this.number = readUint24(bytes, start + 1)
    this.tagHigh = readUint32(bytes, start + 4)
    this.tagLow = readUint32(bytes, start + 8)
    return true
  }

  /** Takes the echo of a whole sealed data packet in bytes[start, end), whose header carries this number. */
  take(bytes: Uint8Array, start: number, end: number, number: PacketNumber): void {
    this.flags = bytes[start]!
    this.number = number % 0x1000000
    this.tagHigh = readUint32(bytes, end - 8)
    this.tagLow = readUint32(bytes, end - 4)
  }

  /** Writes the echo as LOST's body; returns the new offset. */
  write(out: Uint8Array, offset: number): number {
    out[offset] = this.flags
    writeUint24(out, offset + 1, this.number)
    writeUint32(out, offset + 4, this.tagHigh)
    return writeUint32(out, offset + 8, this.tagLow)
  }
}

/** Whether a datagram has LOST's length, which never differs. */
export const isLostLength = (start: number, end: number): boolean => end - start === lostLength

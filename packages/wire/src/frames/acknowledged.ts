import { assert } from "../assert.ts"
import { readVarint, varintLengthAt } from "../integer.ts"
import type { Micros, PacketNumber } from "../units.ts"
import { FrameType } from "./codec.ts"

/**
 * Reads what an answer acknowledges, in place and as ranges, newest first, whichever of the four forms it came in:
 * ACK, SEEN, ACK_MAP, SEEN_MAP (spec §4.4, §4.5).
 */
export class AcknowledgedReader {
  /** SEEN or SEEN_MAP: opened, but not all of its parts kept (spec §4.6). */
  seen = false
  largest: PacketNumber = 0
  delay: Micros = 0
  /** The range of the last `next` that returned true; both ends belong to it. */
  low: PacketNumber = 0
  high: PacketNumber = 0
  #bytes: Uint8Array = new Uint8Array(0)
  #isMap = false
  /** Ranges: where the next one stands, and how many are left. Map: where the map starts, and how many bits it has. */
  #at = 0
  #left = 0
  #isFirst = false
  /** Map: the bit to look at next. */
  #bit = 0

  /**
   * `start` is the offset of a validated frame of type 0x10 to 0x13; its bytes must stay while ranges are asked for.
   */
  read(bytes: Uint8Array, start: number): void {
    const type = bytes[start]!
    assert(type >= FrameType.ack && type <= FrameType.seenMap, "not an acknowledgement")
    this.#bytes = bytes
    this.#at = start + 1
    this.seen = type === FrameType.seen || type === FrameType.seenMap
    this.#isMap = type >= FrameType.ackMap
    this.largest = this.#readVarint()
    this.delay = this.#readVarint()
    this.#left = this.#isMap ? 8 * this.#readVarint() : 1 + this.#readVarint()
    this.#bit = 0
    this.#isFirst = true
  }

  /** Moves to the next older range; false after the last. */
  next(): boolean {
    return this.#isMap ? this.#nextInMap() : this.#nextRange()
  }

  #nextRange(): boolean {
    if (this.#left === 0) return false
    this.#left -= 1
    this.high = this.#isFirst ? this.largest : this.low - this.#readVarint() - 2
    this.#isFirst = false
    this.low = this.high - this.#readVarint()
    return true
  }

  #nextInMap(): boolean {
    const start = this.#skip(0x00)
    if (start === this.#left) return false
    this.high = this.largest - start
    this.low = this.largest - this.#skip(0xff) + 1
    return true
  }

  /** Moves over clear (0x00) or set (0xff) bits, whole bytes at once, and returns the bit that is not. */
  #skip(pattern: number): number {
    while (this.#bit < this.#left) {
      const byte = this.#bytes[this.#at + (this.#bit >>> 3)]!
      const inByte = this.#bit & 7
      if (inByte === 0 && byte === pattern) this.#bit += 8
      else if (((byte >>> inByte) & 1) === (pattern & 1)) this.#bit += 1
      else break
    }
    return this.#bit
  }

  #readVarint(): number {
    const value = readVarint(this.#bytes, this.#at, this.#bytes.length)
    this.#at += varintLengthAt(this.#bytes, this.#at)
    return value
  }
}

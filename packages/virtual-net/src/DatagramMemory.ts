import type { Bytes } from "@pure-link/wire"

/**
 * Where datagrams under way have their bytes: cut one after the other from large blocks, as a buffer of its own for
 * each would cost more than the whole rest of its way. A block is freed when none of its datagrams is in use any more.
 */
export class DatagramMemory {
  #block = new ArrayBuffer(blockBytes)
  #used: Bytes = 0

  /** A copy of bytes[start, end). */
  copy(bytes: Uint8Array, start = 0, end = bytes.length): Uint8Array {
    const length = end - start
    if (this.#used + length > this.#block.byteLength) {
      this.#block = new ArrayBuffer(Math.max(blockBytes, length))
      this.#used = 0
    }
    const copy = new Uint8Array(this.#block, this.#used, length)
    copy.set(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end))
    this.#used += length
    return copy
  }
}

const blockBytes: Bytes = 1 << 18

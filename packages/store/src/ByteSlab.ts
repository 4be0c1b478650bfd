import type { Bytes } from "@pure-link/wire"

/**
 * Buffers for records that stay in memory, cut one after the other from large blocks: a small commit would else pay more
 * for its buffer than for its copy. A block lives as long as any record in it.
 */
export class ByteSlab {
  #block = new ArrayBuffer(0)
  #used: Bytes = 0

  take(length: Bytes): Uint8Array {
    if (this.#used + length > this.#block.byteLength) {
      this.#block = new ArrayBuffer(Math.max(blockBytes, length))
      this.#used = 0
    }
    this.#used += length
    return new Uint8Array(this.#block, this.#used - length, length)
  }
}

const blockBytes: Bytes = 1 << 17

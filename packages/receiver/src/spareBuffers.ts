import type { Bytes } from "@pure-link/wire"

/**
 * Buffers of chunks whose records are stored, kept for the next chunks of any stream: a fresh one of a few hundred KiB costs
 * more to make and to touch for the first time than to fill. Only powers of two are kept, and few.
 */

/** Lengths from 2^12 to 2^20, the bounds of chunks. */
const smallestPower = 12
const largestPower = 20

const smallestSizes = 16
/** Arrays of sizes kept; credit bounds how long they are. */
const mostSizes = 8

export class SpareBuffers {
  /** Bytes kept, and their bound. */
  bytes: Bytes = 0
  private readonly most: Bytes
  private readonly byPower: Array<Array<Uint8Array>> = []
  private readonly sizes: Array<Uint32Array> = []

  constructor(most: Bytes) {
    this.most = most
    for (let power = smallestPower; power <= largestPower; power++) this.byPower.push([])
  }

  /** A buffer of this length, whose content is any. */
  take(length: Bytes): Uint8Array {
    const spare = this.of(length)?.pop()
    if (spare === undefined) return new Uint8Array(length)
    this.bytes -= length
    return spare
  }

  /** Nobody reads or writes this buffer any more. */
  give(buffer: Uint8Array): void {
    const { length } = buffer
    if (this.bytes + length > this.most || length !== buffer.buffer.byteLength) return
    const spare = this.of(length)
    if (spare === undefined) return
    spare.push(buffer)
    this.bytes += length
  }

  /** An array for the sizes of a chunk's records, of any length and content. */
  takeSizes(): Uint32Array {
    return this.sizes.pop() ?? new Uint32Array(smallestSizes)
  }

  giveSizes(sizes: Uint32Array): void {
    if (this.sizes.length < mostSizes) this.sizes.push(sizes)
  }

  private of(length: Bytes): Array<Uint8Array> | undefined {
    const power = 31 - Math.clz32(length)
    return length === 2 ** power ? this.byPower[power - smallestPower] : undefined
  }
}

import type { Bytes } from "@pure-link/wire"
import { type Columns, joinInto } from "./columns.ts"

/**
 * Buffers that carry records to a store's thread and come back with its reply: the one copy that this thread makes, into
 * memory that is used again and again.
 */
export class Carrier {
  #spares: Array<Carried> = []
  #spareBytes: Bytes = 0

  /** Copies columns, one after the other, into buffers that can move to another thread. */
  load(all: ReadonlyArray<Columns>): Columns & { readonly buffers: Carried } {
    const length = all.reduce((sum, { bytes }) => sum + bytes.length, 0)
    const count = all.reduce((sum, { sizes }) => sum + sizes.length, 0)
    const buffers = this.#take(length, 4 * count)
    const bytes = new Uint8Array(buffers[0], 0, length)
    const sizes = new Uint32Array(buffers[1], 0, count)
    joinInto(all, bytes, sizes)
    return { bytes, sizes, buffers }
  }

  /** Nobody uses them any more. */
  comeBack(buffers: Carried): void {
    if (this.#spareBytes + lengthOf(buffers) > mostKept) return
    this.#spares.push(buffers)
    this.#spareBytes += lengthOf(buffers)
  }

  /** Buffers with this room: the ones that came back last, if they are large enough. */
  #take(bytes: Bytes, sizes: Bytes): Carried {
    const spare = this.#spares.pop()
    if (spare !== undefined) {
      this.#spareBytes -= lengthOf(spare)
      if (spare[0].byteLength >= bytes && spare[1].byteLength >= sizes) return spare
    }
    return [new ArrayBuffer(roomFor(bytes)), new ArrayBuffer(roomFor(sizes))]
  }
}

export type Carried = readonly [bytes: ArrayBuffer, sizes: ArrayBuffer]

const lengthOf = ([bytes, sizes]: Carried): Bytes => bytes.byteLength + sizes.byteLength

const smallest: Bytes = 4_096
const mostKept: Bytes = 16 * 1_048_576

/** Room that will do for what comes next too. */
const roomFor = (bytes: Bytes): Bytes => Math.max(smallest, 2 ** Math.ceil(Math.log2(Math.max(1, bytes))))

import type { Bytes } from "@pure-link/wire"
import { type Columns, joinInto } from "./RecordList.ts"

/**
 * Buffers that carry records to a store's thread and come back with its reply: the one copy that this thread makes, into
 * memory that is used again and again.
 */
export class Carrier {
  #spare: Carried | undefined

  /** Copies columns, one after the other, into buffers that can move to another thread. */
  load(all: ReadonlyArray<Columns>): Columns & { readonly buffers: Carried } {
    const length = all.reduce((sum, { bytes }) => sum + bytes.length, 0)
    const count = all.reduce((sum, { sizes }) => sum + sizes.length, 0)
    const spare = this.#spare
    this.#spare = undefined
    const fits = spare !== undefined && spare[0].byteLength >= length && spare[1].byteLength >= 4 * count
    const buffers: Carried = fits ? spare : [new ArrayBuffer(roomFor(length)), new ArrayBuffer(roomFor(4 * count))]
    const bytes = new Uint8Array(buffers[0], 0, length)
    const sizes = new Uint32Array(buffers[1], 0, count)
    joinInto(all, bytes, sizes)
    return { bytes, sizes, buffers }
  }

  /** The thread has done with them. */
  comeBack(buffers: Carried): void {
    if (buffers[0].byteLength + buffers[1].byteLength <= mostKept) this.#spare = buffers
  }
}

export type Carried = readonly [bytes: ArrayBuffer, sizes: ArrayBuffer]

const smallest: Bytes = 4_096
const mostKept: Bytes = 16 * 1_048_576

/** Room that will do for what comes next too. */
const roomFor = (bytes: Bytes): Bytes => Math.max(smallest, 2 ** Math.ceil(Math.log2(Math.max(1, bytes))))

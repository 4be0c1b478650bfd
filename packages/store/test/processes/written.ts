import type { RecordBatch, RecordNumber } from "@pure-link/wire"

/** What the writing processes write, so that whoever looks afterwards knows every byte. */

export const writerStream = { source: "writer", input: "orders", shape: 3n }
export const writerLife = 0xabcdn
/** Records of one append or batch: all of them are there afterwards, or none. */
export const chunkLength = 7

export const writtenRecord = (number: RecordNumber): Uint8Array =>
  new Uint8Array((number * 37) % 1_500).fill(number & 0xff)

export const batchOf = (first: RecordNumber): RecordBatch => {
  const records = Array.from({ length: chunkLength }, (_, i) => writtenRecord(first + i))
  return { first, bytes: Buffer.concat(records), sizes: Uint32Array.from(records, (record) => record.length) }
}

export const chunkOf = (first: RecordNumber) => ({
  ...batchOf(first),
  from: { producer: "writer", position: first + chunkLength - 1 }
})

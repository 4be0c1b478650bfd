import type { Id64 } from "@pure-link/wire"

/** Ids in a file: eight bytes, big-endian, as on the wire; SQLite's integers are signed and Node's below 2^53. */

export const blobOfId = (id: Id64): Uint8Array => {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setBigUint64(0, id)
  return bytes
}

export const idOfBlob = (bytes: Uint8Array): Id64 =>
  new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getBigUint64(0)

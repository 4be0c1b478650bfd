/**
 * Consecutive records as two columns. Nothing is imported here: the threads of files use it, and start sooner for it.
 */
export interface Columns {
  readonly bytes: Uint8Array
  readonly sizes: Uint32Array
}

/** Columns in one buffer of their own. */
export const joined = (all: ReadonlyArray<Columns>): Columns => {
  const bytes = new Uint8Array(all.reduce((sum, one) => sum + one.bytes.length, 0))
  const sizes = new Uint32Array(all.reduce((sum, one) => sum + one.sizes.length, 0))
  joinInto(all, bytes, sizes)
  return { bytes, sizes }
}

/** Writes columns one after the other. */
export const joinInto = (all: ReadonlyArray<Columns>, bytes: Uint8Array, sizes: Uint32Array): void => {
  let byte = 0
  let record = 0
  for (const one of all) {
    bytes.set(one.bytes, byte)
    sizes.set(one.sizes, record)
    byte += one.bytes.length
    record += one.sizes.length
  }
}

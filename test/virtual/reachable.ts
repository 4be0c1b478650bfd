/**
 * How much hangs on an object: everything that can be reached from it by its properties, its collections and its arrays.
 * A table that grows shows, however it is called. (What private `#` fields hold is not seen: machines of the receiver
 * have none.)
 */
export interface Reachable {
  /** Objects, collections' entries and array elements. */
  readonly objects: number
  /** Bytes of typed arrays. */
  readonly bytes: number
}

export const reachableFrom = (root: object): Reachable => {
  const seen = new Set<object>()
  const buffers = new Set<ArrayBufferLike>()
  const waiting: Array<object> = [root]
  let objects = 0
  let bytes = 0
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null || seen.has(value)) return
    seen.add(value)
    waiting.push(value)
  }
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    objects++
    if (ArrayBuffer.isView(next)) {
      if (!buffers.has(next.buffer)) bytes += next.buffer.byteLength
      buffers.add(next.buffer)
    } else if (next instanceof Map) {
      objects += next.size
      for (const [key, value] of next) {
        visit(key)
        visit(value)
      }
    } else if (next instanceof Set) {
      objects += next.size
      for (const value of next) visit(value)
    } else {
      for (const key of Reflect.ownKeys(next)) {
        const descriptor = Reflect.getOwnPropertyDescriptor(next, key)
        if (descriptor !== undefined && "value" in descriptor) visit(descriptor.value)
      }
    }
  }
  return { objects, bytes }
}

import type { Address, Bytes } from "@pure-link/wire"

/**
 * Datagrams that one `receive` of a socket handed over, in columns: datagram i is `bytes[starts[i], ends[i])` and came
 * from `from[i]`. A socket has one of these and fills it anew each time. Until then the bytes are the receiver's, who may
 * change them in place.
 */
export class ReceivedDatagrams {
  count = 0
  /** More may wait: ask again. */
  more = false
  /** The slab; it grows with what is received. */
  bytes: Uint8Array
  readonly starts: Uint32Array
  readonly ends: Uint32Array
  /** The same object as long as the same peer goes on. */
  readonly from: Array<Address> = []
  /** The two ECN bits of each, 0 where the system does not tell. */
  readonly ecn: Uint8Array
  /** Bytes of the slab in use. */
  used: Bytes = 0

  readonly #mostBytes: Bytes

  /** For at most `capacity` datagrams and `mostBytes` bytes of them; the slab begins with `bytes`. */
  constructor(capacity: number, mostBytes: Bytes, bytes: Bytes = Math.min(firstSlab, mostBytes)) {
    this.#mostBytes = mostBytes
    this.bytes = new Uint8Array(bytes)
    this.starts = new Uint32Array(capacity)
    this.ends = new Uint32Array(capacity)
    this.ecn = new Uint8Array(capacity)
  }

  clear(): void {
    this.count = this.used = 0
    this.more = false
  }

  /** Takes a copy of a datagram; false if there is no room for it. */
  add(datagram: Uint8Array, from: Address): boolean {
    const end = this.used + datagram.length
    if (this.count === this.starts.length || end > this.#mostBytes) return false
    if (end > this.bytes.length) this.#grow(end)
    this.bytes.set(datagram, this.used)
    this.starts[this.count] = this.used
    this.ends[this.count] = this.used = end
    this.ecn[this.count] = 0
    this.from[this.count++] = from
    return true
  }

  #grow(needed: Bytes): void {
    const bytes = new Uint8Array(Math.min(Math.max(2 * this.bytes.length, needed), this.#mostBytes))
    bytes.set(this.bytes.subarray(0, this.used))
    this.bytes = bytes
  }
}

const firstSlab: Bytes = 2_048

/** Calls `visit` with each datagram apart; for those who are in no hurry. */
export const forEachDatagram = (
  received: ReceivedDatagrams,
  visit: (bytes: Uint8Array, from: Address) => void
): number => {
  const { count, starts, ends, from, bytes } = received
  for (let i = 0; i < count; i++) visit(bytes.subarray(starts[i]!, ends[i]!), from[i]!)
  return count
}

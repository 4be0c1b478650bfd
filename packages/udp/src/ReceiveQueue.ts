import type { Address, Bytes } from "@pure-link/wire"

/**
 * Datagrams that wait for the driver, oldest first, bounded in number and in bytes, so that a flood costs no more
 * memory than that: what comes when it is full is dropped.
 */
export class ReceiveQueue {
  readonly #bytes: Array<Uint8Array | undefined>
  readonly #from: Array<Address | undefined>
  readonly #mask: number
  readonly #mostBytes: Bytes
  #head = 0
  #length = 0
  #held: Bytes = 0

  constructor(capacity: number, mostBytes: Bytes) {
    const slots = 2 ** Math.ceil(Math.log2(Math.max(1, capacity)))
    this.#bytes = Array.from({ length: slots })
    this.#from = Array.from({ length: slots })
    this.#mask = slots - 1
    this.#mostBytes = mostBytes
  }

  get length(): number {
    return this.#length
  }

  /** False if the datagram does not fit. */
  add(bytes: Uint8Array, from: Address): boolean {
    if (this.#length > this.#mask || this.#held + bytes.length > this.#mostBytes) return false
    const slot = (this.#head + this.#length) & this.#mask
    this.#bytes[slot] = bytes
    this.#from[slot] = from
    this.#length++
    this.#held += bytes.length
    return true
  }

  /** Hands over the oldest datagram; false if none waits. */
  take(visit: (bytes: Uint8Array, from: Address) => void): boolean {
    if (this.#length === 0) return false
    const slot = this.#head
    const bytes = this.#bytes[slot]!
    const from = this.#from[slot]!
    this.#bytes[slot] = this.#from[slot] = undefined
    this.#head = (slot + 1) & this.#mask
    this.#length--
    this.#held -= bytes.length
    visit(bytes, from)
    return true
  }

  clear(): void {
    while (this.take(() => {}));
  }
}

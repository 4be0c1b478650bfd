import type { ReceivedDatagrams } from "@pure-link/ports"
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

  /** Moves the oldest datagrams, at most `most`, as far as there is room for them. */
  moveTo(received: ReceivedDatagrams, most: number): void {
    while (this.#length > 0 && received.count < most) {
      if (!received.add(this.#bytes[this.#head]!, this.#from[this.#head]!)) return
      this.#drop()
    }
  }

  clear(): void {
    while (this.#length > 0) this.#drop()
  }

  #drop(): void {
    const slot = this.#head
    this.#held -= this.#bytes[slot]!.length
    this.#bytes[slot] = this.#from[slot] = undefined
    this.#head = (slot + 1) & this.#mask
    this.#length--
  }
}

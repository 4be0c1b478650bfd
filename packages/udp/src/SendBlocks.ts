import type { Bytes } from "@pure-link/wire"

/**
 * Memory that holds datagrams from when `send` took them until the system has, in blocks that are filled one after the other
 * and used again. Most sends are done before they return, but the system reports that later, and may keep some while its
 * buffer is full.
 */

/** The largest payload that UDP over IPv4 carries. */
export const largestUdpPayload: Bytes = 65_507

const blockBytes: Bytes = 131_072
const keptBlocks = 16

export class SendBlock {
  readonly bytes = Buffer.allocUnsafeSlow(blockBytes)
  /** Called by the system with the outcome of a datagram. */
  readonly done: (error: Error | null) => void
  #used: Bytes = 0
  #underWay = 0
  #isFilling = true
  readonly #whenFree: (block: SendBlock) => void

  constructor(settle: (error: Error | null) => void, whenFree: (block: SendBlock) => void) {
    this.#whenFree = whenFree
    this.done = (error) => {
      this.#underWay--
      settle(error)
      if (this.#underWay === 0 && !this.#isFilling) this.#whenFree(this)
    }
  }

  hasRoom(length: Bytes): boolean {
    if (this.#underWay === 0) this.#used = 0
    return this.#used + length <= blockBytes
  }

  /** Copies a datagram in, which is under way until `done`, and returns where it starts. */
  add(slab: Uint8Array, offset: number, length: Bytes): number {
    const start = this.#used
    this.bytes.set(slab.subarray(offset, offset + length), start)
    this.#used += length
    this.#underWay++
    return start
  }

  /** Begins to be filled, anew: nothing of it is under way. */
  begin(): void {
    this.#isFilling = true
    this.#used = 0
  }

  /** Is full: free as soon as nothing of it is under way. */
  end(): void {
    this.#isFilling = false
    if (this.#underWay === 0) this.#whenFree(this)
  }
}

export class SendBlocks {
  readonly #settle: (error: Error | null) => void
  readonly #free: Array<SendBlock> = []
  #filling: SendBlock | undefined

  constructor(settle: (error: Error | null) => void) {
    this.#settle = settle
  }

  /** The block to add a datagram of this length to. */
  blockFor(length: Bytes): SendBlock {
    if (this.#filling?.hasRoom(length)) return this.#filling
    this.#filling?.end()
    this.#filling = this.#free.pop() ?? new SendBlock(this.#settle, (block) => this.#keep(block))
    this.#filling.begin()
    return this.#filling
  }

  #keep(block: SendBlock): void {
    if (this.#free.length < keptBlocks) this.#free.push(block)
  }
}

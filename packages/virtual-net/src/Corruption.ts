import type { SeededStream } from "./SeededStream.ts"

/** Damage on the way that the checksum of UDP missed: one bit of a datagram, any of them alike, is flipped. */
export class Corruption {
  readonly #random: SeededStream
  /** What `draw` decided on last. */
  isDue = false
  #place = 0

  constructor(random: SeededStream) {
    this.#random = random
  }

  /** Decides about the next datagram. Takes two draws. */
  draw(chance: number): void {
    this.isDue = this.#random.next() < chance
    this.#place = this.#random.next()
  }

  /** Flips the bit that was drawn. An empty datagram has none. */
  apply(bytes: Uint8Array): void {
    const bit = Math.floor(this.#place * 8 * bytes.length)
    if (bytes.length > 0) bytes[bit >> 3]! ^= 1 << (bit & 7)
  }
}

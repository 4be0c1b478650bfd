import type { Bytes, PacketNumber } from "@pure-link/wire"

/**
 * How much of the window was in use over the last two round trips. A pacer's pause is not want of data (spec §14.4),
 * yet a sender of small portions may pause within each of them and never use its window: growth needs half of the
 * window used (RFC 9002 §7.8).
 */
export class WindowUse {
  /** The most bytes in flight in this round trip and in the one before. */
  #peak: Bytes = 0
  #formerPeak: Bytes = 0
  /** The round trip ends when this number, or a later one, is acknowledged. */
  #roundEnd: PacketNumber = 0

  handleSent(inFlight: Bytes): void {
    if (inFlight > this.#peak) this.#peak = inFlight
  }

  /** `largest` is acknowledged, `next` the number that the next packet will take. */
  handleAcknowledged(largest: PacketNumber, next: PacketNumber, inFlight: Bytes): void {
    if (largest < this.#roundEnd) return
    this.#formerPeak = this.#peak
    this.#peak = inFlight
    this.#roundEnd = next
  }

  /** Numbers begin again at 0, or the window does. */
  restart(): void {
    this.#peak = 0
    this.#formerPeak = 0
    this.#roundEnd = 0
  }

  isHalf(window: Bytes): boolean {
    return 2 * Math.max(this.#peak, this.#formerPeak) >= window
  }
}

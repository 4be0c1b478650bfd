import { type Micros, never, type RefusalReason } from "@pure-link/wire"

/**
 * The back-off of a refused sender (spec §9.10): one packet with records at 1, 3, 7, 15, 31, 63 s after the refusal
 * began, then every 64 s, and nothing else. Only the acknowledgement of such a try, or a higher n, ends it.
 */

const firstDelay: Micros = 1_000_000
const longestDelay: Micros = 64_000_000

export class Refusal {
  reason: RefusalReason | undefined
  /** When the next try is due. */
  tryAt: Micros = never
  /** The epoch of the latest try allowed no records: they follow when it advances. */
  owesRecords = false

  #delay = firstDelay

  get active(): boolean {
    return this.reason !== undefined
  }

  /** REFUSED was heard. True: this is news, a refusal or another reason. */
  hear(now: Micros, reason: RefusalReason): boolean {
    if (this.reason === reason) return false
    if (this.reason === undefined) {
      this.#delay = firstDelay
      this.tryAt = now + firstDelay
      this.owesRecords = false
    }
    this.reason = reason
    return true
  }

  /** A try was sent. The records that one owed do not count as another. */
  handleTry(now: Micros, owesRecords: boolean): void {
    if (!this.owesRecords || now >= this.tryAt) {
      this.#delay = Math.min(this.#delay * 2, longestDelay)
      this.tryAt = now + this.#delay
    }
    this.owesRecords = owesRecords
  }

  end(): void {
    this.reason = undefined
    this.tryAt = never
    this.owesRecords = false
  }
}

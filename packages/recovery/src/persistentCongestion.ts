import { type Micros, never, type PacketNumber } from "@pure-link/wire"
import type { RoundTripTime } from "./roundTripTime.ts"

/**
 * Persistent congestion (RFC 9002 §7.6): everything sent for three probe timeouts was lost. Losses are declared in the
 * order of numbers, so that a run of consecutive lost numbers is a time in which nothing got through. Only flights sent
 * after the first RTT sample count, and after the last collapse: one lost flight collapses the window once.
 */

/** Probe timeouts of silence that make it (RFC 9002 §7.6.1). */
const persistentThreshold = 3

export class PersistentCongestion {
  /** Flights sent before this do not count. */
  #countsFrom: Micros = never
  /** The latest run of consecutive lost numbers; empty when last < first. */
  #first: PacketNumber = 0
  #last: PacketNumber = -1
  #firstSentAt: Micros = 0
  #lastSentAt: Micros = 0

  handleFirstSample(now: Micros): void {
    this.#countsFrom = now
  }

  handleLost(number: PacketNumber, sentAt: Micros): void {
    if (sentAt < this.#countsFrom) return
    if (this.#last < this.#first || number !== this.#last + 1) {
      this.#first = number
      this.#firstSentAt = sentAt
    }
    this.#last = number
    this.#lastSentAt = sentAt
  }

  /** A lost probe of the path proves nothing (spec §14.8): it neither begins nor ends a run, nor does it break one. */
  handleProbeLost(number: PacketNumber): void {
    if (this.#last >= this.#first && number === this.#last + 1) this.#last = number
  }

  /** A number declared lost had arrived after all; `next`, sent at `nextSentAt`, is the next one that is no probe. */
  handleLate(number: PacketNumber, next: PacketNumber, nextSentAt: Micros): void {
    if (number < this.#first || number > this.#last) return
    this.#first = next
    this.#firstSentAt = nextSentAt
  }

  isEstablished(rtt: RoundTripTime): boolean {
    return this.#last > this.#first && this.#lastSentAt - this.#firstSentAt > persistentThreshold * rtt.probeTimeout()
  }

  /** What was sent until now counts no more: it has had its effect, or vanished for another reason. */
  restart(now: Micros): void {
    this.#countsFrom = now
    this.#last = this.#first - 1
  }

  /** Another path: flights count again once its first round trip was measured. */
  forget(): void {
    this.restart(never)
  }
}

import type { Micros } from "@pure-link/wire"
import type { RoundTripTime } from "./roundTripTime.ts"

/**
 * How long a flight that was declared lost may still prove late (spec §14.3). Smoothed RTT alone would be too short:
 * its samples come from the packets that overtook the others. So the largest round trip of any packet lately
 * acknowledged, late ones included, counts as well.
 */

/** The largest round trip is that of the last one to two of these. */
const period: Micros = 1_000_000
/** Round trips after the declaration, and largest round trips after the sending. */
const roundTrips = 2

export class LateWait {
  #largest: Micros = 0
  #formerLargest: Micros = 0
  #periodStart: Micros = 0

  /** An answer settled flights; `age` is the time since the oldest of them was sent. */
  handleSettled(now: Micros, age: Micros): void {
    this.#advance(now)
    if (age > this.#largest) this.#largest = age
  }

  /** The time from which on a flight may be given up. Rises with `declaredAt` and `sentAt`. */
  endsAt(declaredAt: Micros, sentAt: Micros, rtt: RoundTripTime): Micros {
    const afterDeclaration = declaredAt + roundTrips * Math.max(rtt.smoothed, rtt.latest)
    return Math.max(afterDeclaration, sentAt + roundTrips * Math.max(this.#largest, this.#formerLargest))
  }

  #advance(now: Micros): void {
    const elapsed = now - this.#periodStart
    if (elapsed < period) return
    this.#formerLargest = elapsed < 2 * period ? this.#largest : 0
    this.#largest = 0
    this.#periodStart = elapsed < 2 * period ? this.#periodStart + period : now
  }
}

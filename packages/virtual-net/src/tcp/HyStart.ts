import type { Micros } from "@pure-link/wire"

/**
 * When slow start has filled the path, in Linux's form of HyStart (`hystart_update`; not RFC 9406's): a train of
 * acknowledgements that has lasted half the minimal round trip, or eight round trips of one round that all took an
 * eighth longer than the minimal one. It finds once per flow, and once more after each retransmission timeout.
 */

const lowWindow = 16
const trainGap: Micros = 2_000
/** `hystart_ack_delay`: what the acknowledgement's delay and TSO may add to a train, below 2 Gbit/s. */
const acknowledgementDelay: Micros = 1_000
const samplesPerRound = 8
const leastRise: Micros = 4_000
const largestRise: Micros = 16_000

export class HyStart {
  /** The smallest round trip so far (`delay_min`), 0 before the first. It is known to CUBIC's curve too. */
  leastDelay: Micros = 0
  #found = false
  #roundStart: Micros = 0
  #roundEnd = 0
  #trainEnd: Micros = 0
  #leastOfRound: Micros = Number.POSITIVE_INFINITY
  #samples = 0

  /** True when slow start is to end with the window as it is. */
  update(
    now: Micros,
    delay: Micros,
    acknowledged: number,
    next: number,
    window: number,
    inSlowStart: boolean
  ): boolean {
    if (this.leastDelay === 0 || delay < this.leastDelay) this.leastDelay = delay
    if (this.#found || !inSlowStart) return false
    if (acknowledged > this.#roundEnd) this.#beginRound(now, next)
    if (window < lowWindow) return false
    const trainIsLong = this.#extendTrain(now)
    const delayRose = this.#sample(delay)
    this.#found = trainIsLong || delayRose
    return this.#found
  }

  /** After a retransmission timeout. */
  reset(now: Micros, next: number): void {
    this.leastDelay = 0
    this.#found = false
    this.#beginRound(now, next)
  }

  #beginRound(now: Micros, next: number): void {
    this.#roundStart = this.#trainEnd = now
    this.#roundEnd = next
    this.#leastOfRound = Number.POSITIVE_INFINITY
    this.#samples = 0
  }

  #extendTrain(now: Micros): boolean {
    if (now - this.#trainEnd > trainGap) return false
    this.#trainEnd = now
    return now - this.#roundStart > (this.leastDelay + acknowledgementDelay) / 2
  }

  #sample(delay: Micros): boolean {
    this.#leastOfRound = Math.min(this.#leastOfRound, delay)
    if (this.#samples < samplesPerRound) {
      this.#samples++
      return false
    }
    const rise = Math.min(Math.max(this.leastDelay / 8, leastRise), largestRise)
    return this.#leastOfRound > this.leastDelay + rise
  }
}

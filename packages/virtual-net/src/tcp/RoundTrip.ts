import type { Micros } from "@pure-link/wire"

/**
 * Round-trip time and retransmission timeout: RFC 6298 in Linux's form (`tcp_rtt_estimator`), where the variance is the
 * largest mean deviation of the last round trip, at least 200 ms, so that the timeout is the smoothed time and 200 ms
 * on a steady path.
 */

const leastTimeout: Micros = 200_000
const largestTimeout: Micros = 120_000_000
const firstTimeout: Micros = 1_000_000

export class RoundTrip {
  /** 0 before the first sample. */
  smoothed: Micros = 0
  /** Of the whole flow; Linux forgets one after five minutes. */
  minimum: Micros = Number.POSITIVE_INFINITY
  /** The retransmission timeout, back-off included. */
  timeout: Micros = firstTimeout
  #deviation = 0
  #largestDeviation = leastTimeout
  #variance = leastTimeout
  #roundEnd = 0

  /** A segment that was sent once took `sample`; `acknowledged` and `next` tell rounds apart. */
  update(sample: Micros, acknowledged: number, next: number): void {
    if (this.smoothed === 0) {
      this.smoothed = Math.max(1, sample)
      this.#deviation = sample / 2
      this.#variance = this.#largestDeviation = Math.max(2 * sample, leastTimeout)
      this.#roundEnd = next
    } else this.#smooth(sample, acknowledged, next)
    this.timeout = Math.min(this.smoothed + this.#variance, largestTimeout)
  }

  noteMinimum(sample: Micros): void {
    this.minimum = Math.min(this.minimum, Math.max(1, sample))
  }

  backOff(): void {
    this.timeout = Math.min(2 * this.timeout, largestTimeout)
  }

  /** `#deviation` is the mean deviation itself; Linux keeps four times that, which is what the variance is made of. */
  #smooth(sample: Micros, acknowledged: number, next: number): void {
    const error = sample - this.smoothed
    this.smoothed = Math.max(1, this.smoothed + error / 8)
    const change = Math.abs(error) - this.#deviation
    this.#deviation += error < 0 && change > 0 ? change / 32 : change / 4
    this.#largestDeviation = Math.max(this.#largestDeviation, 4 * this.#deviation)
    this.#variance = Math.max(this.#variance, this.#largestDeviation)
    if (acknowledged <= this.#roundEnd) return
    if (this.#largestDeviation < this.#variance) this.#variance -= (this.#variance - this.#largestDeviation) / 4
    this.#roundEnd = next
    this.#largestDeviation = leastTimeout
  }
}

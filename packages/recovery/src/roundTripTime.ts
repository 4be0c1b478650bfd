import { ok as assert } from "node:assert/strict"
import type { Micros } from "@pure-link/wire"

/**
 * The path's round-trip time as RFC 9002 §5 estimates it (spec §14.1). A sample is the time from sending a packet to
 * the answer that acknowledges it as its largest; the peer's own delay is taken off unless that would fall below the
 * minimum. Times that others compute with are whole microseconds; the averages keep their fractions.
 */

/** Round-trip time assumed before any sample (RFC 9002 §6.2.2). */
export const initialRoundTrip: Micros = 333_000
/** Timers are not meant to be finer than this (RFC 9002 §6.1.2). */
export const granularity: Micros = 1_000

export class RoundTripTime {
  latest: Micros = 0
  smoothed: Micros = initialRoundTrip
  variance: Micros = initialRoundTrip / 2
  minimum: Micros = 0
  hasSample = false

  /** Takes a sample and the delay that the peer reported with it. */
  update(sample: Micros, delay: Micros): void {
    assert(sample > 0 && delay >= 0)
    this.latest = sample
    if (this.hasSample) this.#average(sample, delay)
    else this.#begin(sample)
  }

  /** After persistent congestion the path may be another one: the minimum starts again (RFC 9002 §5.2). */
  restartMinimum(): void {
    this.minimum = this.latest
  }

  /** Another path: nothing was measured yet. */
  restart(): void {
    this.latest = 0
    this.smoothed = initialRoundTrip
    this.variance = initialRoundTrip / 2
    this.minimum = 0
    this.hasSample = false
  }

  /**
   * How long a packet may go unanswered before a probe, without back-off (RFC 9002 §6.2.1). Answers are never held
   * back.
   */
  probeTimeout(): Micros {
    return Math.ceil(this.smoothed + Math.max(4 * this.variance, granularity))
  }

  #begin(sample: Micros): void {
    this.hasSample = true
    this.minimum = sample
    this.smoothed = sample
    this.variance = sample / 2
  }

  /** RFC 9002 §5.3: the variance first, from the average before this sample. */
  #average(sample: Micros, delay: Micros): void {
    this.minimum = Math.min(this.minimum, sample)
    const adjusted = sample >= this.minimum + delay ? sample - delay : sample
    this.variance = 0.75 * this.variance + 0.25 * Math.abs(this.smoothed - adjusted)
    this.smoothed = 0.875 * this.smoothed + 0.125 * adjusted
  }
}

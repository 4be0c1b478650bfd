import type { Bytes, Micros } from "@pure-link/wire"

/**
 * Holds a flow to the pacing rule (spec §14.7) from outside: a bucket that fills at 1.25 windows per smoothed round
 * trip, 2 in slow start, and holds 2 ms' worth, 10 to 256 datagrams; what it holds stays when the rate falls. Virtual
 * time has no late timers, so nothing more is granted. Beside it, the most datagrams within any millisecond.
 */

const gain = 1.25
const slowStartGain = 2
const burstTime: Micros = 2_000
const smallestBurst = 10
const largestBurst = 256
const millisecond: Micros = 1_000

export class PacingWatch {
  /** The most datagrams within a millisecond. */
  maxBurst = 0
  /** The most bytes that ever left beyond the rule, and in datagrams of that moment. */
  #excess = 0
  #datagramSize: Bytes = 1_200
  /** Bytes per µs; before the first round trip the rule takes 333 ms. */
  #rate = (slowStartGain * 12_000) / 333_000
  #room: Bytes = smallestBurst * 1_200
  #filledAt: Micros = 0
  /** Times of the datagrams of the last millisecond, in a ring. */
  #times = new Float64Array(1_024)
  #first = 0
  #count = 0

  /** Whole datagrams beyond the rule: less than one is rounding. */
  get datagramsOverPacing(): number {
    return Math.floor(this.#excess / this.#datagramSize)
  }

  setDatagramSize(bytes: Bytes): void {
    this.#datagramSize = bytes
  }

  /** The window or the round trip changed. Until now the better of both rates counts, with its burst. */
  handleRate(now: Micros, window: Bytes, smoothed: Micros, slowStart: boolean): void {
    const rate = ((slowStart ? slowStartGain : gain) * window) / Math.max(1, smoothed)
    this.#fill(now, Math.max(rate, this.#rate))
    this.#rate = rate
  }

  /** A packet left; one that does not ask the pacer (a probe, a question) takes its bytes and is not judged. */
  handleSent(now: Micros, bytes: Bytes, isPaced: boolean): void {
    this.#fill(now, this.#rate)
    this.#room -= bytes
    if (isPaced) this.#excess = Math.max(this.#excess, -this.#room)
    this.#noteTime(now)
  }

  #fill(now: Micros, rate: number): void {
    const filled = this.#room + (now - this.#filledAt) * rate
    this.#room = Math.max(this.#room, Math.min(filled, this.#burst(rate)))
    this.#filledAt = now
  }

  #burst(rate: number): Bytes {
    const datagrams = (rate * burstTime) / this.#datagramSize
    return Math.min(Math.max(datagrams, smallestBurst), largestBurst) * this.#datagramSize
  }

  #noteTime(now: Micros): void {
    const mask = this.#times.length - 1
    while (this.#count > 0 && this.#times[this.#first]! <= now - millisecond) {
      this.#first = (this.#first + 1) & mask
      this.#count--
    }
    if (this.#count === this.#times.length) this.#grow()
    this.#times[(this.#first + this.#count++) & (this.#times.length - 1)] = now
    this.maxBurst = Math.max(this.maxBurst, this.#count)
  }

  #grow(): void {
    const larger = new Float64Array(2 * this.#times.length)
    for (let i = 0; i < this.#count; i++) larger[i] = this.#times[(this.#first + i) & (this.#times.length - 1)]!
    this.#times = larger
    this.#first = 0
  }
}

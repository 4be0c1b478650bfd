import { type Micros, never } from "@pure-link/wire"

/**
 * How long a sender has waited for any answer, and what follows: silent recovery after 2 s and 4 probes (spec §9.8),
 * a report after 10 s (spec §9.9).
 */

const recoveryTime: Micros = 2_000_000
const recoveryProbes = 4
const reportTime: Micros = 10_000_000

export class Silence {
  /** Since when an answer is waited for; never while none is. */
  since: Micros = never
  reported = false
  #probes = 0

  handleSent(now: Micros): void {
    if (this.since === never) this.since = now
  }

  handleProbe(): void {
    this.#probes++
  }

  /** An authenticated answer. True: a reported silence ended. */
  handleAnswer(now: Micros, stillWaiting: boolean): boolean {
    const wasReported = this.reported
    this.reported = false
    this.#probes = 0
    this.since = stillWaiting ? now : never
    return wasReported
  }

  /** Nothing is waited for any more. */
  stopWaiting(): void {
    this.since = never
    this.#probes = 0
  }

  /** Whether packets under the run's epoch have gone unanswered for long enough to offer a new one. */
  isLong(now: Micros): boolean {
    return now - this.since >= recoveryTime
  }

  get probedEnough(): boolean {
    return this.#probes >= recoveryProbes
  }

  get reportAt(): Micros {
    return this.reported ? never : this.since + reportTime
  }
}

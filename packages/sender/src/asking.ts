import type { Micros } from "@pure-link/wire"

/**
 * When a sender that can only wait asks with a PING (spec §9.6): one PTO after the last answer, then doubling up to 1
 * s.
 */

const longestInterval: Micros = 1_000_000

export class Asking {
  #asked = 0
  #askedAt: Micros = -Infinity

  /** When the next question is due. */
  at(answeredAt: Micros, probeTimeout: Micros): Micros {
    const interval = Math.min(probeTimeout * 2 ** Math.min(this.#asked, 20), longestInterval)
    return Math.max(answeredAt, this.#askedAt) + interval
  }

  handleAsked(now: Micros): void {
    this.#asked++
    this.#askedAt = now
  }

  /** Something moved: the next wait starts short again. */
  reset(): void {
    this.#asked = 0
  }
}

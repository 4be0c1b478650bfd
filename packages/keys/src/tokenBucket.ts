import type { Micros } from "@pure-link/wire"

/** How often something costly may be asked for by those who need not be trusted (spec §15.2). */
export class TokenBucket {
  readonly #perSecond: number
  readonly #most: number
  #tokens: number
  #filledAt: Micros = 0

  /** Full at first: `most` at once, `perSecond` in the long run. */
  constructor(perSecond: number, most: number) {
    this.#perSecond = perSecond
    this.#most = most
    this.#tokens = most
  }

  /** Takes a token; false when there is none. */
  take(now: Micros): boolean {
    const elapsed = Math.max(0, now - this.#filledAt)
    this.#tokens = Math.min(this.#most, this.#tokens + (elapsed * this.#perSecond) / 1_000_000)
    this.#filledAt = now
    if (this.#tokens < 1) return false
    this.#tokens -= 1
    return true
  }
}

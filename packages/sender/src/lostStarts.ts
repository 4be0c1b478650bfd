import type { Micros } from "@pure-link/wire"

/**
 * How often LOST may start a fresh run (spec §12.3). A start puts records under the static key (spec §7.8), so there is at
 * most one with records in 2 s. The others only offer an epoch, and after each of them LOST has no effect for a while: 2
 * s, doubling up to 64 s. Progress, and nothing else, makes the next pause short again.
 */

const recordsInterval: Micros = 2_000_000
const firstPause: Micros = 2_000_000
const longestPause: Micros = 64_000_000

export class LostStarts {
  #recordsAt: Micros = -Infinity
  #pausedUntil: Micros = -Infinity
  #pause = firstPause

  /**
   * A LOST for a packet in flight came: how to start, if at all. A run that was never answered in an epoch ≥ 1 begins again
   * without records: who can make a receiver forget such runs one after the other, by replays, would keep a stream under
   * the static key.
   */
  take(now: Micros, wasConfirmed: boolean): "with records" | "offers only" | "not now" {
    if (now < this.#pausedUntil) return "not now"
    if (wasConfirmed && now >= this.#recordsAt + recordsInterval) {
      this.#recordsAt = now
      return "with records"
    }
    this.#pausedUntil = now + this.#pause
    this.#pause = Math.min(this.#pause * 2, longestPause)
    return "offers only"
  }

  /** Records were stored: whatever lost the run before has let one through. */
  handleProgress(): void {
    this.#pausedUntil = -Infinity
    this.#pause = firstPause
  }
}

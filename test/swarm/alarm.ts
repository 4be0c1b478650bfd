import type { Micros } from "@pure-link/wire"
import type { Timeline } from "./timeline.ts"

/** Wakes a machine at its deadline; of several asked wake-ups the earliest counts. */
export class Alarm {
  #at = Number.POSITIVE_INFINITY

  readonly #timeline: Timeline
  readonly #ring: () => void

  constructor(timeline: Timeline, ring: () => void) {
    this.#timeline = timeline
    this.#ring = ring
  }

  set(at: Micros): void {
    if (at >= this.#at || at === Number.POSITIVE_INFINITY) return
    this.#at = at
    this.#timeline.at(at, () => {
      if (this.#at !== at) return
      this.#at = Number.POSITIVE_INFINITY
      this.#ring()
    })
  }
}

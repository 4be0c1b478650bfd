import type { Micros } from "@pure-link/wire"
import type { Process } from "./process.ts"

/** Wakes a machine at its deadline, by its process's clock; of several asked wake-ups the earliest counts. */
export class Alarm {
  #at = Number.POSITIVE_INFINITY

  readonly #process: Process
  readonly #ring: () => void

  constructor(process: Process, ring: () => void) {
    this.#process = process
    this.#ring = ring
  }

  set(at: Micros): void {
    if (at >= this.#at || at === Number.POSITIVE_INFINITY) return
    this.#at = at
    this.#wait(at)
  }

  #wait(at: Micros): void {
    this.#process.at(at, () => {
      if (this.#at !== at) return
      // The clock stood still meanwhile, with its machine suspended.
      if (this.#process.now < at) return this.#wait(at)
      this.#at = Number.POSITIVE_INFINITY
      this.#ring()
    })
  }
}

/** A repeatable source of choices. */
export class Chance {
  #state: number

  constructor(seed: number) {
    this.#state = 1 + ((Math.abs(seed) * 7_919 + 13) % 2_147_483_646)
    for (let i = 0; i < 8; i++) this.below(2)
  }

  /** A whole number from 0 to below the limit. */
  below(limit: number): number {
    this.#state = (this.#state * 48_271) % 2_147_483_647
    return this.#state % limit
  }
}

/**
 * Seeded chance: one small generator (xoshiro128**, seeded by splitmix32), so that a world is a function of its seed and
 * nothing else.
 */
export class Chance {
  readonly #state = new Uint32Array(4)

  constructor(seed: number) {
    let x = seed >>> 0
    for (let i = 0; i < 4; i++) {
      x = (x + 0x9e3779b9) >>> 0
      let z = x
      z = Math.imul(z ^ (z >>> 16), 0x85ebca6b)
      z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35)
      this.#state[i] = z ^ (z >>> 16)
    }
  }

  /** A uniform 32-bit integer. */
  bits(): number {
    const s = this.#state
    const rotate = (value: number, by: number) => (value << by) | (value >>> (32 - by))
    const result = Math.imul(rotate(Math.imul(s[1]!, 5), 7), 9) >>> 0
    const shifted = s[1]! << 9
    s[2]! ^= s[0]!
    s[3]! ^= s[1]!
    s[1]! ^= s[2]!
    s[0]! ^= s[3]!
    s[2]! ^= shifted
    s[3] = rotate(s[3]!, 11)
    return result
  }

  /** A uniform number in [0, 1). */
  unit(): number {
    return this.bits() / 2 ** 32
  }

  /** True with the given probability. */
  happens(probability: number): boolean {
    return this.unit() < probability
  }

  /** A uniform integer in [low, high]. */
  between(low: number, high: number): number {
    return low + Math.floor(this.unit() * (high - low + 1))
  }

  pick<A>(values: ReadonlyArray<A>): A {
    return values[Math.floor(this.unit() * values.length)]!
  }

  fill(bytes: Uint8Array): void {
    for (let i = 0; i < bytes.length; i += 4) {
      const bits = this.bits()
      for (let j = 0; j < 4 && i + j < bytes.length; j++) bytes[i + j] = bits >>> (8 * j)
    }
  }
}

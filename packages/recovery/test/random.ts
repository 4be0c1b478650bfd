/** Numbers of [0, 1) from a seed (mulberry32). */
export const random = (seed: number): (() => number) => {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Whole numbers of [low, high] from a seed. */
export const between = (seed: number): ((low: number, high: number) => number) => {
  const coin = random(seed)
  return (low, high) => low + Math.floor(coin() * (high - low + 1))
}

/**
 * Arguments that no caller should pass, drawn from a seed: values of every type, numbers at every edge, and typed arrays
 * over memory whose margins tell whether anything was written out of bounds.
 */

/** A source of whole numbers below a bound (mulberry32). */
export const seededRandom = (seed: number): ((bound: number) => number) => {
  let state = seed >>> 0
  return (bound) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound
  }
}

const margin = 1_024

export const garbage = (
  random: (bound: number) => number
): { readonly argument: () => unknown; readonly isIntact: () => boolean } => {
  const memory = new Uint8Array(8_192).fill(0x5a)
  const within = memory.length - 2 * margin
  const typedArrays = [
    () => new Uint8Array(memory.buffer, margin + random(within / 2), random(within / 2)),
    () => new Uint8Array(memory.buffer, margin, within),
    () => new Uint32Array(memory.buffer, margin + 4 * random(64), random(64)),
    () => Uint32Array.from({ length: random(8) }, () => random(2_000)),
    () => Float64Array.from({ length: random(8) }, () => random(2_000)),
    () => new Float64Array(memory.buffer, margin + 8 * random(64), random(64)),
    () => new Int8Array(4),
    () => new BigUint64Array(2),
    () => new DataView(memory.buffer),
    () => memory.buffer.slice(0, 8)
  ]
  const values = [undefined, null, true, "12", "", Symbol("s"), 12n, {}, [], [1, 2], () => 1, new Date(0), Number.NaN]
  const numbers = [0, -0, 1, 12, 16, 28, 45, 512, -1, 0.5, 2 ** 31, 2 ** 32, 2 ** 53 - 1, 2 ** 53, 1e300, -Infinity]
  const argument = (): unknown => {
    const kind = random(10)
    if (kind < 4) return typedArrays[random(typedArrays.length)]!()
    if (kind < 7) return numbers[random(numbers.length)]
    if (kind < 9) return random(4_096)
    return values[random(values.length)]
  }
  const isIntact = (): boolean =>
    memory.subarray(0, margin).every((byte) => byte === 0x5a) && memory.subarray(-margin).every((byte) => byte === 0x5a)
  return { argument, isIntact }
}

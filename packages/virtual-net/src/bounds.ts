/** What numbers an option may be; a wrong one is told by name at once, not met as a strange course of events later. */

/** At least `least`; Infinity is allowed. */
export const atLeast = (name: string, value: number, least: number): void => {
  if (!(value >= least)) throw new RangeError(`${name} must be a number of at least ${least}, but is ${value}`)
}

/** Finite, and at least 0. */
export const atLeastZero = (name: string, value: number): void => {
  if (!(value >= 0 && value < Infinity)) throw new RangeError(`${name} must be finite and at least 0, but is ${value}`)
}

export const probability = (name: string, value: number): void => {
  if (!(value >= 0 && value <= 1)) throw new RangeError(`${name} must be a probability from 0 to 1, but is ${value}`)
}

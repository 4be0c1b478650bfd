/**
 * Scripts: the inputs of the machine targets. A script is a row of steps, each of 6 bytes that say how, and a body of
 * bytes. Whatever the bytes are, they are a script: a length that is too great ends where the input ends.
 */
export interface Step {
  /** Target-specific choices, all 8 bits of each. */
  readonly how: number
  readonly choice: number
  readonly number: number
  readonly time: number
  readonly body: Uint8Array
}

const stepHead = 6
/** What a datagram of 1,452 B has room for, header and tag apart. */
export const longestBody = 1_410

export const readScript = (input: Uint8Array): ReadonlyArray<Step> => {
  const steps: Array<Step> = []
  for (let at = 0; at + stepHead <= input.length;) {
    const length = Math.min(((input[at + 4]! << 8) | input[at + 5]!) % (longestBody + 1), input.length - at - stepHead)
    const body = input.subarray(at + stepHead, at + stepHead + length)
    steps.push({ how: input[at]!, choice: input[at + 1]!, number: input[at + 2]!, time: input[at + 3]!, body })
    at += stepHead + length
  }
  return steps
}

export const writeScript = (steps: ReadonlyArray<Step>): Uint8Array => {
  const out: Array<number> = []
  for (const { how, choice, number, time, body } of steps) {
    out.push(how, choice, number, time, body.length >>> 8, body.length & 0xff, ...body)
  }
  return Uint8Array.from(out)
}

/** Time in a step: none, or a power of two of microseconds up to 134 s. */
export const timeOf = (step: Step): number => (step.time === 0 ? 0 : 2 ** (step.time % 28))

/** How far a number stands from the next one: mostly it is that, else behind, a little ahead, far ahead, or the last. */
export const numberOf = (step: Step, next: number): number => {
  const { number } = step
  if (number < 0x80) return next
  if (number < 0xb0) return Math.max(0, next - 1 - (number & 0x3f))
  if (number < 0xf8) return Math.min(Number.MAX_SAFE_INTEGER, next + 2 ** (number - 0xb0 < 53 ? number - 0xb0 : 3))
  return Number.MAX_SAFE_INTEGER - (0xff - number)
}

import type { Chance } from "../world/chance.ts"
import { longestBody, readScript, type Step, writeScript } from "./script.ts"

/**
 * How one input becomes another: bits, bytes and blocks anywhere; integers and varints at the edges of their ranges;
 * pieces of two inputs; and for scripts whole steps, so that a mutant is still a conversation.
 */

const longestInput = 16_384

type Mutator = (input: Uint8Array, chance: Chance, other: () => Uint8Array) => Uint8Array

const at = (input: Uint8Array, chance: Chance): number => chance.between(0, Math.max(0, input.length - 1))

const replace = (input: Uint8Array, from: number, removed: number, inserted: Uint8Array): Uint8Array => {
  const end = Math.min(input.length, from + removed)
  const out = new Uint8Array(from + inserted.length + input.length - end)
  out.set(input.subarray(0, from))
  out.set(inserted, from)
  out.set(input.subarray(end), from + inserted.length)
  return out
}

const flipBit: Mutator = (input, chance) => {
  const out = input.slice()
  if (out.length > 0) out[at(out, chance)]! ^= 1 << chance.between(0, 7)
  return out
}

const setByte: Mutator = (input, chance) => {
  const out = input.slice()
  if (out.length > 0) out[at(out, chance)] = chance.pick([0, 1, 0x7f, 0x80, 0xff, chance.between(0, 255)])
  return out
}

const addToByte: Mutator = (input, chance) => {
  const out = input.slice()
  if (out.length > 0) out[at(out, chance)]! += chance.between(-4, 4)
  return out
}

const removeBlock: Mutator = (input, chance) =>
  replace(input, at(input, chance), chance.between(1, chance.pick([1, 4, 64, 512])), new Uint8Array(0))

const repeatBlock: Mutator = (input, chance) => {
  const from = at(input, chance)
  return replace(input, at(input, chance), 0, input.slice(from, from + chance.between(1, chance.pick([2, 9, 64]))))
}

const insertRandom: Mutator = (input, chance) => {
  const block = new Uint8Array(chance.between(1, chance.pick([1, 8, 40])))
  chance.fill(block)
  return replace(input, at(input, chance), 0, block)
}

const truncate: Mutator = (input, chance) => input.slice(0, chance.between(0, input.length))

const splice: Mutator = (input, chance, other) => {
  const second = other()
  const head = input.subarray(0, chance.between(0, input.length))
  return replace(head, head.length, 0, second.slice(chance.between(0, second.length)))
}

/** Integers that stand at the edge of something in spec §3, §4, §17 or of a number's own size. */
const edges = [
  0,
  1,
  2,
  7,
  8,
  31,
  32,
  63,
  64,
  65,
  255,
  256,
  1_300,
  1_301,
  16_383,
  16_384,
  65_535,
  65_536,
  65_537,
  16_777_215,
  16_777_216,
  2 ** 30 - 1,
  2 ** 30,
  2 ** 31,
  2 ** 32 - 1,
  2 ** 32,
  2 ** 53 - 1,
  2 ** 53
]

const bigEndian = (value: number, length: number): Uint8Array => {
  const out = new Uint8Array(length)
  let rest = BigInt(value)
  for (let i = length - 1; i >= 0; i--, rest >>= 8n) out[i] = Number(rest & 0xffn)
  return out
}

const setInteger: Mutator = (input, chance) => {
  const length = chance.pick([1, 2, 3, 4, 8])
  return replace(input, at(input, chance), length, bigEndian(chance.pick(edges) + chance.between(-1, 1) + 1, length))
}

/** A varint of any of the four lengths, of an edge's value, in place of as many bytes or between them. */
const setVarint: Mutator = (input, chance) => {
  const length = chance.pick([1, 2, 4, 8])
  const varint = bigEndian(chance.pick(edges), length)
  varint[0] = (varint[0]! & 0x3f) | (Math.log2(length) << 6)
  return replace(input, at(input, chance), chance.happens(0.7) ? length : 0, varint)
}

const byteMutators: ReadonlyArray<Mutator> = [
  flipBit,
  flipBit,
  setByte,
  addToByte,
  removeBlock,
  repeatBlock,
  insertRandom,
  truncate,
  splice,
  setInteger,
  setVarint
]

/** A mutation of the steps of a script. */
const mutateSteps = (steps: Array<Step>, chance: Chance, other: () => Uint8Array): void => {
  const index = chance.between(0, Math.max(0, steps.length - 1))
  const step = steps[index]
  const borrowed = () => chance.pick(readScript(other()))
  switch (step === undefined ? 3 : chance.between(0, 9)) {
    case 0:
      steps.splice(index, 1)
      return
    case 1:
      steps.splice(chance.between(0, steps.length), 0, step!)
      return
    case 2: {
      const to = chance.between(0, steps.length - 1)
      steps[index] = steps[to]!
      steps[to] = step!
      return
    }
    case 3:
    case 4: {
      const more = borrowed()
      if (more !== undefined) steps.splice(chance.between(0, steps.length), 0, more)
      return
    }
    case 5:
      steps[index] = { ...step!, how: chance.between(0, 255), choice: chance.between(0, 255) }
      return
    case 6:
      steps[index] = { ...step!, number: chance.between(0x70, 0xff), time: chance.between(0, 40) }
      return
    case 7: {
      // Frames of another step join this one's, before or after.
      const more = borrowed()?.body ?? new Uint8Array(0)
      const body = chance.happens(0.5) ? [...step!.body, ...more] : [...more, ...step!.body]
      steps[index] = { ...step!, body: Uint8Array.from(body.slice(0, longestBody)) }
      return
    }
    default:
      steps[index] = {
        ...step!,
        body: mutateBytes(step!.body, chance, () => borrowed()?.body ?? new Uint8Array(0)).slice(0, longestBody)
      }
  }
}

const mutateBytes: Mutator = (input, chance, other) => {
  let out = input
  for (let left = chance.pick([1, 1, 1, 2, 4]); left > 0; left--) out = chance.pick(byteMutators)(out, chance, other)
  return out
}

/** A mutant of an input; `other` gives inputs to take pieces from. */
export const mutate = (input: Uint8Array, isScript: boolean, chance: Chance, other: () => Uint8Array): Uint8Array => {
  if (!isScript || chance.happens(0.1)) return mutateBytes(input, chance, other).slice(0, longestInput)
  const steps = [...readScript(input)]
  for (let left = chance.pick([1, 1, 2, 4, 8]); left > 0; left--) mutateSteps(steps, chance, other)
  return writeScript(steps).slice(0, longestInput)
}

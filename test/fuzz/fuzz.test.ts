import { assert, describe, it } from "@effect/vitest"
import { Chance } from "../world/chance.ts"
import { loadCorpus } from "./corpus.ts"
import { mutate } from "./mutation.ts"
import { tryInput } from "./search.ts"
import { targets } from "./targets.ts"

/**
 * What the search (main.ts) found worth keeping holds still, and so do mutants of it, the same ones in each run:
 * `PURE_LINK_FUZZ_SEED` chooses others, `PURE_LINK_FUZZ_MUTANTS` how many; the search goes on with random ones for as long as one likes.
 */

const seed = Number(process.env["PURE_LINK_FUZZ_SEED"] ?? 1)
const mutants = Number(process.env["PURE_LINK_FUZZ_MUTANTS"] ?? 500)

const check = (target: (typeof targets)[number], input: Uint8Array): void => {
  const error = tryInput(target, input)
  if (error === undefined) return
  const text = Buffer.from(input).toString("base64")
  throw new Error(
    `seed ${seed}: ${error.message}\nreplay: node test/fuzz/main.ts --target ${target.name} --replay ${text}`,
    { cause: error }
  )
}

describe(`fuzzing, seed ${seed}`, () => {
  for (const target of targets) {
    it(`${target.name}: every kept input holds`, () => {
      const kept = loadCorpus(target.name)
      assert.isAbove(kept.length, 0)
      for (const input of [...target.seeds(), ...kept]) check(target, input)
    })

    it(`${target.name}: ${mutants} mutants of them hold`, () => {
      const chance = new Chance(seed)
      const kept = [...target.seeds(), ...loadCorpus(target.name)]
      const other = () => chance.pick(kept)
      for (let i = 0; i < mutants; i++) check(target, mutate(other(), target.isScript, chance, other))
    })
  }
})

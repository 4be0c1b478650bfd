/**
 * The property test of the two machines: random worlds against the reference model, and the proof that the worlds
 * notice.
 */
import { assert, describe, it } from "@effect/vitest"
import { faults, World } from "./world.ts"

describe("random worlds", () => {
  it("a thousand of them break no guarantee", () => {
    for (let seed = 1; seed <= 1_000; seed++) {
      try {
        new World(seed).run()
      } catch (error) {
        throw new Error(
          `seed ${seed}: ${(error as Error).message}\nreplay: npm run swarm -- --seeds 1 --from ${seed}`,
          { cause: error }
        )
      }
    }
  })

  for (const fault of faults) {
    it(`the deliberate fault ${fault} is caught within 200 seeds`, () => {
      let caught: string | undefined
      for (let seed = 1; seed <= 200 && caught === undefined; seed++) {
        try {
          new World(seed, { fault }).run()
        } catch (error) {
          caught = (error as Error).message
        }
      }
      assert.isDefined(caught)
    })
  }
})

/**
 * The property test of the two machines: random worlds against the reference model, and the proof that the worlds
 * notice.
 */
import { assert, describe, it } from "@effect/vitest"
import { caughtBy, type Fault, faults } from "./fault.ts"
import { floor, Tally } from "./tally.ts"
import { Violation } from "./violation.ts"
import { World } from "./world.ts"

/** What the check that guards the fault's rule said of one world; undefined when it found nothing. */
const findingOf = (seed: number, fault: Fault): string | undefined => {
  try {
    new World(seed, { fault }).run()
  } catch (error) {
    if (error instanceof Violation && caughtBy[fault].test(error.message)) return error.message
  }
  return undefined
}

describe("random worlds", () => {
  it("a thousand of them break no guarantee, and meet all the trouble there is", () => {
    const tally = new Tally()
    for (let seed = 1; seed <= 1_000; seed++) {
      const world = new World(seed)
      try {
        world.run()
      } catch (error) {
        const replay = `npm run swarm -- --trace --seeds 1 --from ${seed}`
        throw new Error(`seed ${seed}: ${(error as Error).message}\nreplay: ${replay}`, { cause: error })
      }
      tally.addAll(world.tally)
    }
    assert.deepStrictEqual(tally.missing(floor), [])
  })

  for (const fault of faults) {
    it(`the deliberate fault ${fault} is caught by its check within 200 seeds`, () => {
      let finding: string | undefined
      for (let seed = 1; seed <= 200 && finding === undefined; seed++) finding = findingOf(seed, fault)
      assert.isDefined(finding)
    })
  }
})

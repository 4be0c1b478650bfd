import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Cause from "effect/Cause"
import { Sim, SimStopped } from "./Sim.ts"

describe("Sim", () => {
  it("lets hours pass at once and ends sleeps at their own times", () => {
    const log: Array<string> = []
    const sleeper = (name: string, pause: number) =>
      Effect.gen(function* () {
        for (let i = 0; i < 2; i++) {
          yield* Effect.sleep(pause)
          log.push(`${name}${yield* Clock.currentTimeMillis}`)
        }
      })
    const sim = new Sim()
    const exit = sim.run(
      Effect.gen(function* () {
        yield* Fiber.awaitAll([yield* Effect.forkChild(sleeper("a", 10)), yield* Effect.forkChild(sleeper("b", 5))])
        yield* Effect.sleep("3 hours")
        return yield* Clock.currentTimeMillis
      })
    )
    assert.deepStrictEqual(exit, Exit.succeed(20 + 3 * 3_600_000))
    assert.deepStrictEqual(log, ["b5", "a10", "b10", "a20"])
    assert.strictEqual(sim.now, 10_800_020_000)
  })

  it("counts whole microseconds, upwards, and does not trip over binary fractions", () => {
    const after = (millis: number) => {
      const sim = new Sim()
      sim.run(Effect.sleep(millis))
      return sim.now
    }
    assert.deepStrictEqual([16.1, 8.2, 1.001, 0.0001, 0].map(after), [16_100, 8_200, 1_001, 1, 0])
  })

  it("fires timers by time, then in the order of setting, and not those that were cancelled", () => {
    const sim = new Sim()
    const log: Array<string> = []
    const note = (name: string) => () => void log.push(`${name}@${sim.now}`)
    sim.run(
      Effect.sync(() => {
        sim.at(20, note("late"))
        sim.at(10, note("first"))
        sim.at(10, note("second"))
        sim.at(15, note("cancelled")).cancel()
        sim.at(-5, note("at once"))
      }).pipe(Effect.andThen(Effect.sleep("1 second")))
    )
    assert.deepStrictEqual(log, ["at once@0", "first@10", "second@10", "late@20"])
  })

  it("takes timers out in order, whatever the order they came in", () => {
    const sim = new Sim()
    const fired: Array<number> = []
    let state = 1
    const expected: Array<number> = []
    for (let i = 0; i < 2_000; i++) {
      state = (state * 48_271) % 2_147_483_647
      const at = state % 500
      expected.push(at * 10_000 + i)
      sim.at(at, () => void fired.push(at * 10_000 + i))
    }
    sim.run(Effect.sleep("1 second"))
    assert.deepStrictEqual(
      fired,
      expected.sort((a, b) => a - b)
    )
  })

  it("ends a deadlock with a defect, after running finalizers", () => {
    let finalized = false
    const stuck = Effect.never.pipe(
      Effect.ensuring(
        Effect.sync(() => {
          finalized = true
        })
      )
    )
    assert.strictEqual(reasonOf(new Sim().run(Effect.andThen(Effect.sleep(5), stuck))), "deadlock at 5000")
    assert.isTrue(finalized)
  })

  it("ends a program that goes on for ever, in time or without", () => {
    const ticking = new Sim().run(Effect.forever(Effect.sleep("1 minute")), { micros: 200_000_000 })
    assert.strictEqual(reasonOf(ticking), "limit at 180000000")
    const spinning = new Sim().run(Effect.forever(Effect.yieldNow), { tasksAtOnce: 10_000 })
    assert.strictEqual(reasonOf(spinning), "livelock at 0")
    assert.strictEqual(reasonOf(new Sim().run(Effect.never, { micros: 1 })), "deadlock at 0")
  })

  it("keeps time from one run to the next", () => {
    const sim = new Sim()
    sim.run(Effect.sleep(1))
    assert.deepStrictEqual(sim.run(Effect.andThen(Effect.sleep(2), Clock.currentTimeMillis)), Exit.succeed(3))
  })
})

const reasonOf = (exit: Exit.Exit<unknown, unknown>): string => {
  const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
  return defect instanceof SimStopped ? `${defect.reason} at ${defect.at}` : String(defect)
}

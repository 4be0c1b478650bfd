import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { type StoredAt, StoredLog } from "./StoredLog.ts"
import { Watched } from "./Watched.ts"

const at = (through: number, time: number): StoredAt => ({ through, at: time, atMicros: time * 1_000 })

describe("StoredLog", () => {
  it.effect("lets go whoever waits for a number that an advance covers, and nobody else", () =>
    Effect.gen(function* () {
      const log = new StoredLog<string>(10, at(10, 0))
      const wait = (number: number) => Effect.forkChild(log.wait(number), { startImmediately: true })
      const [early, twelve, again, late] = [yield* wait(10), yield* wait(12), yield* wait(12), yield* wait(14)]
      log.advance(at(13, 5))
      assert.deepStrictEqual(early.pollUnsafe(), Exit.succeed(at(10, 0)))
      assert.deepStrictEqual(yield* Fiber.join(twelve), at(13, 5))
      assert.deepStrictEqual(yield* Fiber.join(again), at(13, 5))
      assert.isUndefined(late.pollUnsafe())
      log.advance(at(12, 6))
      assert.strictEqual(log.through, 13)
      log.advance(at(14, 7))
      assert.deepStrictEqual(yield* Fiber.join(late), at(14, 7))
    })
  )

  it.effect("knows afterwards when a number was stored, as far as its ring reaches", () =>
    Effect.gen(function* () {
      const log = new StoredLog<string>(0, at(0, 0))
      for (let n = 2; n <= 20_000; n += 2) log.advance(at(n, n))
      for (const n of [19_999, 20_000, 15_001, 12_345]) {
        assert.deepStrictEqual(yield* log.wait(n), at(n + (n % 2), n + (n % 2)))
      }
      assert.isAbove((yield* log.wait(1)).at, 11_000)
    })
  )

  it.effect("fails present and future waits once it ended, but not what was stored before", () =>
    Effect.gen(function* () {
      const log = new StoredLog<string>(0, at(0, 0))
      log.advance(at(3, 1))
      const waiting = yield* Effect.forkChild(log.wait(4), { startImmediately: true })
      log.fail("closed")
      assert.deepStrictEqual(yield* Fiber.await(waiting), Exit.fail("closed"))
      assert.deepStrictEqual(yield* Effect.exit(log.wait(5)), Exit.fail("closed"))
      assert.deepStrictEqual(yield* log.wait(3), at(3, 1))
    })
  )
})

describe("Watched", () => {
  it.effect("shows the present value, then newer ones, and to a slow reader the newest", () =>
    Effect.gen(function* () {
      const watched = new Watched(1)
      const seen: Array<number> = []
      const reader = yield* watched.changes.pipe(
        Stream.take(3),
        Stream.runForEach((value) =>
          Effect.andThen(
            Effect.sync(() => seen.push(value)),
            Effect.yieldNow
          )
        ),
        Effect.forkChild({ startImmediately: true })
      )
      watched.set(2)
      watched.set(3)
      yield* Effect.yieldNow
      yield* Effect.yieldNow
      yield* Effect.yieldNow
      watched.set(4)
      yield* Fiber.join(reader)
      assert.strictEqual(seen[0], 1)
      assert.strictEqual(seen[2], 4)
      assert.isTrue(seen[1] === 2 || seen[1] === 3)
    })
  )
})

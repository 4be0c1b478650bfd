import { assert, describe, it } from "@effect/vitest"
import { Entropy, Inbox, Outbox } from "@pure-link/ports"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { InboxMemory, OutboxMemory } from "../src/index.ts"
import { intent, records, stream } from "./orders.ts"

/** Stores in memory take calls at once, and in the line when somebody is before them: both at random, and from within. */

/** Numbers below a bound, the same for the same seed. */
const numbersOf = (seed: number) => {
  let state = seed
  return (bound: number): number => (state = (state * 48_271) % 2_147_483_647) % bound
}

const outboxOf = (backing: OutboxMemory.Backing, limitBytes: number, seed: number) =>
  OutboxMemory.layer({ stream, backing, limitBytes }).pipe(Layer.provide(Entropy.layerSeeded(seed)))

describe("an outbox in memory with little room", () => {
  const seeds = 40

  it.live(
    `keeps the order of its calls, its limit and its numbers, whatever is interrupted (seeds 1 to ${seeds})`,
    () =>
      Effect.gen(function* () {
        for (let seed = 1; seed <= seeds; seed++) {
          const below = numbersOf(seed)
          const backing = new OutboxMemory.Backing()
          const limit = 300 + below(2_000)
          const appended: Array<{ readonly first: number; readonly count: number; readonly call: number }> = []
          for (let life = 0; life < 3; life++) {
            const scope = yield* Scope.make()
            const outbox = yield* Outbox.pipe(
              Effect.provide(yield* Layer.buildWithScope(outboxOf(backing, limit, 10 * seed + life), scope))
            )
            const appending: Array<Fiber.Fiber<void, unknown>> = []
            for (let step = 0; step < 120; step++) {
              const what = below(8)
              const { last, lowestHeld } = outbox.state()
              if (what < 4) {
                const sizes = Uint32Array.from({ length: below(4) }, () => below(60))
                const call = 1_000 * life + step
                const one = Effect.map(
                  outbox.append({ bytes: new Uint8Array(sizes.reduce((a, b) => a + b, 0)), sizes }),
                  (first) => {
                    if (sizes.length > 0) appended.push({ first, count: sizes.length, call })
                  }
                )
                appending.push(yield* Effect.forkChild(one, { startImmediately: true }))
              } else if (what === 4) {
                if (last >= lowestHeld) yield* outbox.removeThrough(lowestHeld - 1 + below(last - lowestHeld + 2))
              } else if (what === 5) {
                const one = appending[below(Math.max(1, appending.length))]
                if (one !== undefined) yield* Fiber.interrupt(one)
              } else if (what === 6) yield* Effect.yieldNow
              assert.isAtMost(outbox.state().heldBytes, limit)
            }
            for (let turn = 0; turn < 300 && appending.some((one) => one.pollUnsafe() === undefined); turn++) {
              yield* outbox.removeThrough(outbox.state().last)
              yield* Effect.yieldNow
            }
            for (const one of appending) assert.isDefined(one.pollUnsafe(), `seed ${seed}: an append waits for ever`)
            const before = outbox.state()
            yield* Scope.close(scope, Exit.void)
            const state = Effect.map(Outbox, (opened) => opened.state())
            const { last, lives, lowestHeld } = yield* Effect.provide(state, outboxOf(backing, limit, 3))
            assert.deepStrictEqual({ ...before, last, lives, lowestHeld }, before)
          }
          appended.sort((a, b) => a.first - b.first)
          for (const [i, { call, first }] of appended.entries()) {
            const former = appended[i - 1]
            if (former === undefined) continue
            assert.isAtLeast(first, former.first + former.count)
            assert.isAbove(call, former.call, `seed ${seed}`)
          }
        }
      })
  )

  it.effect("tells of a defect in a removal as an error, and stands as before", () => {
    const backing = new OutboxMemory.Backing()
    return Effect.gen(function* () {
      const outbox = yield* Outbox
      yield* outbox.append(records(2, 5))
      Object.defineProperty(backing.records, "shift", { configurable: true, value: () => assert.fail("a fault") })
      assert.deepInclude(yield* Effect.flip(outbox.removeThrough(2)), { _tag: "StoreError", reason: "failed" })
      Reflect.deleteProperty(backing.records, "shift")
      assert.strictEqual(yield* outbox.append(records(1, 5)), 3)
    }).pipe(Effect.provide(outboxOf(backing, 10_000, 3)))
  })
})

describe("who waits for an inbox in memory to grow", () => {
  const position = Effect.map(Inbox, (inbox) => inbox.lastPosition("orders"))
  const acts: Record<
    string,
    (inbox: Inbox["Service"], at: number, close: Effect.Effect<void>) => Effect.Effect<unknown, unknown>
  > = {
    prune: (inbox, at) => inbox.prune("orders", at),
    acknowledge: (inbox, at) => inbox.acknowledge("orders", "reader", at),
    "commit more": (inbox, at) => (at < 5 ? inbox.commit([intent(at + 1)]) : Effect.void),
    "close it": (_inbox, _at, close) => close
  }
  for (const [name, act] of Object.entries(acts)) {
    it.live(`may ${name} from within the commit that it is resumed by`, () =>
      Effect.gen(function* () {
        const backing = new InboxMemory.Backing()
        const scope = yield* Scope.make()
        const inbox = yield* Inbox.pipe(
          Effect.provide(yield* Layer.buildWithScope(InboxMemory.layer({ backing }), scope))
        )
        const seen: Array<number> = []
        const close = Scope.close(scope, Exit.void)
        const each = (at: number) => {
          seen.push(at)
          return at === 0 ? Effect.void : act(inbox, at, close)
        }
        const reading = yield* Effect.forkChild(Stream.runForEach(inbox.grown("orders"), each), {
          startImmediately: true
        })
        for (let turn = 0; turn < 5; turn++) yield* Effect.yieldNow
        assert.strictEqual((yield* inbox.commit([intent(1)]))[0]?._tag, "Stored")
        for (let turn = 0; turn < 50; turn++) yield* Effect.yieldNow
        const last = name === "commit more" ? 5 : 1
        assert.strictEqual(seen.at(-1), last)
        yield* Fiber.interrupt(reading)
        yield* close
        assert.strictEqual(yield* Effect.provide(position, InboxMemory.layer({ backing })), last)
      })
    )
  }
})

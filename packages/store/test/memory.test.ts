import { assert, describe, it } from "@effect/vitest"
import { Entropy, Inbox, Outbox, recordOverhead, StoreError } from "@pure-link/ports"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { InboxMemory, OutboxMemory } from "../src/index.ts"

/** What only a slow or broken store shows: the moments around a commit, held still. */

const stream = { source: "shop", input: "orders", shape: 1n }
const one = { bytes: Uint8Array.of(1), sizes: Uint32Array.of(1) }
const intent = (first: number) => ({
  source: "shop",
  input: "orders",
  generation: 1n,
  lives: [{ life: 1n, first: 1 }],
  batch: { first, ...one }
})
const outboxLayer = (options: Omit<OutboxMemory.Options, "stream">) =>
  Layer.provide(OutboxMemory.layer({ stream, ...options }), Entropy.layerSeeded(1))
const full = new StoreError({ reason: "full", file: "memory", detail: "no space left", remedy: "make room" })

/** A disk that stands still until `go` is open; `begun` opens when a commit waits for it. */
const gate = () => {
  const begun = Latch.makeUnsafe()
  const go = Latch.makeUnsafe()
  return { begun, go, beforeCommit: Effect.andThen(begun.open, go.await) }
}

describe("a store in the middle of a commit", () => {
  it.effect("completes an append that has begun, and the interrupter waits for it", () =>
    Effect.gen(function* () {
      const { beforeCommit, begun, go } = gate()
      yield* Effect.gen(function* () {
        const outbox = yield* Outbox
        const appending = yield* Effect.forkChild(outbox.append(one), { startImmediately: true })
        yield* begun.await
        const interrupting = yield* Effect.forkChild(Fiber.interrupt(appending), { startImmediately: true })
        yield* Effect.yieldNow
        assert.isUndefined(interrupting.pollUnsafe())
        assert.strictEqual(outbox.state().last, 0)
        yield* go.open
        yield* Fiber.join(interrupting)
        assert.strictEqual(outbox.state().last, 1)
      }).pipe(Effect.provide(outboxLayer({ beforeCommit })))
    })
  )

  it.effect("gathers what comes meanwhile into the next one", () =>
    Effect.gen(function* () {
      const { beforeCommit, begun, go } = gate()
      const backing = new OutboxMemory.Backing()
      yield* Effect.gen(function* () {
        const outbox = yield* Outbox
        const first = yield* Effect.forkChild(outbox.append(one), { startImmediately: true })
        yield* begun.await
        const rest = yield* Effect.forkChild(
          Effect.all(
            Array.from({ length: 50 }, () => outbox.append(one)),
            { concurrency: "unbounded" }
          ),
          { startImmediately: true }
        )
        yield* go.open
        yield* Fiber.join(first)
        assert.strictEqual((yield* Fiber.join(rest)).at(-1), 51)
        assert.strictEqual(backing.transactions, 2)
      }).pipe(Effect.provide(outboxLayer({ beforeCommit, backing })))
    })
  )

  it.effect("shows a cursor and a position only after the commit returned", () =>
    Effect.gen(function* () {
      const { beforeCommit, begun, go } = gate()
      yield* Effect.gen(function* () {
        const inbox = yield* Inbox
        const committing = yield* Effect.forkChild(inbox.commit([intent(1)]), { startImmediately: true })
        yield* begun.await
        assert.isUndefined(inbox.cursor(stream))
        assert.strictEqual(inbox.lastPosition("orders"), 0)
        yield* go.open
        yield* Fiber.join(committing)
        assert.strictEqual(inbox.cursor(stream)?.n, 1)
        assert.strictEqual(inbox.lastPosition("orders"), 1)
      }).pipe(Effect.provide(InboxMemory.layer({ beforeCommit })))
    })
  )

  it.effect("that stops there has stored nothing, and whoever waits hears of it", () =>
    Effect.gen(function* () {
      const { beforeCommit, begun } = gate()
      const backing = new InboxMemory.Backing()
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(InboxMemory.layer({ backing, beforeCommit }), scope)
      const commit = Effect.provide(
        Effect.flatMap(Inbox, (inbox) => inbox.commit([intent(1)])),
        context
      )
      const committing = yield* Effect.forkChild(Effect.flip(commit), { startImmediately: true })
      yield* begun.await
      const waiting = yield* Effect.forkChild(Effect.flip(commit), { startImmediately: true })
      yield* Scope.close(scope, Exit.void)
      for (const fiber of [committing, waiting]) assert.strictEqual((yield* Fiber.join(fiber)).reason, "failed")
      assert.strictEqual((yield* Effect.flip(commit)).reason, "failed")
      yield* Effect.gen(function* () {
        const inbox = yield* Inbox
        assert.isUndefined(inbox.cursor(stream))
        assert.strictEqual((yield* inbox.commit([intent(1)]))[0]?._tag, "Stored")
      }).pipe(Effect.provide(InboxMemory.layer({ backing })))
    })
  )

  it.effect("that fails says so, has stored nothing, and takes the same again", () =>
    Effect.gen(function* () {
      let broken = true
      const beforeCommit = Effect.suspend(() => (broken ? Effect.fail(full) : Effect.void))
      yield* Effect.gen(function* () {
        const [inbox, outbox] = [yield* Inbox, yield* Outbox]
        assert.strictEqual((yield* Effect.flip(outbox.append(one)))._tag, "StoreError")
        assert.strictEqual((yield* Effect.flip(inbox.commit([intent(1)]))).reason, "full")
        assert.deepInclude(outbox.state(), { last: 0, heldBytes: 0, lives: [] })
        broken = false
        assert.strictEqual(yield* outbox.append(one), 1)
        assert.deepStrictEqual(outbox.state().lives, [{ life: outbox.state().life, first: 1 }])
        assert.strictEqual((yield* inbox.commit([intent(1)]))[0]?._tag, "Stored")
      }).pipe(Effect.provide(Layer.merge(InboxMemory.layer({ beforeCommit }), outboxLayer({ beforeCommit }))))
    })
  )

  it.effect("fails an append that waits for room which a failing store cannot make", () =>
    Effect.gen(function* () {
      let broken = false
      const beforeCommit = Effect.suspend(() => (broken ? Effect.fail(full) : Effect.void))
      yield* Effect.gen(function* () {
        const outbox = yield* Outbox
        yield* outbox.append(one)
        const waiting = yield* Effect.forkChild(Effect.flip(outbox.append(one)), { startImmediately: true })
        yield* Effect.yieldNow
        broken = true
        yield* outbox.removeThrough(1)
        assert.strictEqual((yield* Fiber.join(waiting))._tag, "StoreError")
        broken = false
        assert.strictEqual(yield* outbox.append(one), 2)
      }).pipe(Effect.provide(outboxLayer({ beforeCommit, limitBytes: 1 + recordOverhead })))
    })
  )

  it.effect("takes as long as its disk, by the test's clock", () =>
    Effect.gen(function* () {
      yield* Effect.gen(function* () {
        const inbox = yield* Inbox
        const committing = yield* Effect.forkChild(inbox.commit([intent(1)]), { startImmediately: true })
        yield* TestClock.adjust("9 millis")
        assert.isUndefined(committing.pollUnsafe())
        yield* TestClock.adjust("1 millis")
        assert.strictEqual((yield* Fiber.join(committing))[0]?._tag, "Stored")
      }).pipe(Effect.provide(InboxMemory.layer({ beforeCommit: Effect.sleep("10 millis") })))
    })
  )
})

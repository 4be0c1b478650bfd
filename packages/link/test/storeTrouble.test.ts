/**
 * Stores that cannot be used any more: outputs and inputs end with a typed error instead of trying or waiting for ever.
 */
import { assert, describe, it } from "@effect/vitest"
import { Input, Inputs, LinkNode, NodeFailed, Output } from "@pure-link/link"
import { Inbox, Outbox, StoreError } from "@pure-link/ports"
import { InboxMemory, OutboxMemory } from "@pure-link/store"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { blobs, device, deviceNode, hub, hubNode, identities, numbers, outbox, play, take } from "./world.ts"

const storeError = (reason: StoreError["reason"], isFinal?: boolean) =>
  new StoreError({ reason, file: "a file", detail: "it broke", remedy: "mend it", isFinal })

/** An outbox that somebody changes. */
const changedOutbox = (change: (whole: Outbox["Service"]) => Partial<Outbox["Service"]>) =>
  Layer.effect(
    Outbox,
    Effect.map(Outbox, (whole) => ({ ...whole, ...change(whole) }))
  ).pipe(Layer.provide(outbox(blobs)))

/** Ten records in a fresh outbox, of which the fifth is gone. */
const outboxWithGap = Effect.gen(function* () {
  const backing = new OutboxMemory.Backing()
  yield* Effect.flatMap(Outbox, (whole) =>
    Effect.forEach([4, 1, 5], (count) =>
      whole.append({ bytes: new Uint8Array(count), sizes: new Uint32Array(count).fill(1) })
    )
  ).pipe(Effect.provide(outbox(blobs, { backing })))
  backing.records.pieces.splice(1, 1)
  return outbox(blobs, { backing })
})

describe("an output whose outbox", () => {
  it("lost a record delivers what stands before it, then ends with a typed error", () => {
    play(
      Effect.gen(function* () {
        yield* Effect.forkScoped(Effect.provide(Effect.scoped(take(blobs, 5)), hub()))
        yield* Effect.gen(function* () {
          const output = yield* Output.open(blobs, device)
          const error = yield* Effect.flip(output.drained)
          assert.deepInclude(error, { _tag: "StoreError", reason: "unreadable" })
          assert.strictEqual(yield* output.storedThrough, 4)
          assert.strictEqual((yield* output.state)._tag, "Failed")
          assert.strictEqual((yield* Effect.flip(output.append(Uint8Array.of(1))))._tag, "StoreError")
          const { events, outputs } = yield* (yield* LinkNode).counters
          assert.deepInclude(events, { OutputFailed: 1 })
          assert.notProperty(events, "StoreTrouble")
          assert.deepStrictEqual(outputs, [])
        }).pipe(Effect.scoped, Effect.provide([deviceNode(), yield* outboxWithGap]))
      })
    )
  })

  it("cannot be read for a while is asked again with pauses, whatever it answers", () => {
    let reads = 0
    let broken = true
    const noRecords = { bytes: new Uint8Array(0), sizes: new Uint32Array(0) }
    for (const answer of ["locked", "failed", "nothing"] as const) {
      reads = 0
      broken = true
      const unreadable = changedOutbox((whole) => ({
        read: (from, most) => {
          reads++
          if (!broken) return whole.read(from, most)
          return answer === "nothing" ? Effect.succeed({ first: from, ...noRecords }) : Effect.fail(storeError(answer))
        }
      }))
      play(
        Effect.gen(function* () {
          yield* Effect.flatMap(Outbox, (whole) => whole.append({ bytes: Uint8Array.of(1), sizes: Uint32Array.of(1) }))
          yield* Effect.forkScoped(Effect.provide(Effect.scoped(take(blobs, 2)), hub()))
          const output = yield* Output.open(blobs, device)
          yield* Effect.sleep(10_500)
          assert.strictEqual(reads, 11)
          broken = false
          assert.strictEqual((yield* output.drained).through, 1)
        }).pipe(Effect.scoped, Effect.provide([deviceNode(), unreadable]))
      )
    }
  })

  it("has died ends with a typed error at once, and so do its receipts", () => {
    const died = Deferred.makeUnsafe<never, StoreError>()
    play(
      Effect.gen(function* () {
        const output = yield* Output.open(blobs, device)
        const { stored } = yield* output.append(Uint8Array.of(1))
        const waiting = yield* Effect.forkChild(Effect.flip(stored), { startImmediately: true })
        yield* Effect.sleep(100)
        Deferred.doneUnsafe(died, Effect.fail(storeError("died", true)))
        assert.deepInclude(yield* Fiber.join(waiting), { _tag: "StoreError", reason: "died" })
        assert.deepInclude(yield* Effect.flip(output.drained), { _tag: "StoreError", reason: "died" })
        assert.strictEqual((yield* output.state)._tag, "Failed")
        assert.deepInclude((yield* (yield* LinkNode).counters).events, { OutputFailed: 1 })
      }).pipe(Effect.scoped, Effect.provide([deviceNode(), changedOutbox(() => ({ ended: Deferred.await(died) }))]))
    )
  })

  it("is handed one batch twice stores both, and has not changed it", () => {
    const batch = { bytes: Uint8Array.of(1, 2, 3), sizes: Uint32Array.of(1, 2) }
    play(
      Effect.gen(function* () {
        const receiving = yield* Effect.forkChild(Effect.provide(Effect.scoped(take(blobs, 4)), hub()))
        const output = yield* Output.open(blobs, device)
        yield* output.appendBatch(batch)
        yield* output.appendBatch(batch)
        const values = (yield* Fiber.join(receiving)).map(({ value }) => [...value])
        assert.deepStrictEqual(values, [[1], [2, 3], [1], [2, 3]])
        assert.deepStrictEqual(batch, { bytes: Uint8Array.of(1, 2, 3), sizes: Uint32Array.of(1, 2) })
      }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
    )
  })

  it("is given a producer's position and no record keeps the position", () => {
    play(
      Effect.gen(function* () {
        const output = yield* Output.open(blobs, device)
        yield* Effect.forkScoped(Effect.provide(Effect.scoped(take(blobs, 3)), hub()))
        const none = { bytes: new Uint8Array(0), sizes: new Uint32Array(0) }
        const { first, last, stored } = yield* output.appendBatch(none, { producer: "a.log", position: 12 })
        assert.deepStrictEqual([first, last], [1, 0])
        yield* stored
        assert.strictEqual(yield* output.producerPosition("a.log"), 12)
        yield* output.append(Uint8Array.of(1))
        yield* output.appendAll([], { producer: "a.log", position: 13 })
        assert.strictEqual((yield* output.drained).through, 1)
        assert.strictEqual(yield* output.producerPosition("a.log"), 13)
      }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
    )
  })
})

describe("a node whose inbox", () => {
  const peers = [{ publicKey: identities.device.publicKey, sources: "any" as const }]
  const hubWith = (inbox: Layer.Layer<Inbox, StoreError>) =>
    Inputs.layer({ peers }).pipe(Layer.provide(inbox), Layer.provideMerge(hubNode()))

  it("has died fails, and who waits for records hears of it after those that are held", () => {
    const died = Deferred.makeUnsafe<never, StoreError>()
    const inbox = Layer.effect(
      Inbox,
      Effect.map(Inbox, (whole) => ({ ...whole, ended: Deferred.await(died) }))
    ).pipe(Layer.provide(InboxMemory.layer()))
    play(
      Effect.gen(function* () {
        const input = yield* Input.open(blobs)
        const read: Array<number> = []
        const note = Stream.runForEach(
          ({ records }: { readonly records: ReadonlyArray<{ readonly number: number }> }) =>
            Effect.sync(() => read.push(...records.map(({ number }) => number)))
        )
        const readers = [input.chunks({ consumer: "c" }), input.from(0)].map((chunks) => Effect.flip(note(chunks)))
        const reading = yield* Effect.forkChild(Effect.all(readers, { concurrency: "unbounded" }), {
          startImmediately: true
        })
        yield* Effect.gen(function* () {
          const output = yield* Output.open(blobs, device)
          yield* (yield* output.append(Uint8Array.of(1))).stored
        }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
        Deferred.doneUnsafe(died, Effect.fail(storeError("died", true)))
        for (const error of yield* Fiber.join(reading)) {
          assert.instanceOf(error, NodeFailed)
          assert.include(error.message, "it broke")
        }
        assert.deepStrictEqual(read, [1, 1])
        assert.deepInclude((yield* (yield* LinkNode).counters).events, { NodeFailed: 1 })
      }).pipe(Effect.scoped, Effect.provide(hubWith(inbox)))
    )
  })

  it("refuses a commit for good fails, but not when it refuses for a while", () => {
    let error = storeError("locked")
    const beforeCommit = Effect.suspend(() => Effect.fail(error))
    play(
      Effect.gen(function* () {
        const input = yield* Input.open(blobs)
        const reading = yield* Effect.forkChild(Effect.flip(Stream.runDrain(input.from(0))), { startImmediately: true })
        yield* Effect.gen(function* () {
          const output = yield* Output.open(blobs, device)
          yield* output.appendAll(numbers(3).map((n) => Uint8Array.of(n)))
          yield* Effect.sleep(5_000)
          assert.isUndefined(reading.pollUnsafe())
          error = storeError("locked", true)
          assert.instanceOf(yield* Fiber.join(reading), NodeFailed)
          assert.strictEqual(yield* output.storedThrough, 0)
        }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
      }).pipe(Effect.scoped, Effect.provide(hubWith(InboxMemory.layer({ beforeCommit }))))
    )
  })
})

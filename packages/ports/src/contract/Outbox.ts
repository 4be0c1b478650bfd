import { assert, describe, it } from "@effect/vitest"
import { seededEntropy } from "@pure-link/keys"
import { type Id64, type Life, longestRecord, type RecordNumber, type StreamName } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { Entropy } from "../Entropy.ts"
import { Outbox } from "../Outbox.ts"
import type { StoreError } from "../StoreError.ts"
import { followSteps, OutboxModel, OutboxSteps } from "./outboxModel.ts"
import { counted, outboxColumns, quiet } from "./outboxColumns.ts"
import { recordsOf } from "./records.ts"

/**
 * What every `Outbox` promises, as tests: durability, order, limits, back-pressure, lives (spec §2.1, §2.4, §8.5). An
 * implementation calls this from a test of its own.
 */

/** Where one outbox lives, such as a file. */
export interface OutboxPlace {
  /** Opens the outbox of the place; a second opening after the first was closed is a restart. */
  readonly layer: (options: {
    readonly stream: StreamName & { readonly shape: Id64 }
    readonly limitBytes: number
  }) => Layer.Layer<Outbox, StoreError, Entropy>
  /** A copy of the place while it is closed: a backup restored, a machine cloned. */
  readonly copy: Effect.Effect<OutboxPlace, never, Scope.Scope>
  /** Transactions committed at the place since its last opening. */
  readonly transactions: () => number
  /** Calls take effect at once, as nothing makes a transaction dear: a burst of them is no burst. */
  readonly isImmediate?: boolean
}

const stream = { source: "shop", input: "orders", shape: 0xfedcba9876543210n }

/** `runs`: how many random histories the property test tries; fewer where an opening is dear. */
export const outboxContract = (
  name: string,
  makePlace: Effect.Effect<OutboxPlace, never, Scope.Scope>,
  runs = 100
): void => {
  const entropy = Layer.succeed(Entropy, seededEntropy(7))
  /** One opening of the place. */
  const opened = <A, E>(
    place: OutboxPlace,
    body: (outbox: Outbox["Service"]) => Effect.Effect<A, E>,
    limitBytes = 1 << 30
  ) => Effect.provide(Effect.flatMap(Outbox, body), Layer.provide(place.layer({ stream, limitBytes }), entropy))

  describe(`Outbox contract: ${name}`, () => {
    it.effect("numbers records from 1 and holds them, in order and with its generation, across a restart", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        const before = yield* opened(place, (outbox) =>
          Effect.gen(function* () {
            assert.strictEqual(yield* outbox.append(recordsOf(1, [5, 0, 300])), 1)
            assert.strictEqual(yield* outbox.append(recordsOf(4, [61])), 4)
            assert.deepStrictEqual(outbox.stream, stream)
            return outbox.state()
          })
        )
        assert.notStrictEqual(before.generation, 0n)
        assert.strictEqual(before.heldBytes, counted(366, 4))
        yield* opened(place, (outbox) =>
          Effect.gen(function* () {
            const state = outbox.state()
            assert.deepInclude(state, {
              generation: before.generation,
              lowestHeld: 1,
              last: 4,
              heldBytes: counted(366, 4)
            })
            const batch = yield* outbox.read(1, { records: 100, bytes: 1_000 })
            assert.deepStrictEqual(batch, { first: 1, ...recordsOf(1, [5, 0, 300, 61]) })
            assert.strictEqual(yield* outbox.append(recordsOf(5, [1])), 5)
          })
        )
      })
    )

    it.effect("takes records of 0 B and of 16 MiB, and refuses longer ones whole", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(place, (outbox) =>
          Effect.gen(function* () {
            assert.strictEqual(yield* outbox.append(recordsOf(1, [0])), 1)
            assert.strictEqual(yield* outbox.append(recordsOf(2, [longestRecord])), 2)
            const error = yield* Effect.flip(outbox.append(recordsOf(3, [7, longestRecord + 1])))
            assert.deepInclude(error, { _tag: "RecordTooLong", bytes: longestRecord + 1, limit: longestRecord })
            assert.strictEqual(outbox.state().last, 2)
          })
        )
        yield* opened(place, (outbox) =>
          Effect.gen(function* () {
            assert.deepStrictEqual((yield* outbox.read(1, { records: 1, bytes: 0 })).sizes, Uint32Array.of(0))
            const { bytes, sizes } = yield* outbox.read(2, { records: 2, bytes: 1 })
            assert.deepStrictEqual(sizes, Uint32Array.of(longestRecord))
            assert.isTrue(Buffer.from(bytes).equals(recordsOf(2, [longestRecord]).bytes))
          })
        )
      })
    )

    it.effect("reads what fits both bounds, at least one record, none that is removed or past the last", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(place, (outbox) =>
          Effect.gen(function* () {
            yield* outbox.append(recordsOf(1, [10, 10, 10, 10]))
            const sizesOf = (from: number, records: number, bytes: number) =>
              Effect.map(outbox.read(from, { records, bytes }), (batch) => {
                assert.strictEqual(batch.first, from)
                return batch.sizes.length
              })
            assert.strictEqual(yield* sizesOf(1, 9, 30), 3)
            assert.strictEqual(yield* sizesOf(1, 9, 29), 2)
            assert.strictEqual(yield* sizesOf(2, 2, 99), 2)
            assert.strictEqual(yield* sizesOf(4, 9, 1), 1)
            assert.strictEqual(yield* sizesOf(5, 9, 99), 0)
            yield* outbox.removeThrough(2)
            assert.strictEqual(yield* sizesOf(2, 9, 99), 0)
            assert.strictEqual(yield* sizesOf(3, 9, 99), 2)
          })
        )
      })
    )

    it.effect("lets an append wait at the byte limit, until a removal makes room, first come first served", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(
          place,
          (outbox) =>
            Effect.gen(function* () {
              yield* outbox.append(recordsOf(1, [40, 60]))
              const big = yield* Effect.forkChild(outbox.append(recordsOf(3, [80])), { startImmediately: true })
              const small = yield* Effect.forkChild(outbox.append(recordsOf(4, [0, 20])), { startImmediately: true })
              yield* quiet(outbox)
              assert.strictEqual(outbox.state().last, 2)
              const before = place.transactions()
              yield* outbox.removeThrough(1)
              yield* quiet(outbox)
              assert.strictEqual(outbox.state().last, 2)
              assert.isAtMost(place.transactions() - before, 1)
              yield* outbox.removeThrough(2)
              assert.strictEqual(yield* Fiber.join(big), 3)
              assert.strictEqual(yield* Fiber.join(small), 4)
              const batch = yield* outbox.read(3, { records: 9, bytes: 999 })
              assert.deepStrictEqual(batch, { first: 3, ...recordsOf(3, [80, 0, 20]) })
              assert.strictEqual(outbox.state().heldBytes, counted(100, 3))
            }),
          counted(100, 3)
        )
      })
    )

    it.effect("refuses a chunk that can never fit", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(
          place,
          (outbox) =>
            Effect.gen(function* () {
              const error = yield* Effect.flip(outbox.append(recordsOf(1, [60, 41])))
              assert.deepInclude(error, { _tag: "OutboxFull", bytes: counted(101, 2), limit: counted(100, 2) })
              assert.strictEqual(yield* outbox.append(recordsOf(1, [60, 40])), 1)
            }),
          counted(100, 2)
        )
      })
    )

    it.effect("bounds empty records too", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        const body = (outbox: Outbox["Service"]) =>
          Effect.gen(function* () {
            yield* outbox.append(recordsOf(1, [0, 0]))
            const waiting = yield* Effect.forkChild(outbox.append(recordsOf(3, [0])), { startImmediately: true })
            yield* quiet(outbox)
            assert.strictEqual(outbox.state().last, 2)
            yield* outbox.removeThrough(2)
            assert.strictEqual(yield* Fiber.join(waiting), 3)
          })
        yield* opened(place, body, counted(0, 2))
      })
    )

    outboxColumns(makePlace, (place, body) => opened(place, body))

    it.effect("appends nothing of a call that is interrupted while it waits, and lets the next one in", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(
          place,
          (outbox) =>
            Effect.gen(function* () {
              yield* outbox.append(recordsOf(1, [60]))
              const waiting = yield* Effect.forkChild(outbox.append(recordsOf(2, [70])), { startImmediately: true })
              const behind = yield* Effect.forkChild(outbox.append(recordsOf(2, [40])), { startImmediately: true })
              yield* quiet(outbox)
              yield* Fiber.interrupt(waiting)
              assert.strictEqual(yield* Fiber.join(behind), 2)
              yield* outbox.removeThrough(2)
              yield* quiet(outbox)
              assert.strictEqual(outbox.state().last, 2)
            }),
          counted(100, 2)
        )
      })
    )

    it.effect("has appended all or nothing when an interrupted append has ended, whenever it was interrupted", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        const last = yield* opened(place, (outbox) =>
          Effect.gen(function* () {
            for (let turns = 0; turns < 12; turns++) {
              const before = outbox.state().last
              const append = outbox.append(recordsOf(before + 1, [50, 50]))
              const fiber = yield* Effect.forkChild(append, { startImmediately: true })
              for (let turn = 0; turn < turns; turn++) yield* Effect.yieldNow
              yield* Fiber.interrupt(fiber)
              const { last } = outbox.state()
              assert.include([before, before + 2], last)
              yield* quiet(outbox)
              assert.strictEqual(outbox.state().last, last)
            }
            return outbox.state().last
          })
        )
        assert.isAbove(last, 0)
        yield* opened(place, (outbox) => Effect.sync(() => assert.strictEqual(outbox.state().last, last)))
      })
    )

    it.effect("commits a burst of appends together", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(place, (outbox) =>
          Effect.gen(function* () {
            yield* outbox.append(recordsOf(1, [1]))
            yield* quiet(outbox)
            const before = place.transactions()
            const firsts = yield* Effect.all(
              Array.from({ length: 200 }, () => outbox.append(recordsOf(0, [9, 9]))),
              { concurrency: "unbounded" }
            )
            assert.deepStrictEqual(
              firsts,
              Array.from({ length: 200 }, (_, i) => 2 + 2 * i)
            )
            assert.strictEqual(place.transactions() - before, place.isImmediate ? 200 : 1)
          })
        )
      })
    )

    it.effect("lists a life for every opening that appended, from the last removed record on", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        const lifeOfAppending = (first: RecordNumber) =>
          opened(place, (outbox) =>
            Effect.gen(function* () {
              assert.isFalse(outbox.state().lives.some((entry) => entry.life === outbox.state().life))
              yield* outbox.append(recordsOf(first, [8]))
              yield* outbox.append(recordsOf(first + 1, [8]))
              return { life: outbox.state().life, first } satisfies Life
            })
          )
        const a = yield* lifeOfAppending(1)
        yield* opened(place, (outbox) => Effect.asVoid(outbox.read(1, { records: 1, bytes: 1 })))
        const b = yield* lifeOfAppending(3)
        const c = yield* lifeOfAppending(5)
        assert.strictEqual(new Set([a.life, b.life, c.life, 0n]).size, 4)
        const livesAfterRemoving = (n: RecordNumber) =>
          opened(place, (outbox) => Effect.as(outbox.removeThrough(n), outbox).pipe(Effect.map((o) => o.state().lives)))
        const lives = () => opened(place, (outbox) => Effect.sync(() => outbox.state().lives))
        assert.deepStrictEqual(yield* lives(), [a, b, c])
        assert.deepStrictEqual(yield* livesAfterRemoving(2), [a, b, c])
        assert.deepStrictEqual(yield* lives(), [a, b, c])
        assert.deepStrictEqual(yield* livesAfterRemoving(3), [b, c])
        assert.deepStrictEqual(yield* lives(), [b, c])
        assert.deepStrictEqual(yield* livesAfterRemoving(6), [c])
        assert.deepStrictEqual(yield* lives(), [c])
      })
    )

    it.effect("shows a restored copy as a fork: one generation, one first number, two lives", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(place, (outbox) => outbox.append(recordsOf(1, [1, 2, 3])))
        const copy = yield* place.copy
        const appendHere = (at: OutboxPlace) =>
          opened(at, (outbox) => Effect.map(outbox.append(recordsOf(4, [4])), () => outbox.state()))
        const [here, there] = [yield* appendHere(place), yield* appendHere(copy)]
        assert.strictEqual(here.generation, there.generation)
        assert.deepStrictEqual(here.lives[0], there.lives[0])
        assert.deepStrictEqual([here.lives[1]?.first, there.lives[1]?.first], [4, 4])
        assert.notStrictEqual(here.lives[1]?.life, there.lives[1]?.life)
      })
    )

    it.effect("removes once and for all, never beyond its last record, and numbers go on", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(place, (outbox) =>
          Effect.gen(function* () {
            yield* outbox.append(recordsOf(1, [1, 2, 3]))
            const error = yield* Effect.flip(outbox.removeThrough(4))
            assert.strictEqual(error._tag, "StoreError")
            assert.strictEqual(outbox.state().lowestHeld, 1)
            yield* outbox.removeThrough(2)
            yield* outbox.removeThrough(2)
            yield* outbox.removeThrough(1)
            assert.deepInclude(outbox.state(), { lowestHeld: 3, last: 3 })
          })
        )
        yield* opened(place, (outbox) =>
          Effect.gen(function* () {
            assert.deepInclude(outbox.state(), { lowestHeld: 3, last: 3 })
            yield* outbox.removeThrough(3)
          })
        )
        yield* opened(place, (outbox) =>
          Effect.gen(function* () {
            assert.deepInclude(outbox.state(), { lowestHeld: 4, last: 3, heldBytes: 0 })
            assert.strictEqual(yield* outbox.append(recordsOf(4, [4])), 4)
          })
        )
      })
    )

    it.effect("keeps each producer's position with the append that brought it", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        const at = (producer: string, position: number) => ({ from: { producer, position } })
        yield* opened(
          place,
          (outbox) =>
            Effect.gen(function* () {
              assert.isUndefined(outbox.producerPosition("a.log"))
              yield* outbox.append({ ...recordsOf(1, [3]), ...at("a.log", 3) })
              yield* outbox.append({ ...recordsOf(2, [4]), ...at("b.log", 2 ** 53 - 1) })
              const error = yield* Effect.flip(outbox.append({ ...recordsOf(3, [999]), ...at("a.log", 102) }))
              assert.strictEqual(error._tag, "OutboxFull")
              yield* outbox.append({ ...recordsOf(3, [5]), ...at("a.log", 8) })
              yield* outbox.append(recordsOf(4, [1]))
              assert.strictEqual(outbox.producerPosition("a.log"), 8)
            }),
          counted(50, 4)
        )
        yield* opened(place, (outbox) =>
          Effect.sync(() => {
            assert.strictEqual(outbox.producerPosition("a.log"), 8)
            assert.strictEqual(outbox.producerPosition("b.log"), 2 ** 53 - 1)
            assert.isUndefined(outbox.producerPosition("c.log"))
          })
        )
      })
    )

    it.effect("belongs to one stream from its first append on, and to one owner at a time", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(place, (outbox) => outbox.append(recordsOf(1, [1])))
        const open = (asked: typeof stream) =>
          Effect.flip(Effect.scoped(Layer.build(Layer.provide(place.layer({ stream: asked, limitBytes: 9 }), entropy))))
        yield* opened(place, () => Effect.map(open(stream), (error) => assert.strictEqual(error.reason, "locked")))
        for (const other of [{ source: "x" }, { input: "x" }, { shape: 1n }]) {
          const error = yield* open({ ...stream, ...other })
          assert.strictEqual(error.reason, "unreadable")
          for (const { input, source } of [stream, { ...stream, ...other }]) {
            assert.include(error.message, `source "${source}" for input "${input}"`)
          }
          assert.strictEqual(error.message.includes("shape"), "shape" in other)
        }
        yield* opened(place, (outbox) =>
          Effect.gen(function* () {
            assert.deepStrictEqual(outbox.stream, stream)
            yield* outbox.removeThrough(1)
          })
        )
        assert.strictEqual((yield* open({ ...stream, source: "x" })).reason, "unreadable")
        yield* opened(place, (outbox) => Effect.map(outbox.append(recordsOf(2, [1])), (n) => assert.strictEqual(n, 2)))
      })
    )

    it.effect("becomes another stream's while nothing was ever appended to it", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        const openedFor = <A, E>(asked: typeof stream, body: (outbox: Outbox["Service"]) => Effect.Effect<A, E>) =>
          Effect.provide(
            Effect.flatMap(Outbox, body),
            Layer.provide(place.layer({ stream: asked, limitBytes: 9 }), entropy)
          )
        const generations = new Set<Id64>()
        for (const other of [{ source: "x" }, { input: "x" }, { shape: 1n }, {}]) {
          const asked = { ...stream, ...other }
          for (let opening = 0; opening < 2; opening++) {
            yield* openedFor(asked, (outbox) =>
              Effect.sync(() => {
                assert.deepStrictEqual(outbox.stream, asked)
                assert.deepInclude(outbox.state(), { lowestHeld: 1, last: 0, lives: [], heldBytes: 0 })
                generations.add(outbox.state().generation)
              })
            )
          }
        }
        assert.strictEqual(generations.size, 4)
        yield* opened(place, (outbox) => outbox.append({ ...recordsOf(1, []), from: { producer: "p", position: 7 } }))
        const error = yield* Effect.flip(openedFor({ ...stream, source: "x" }, () => Effect.void))
        assert.deepInclude(error, { _tag: "StoreError", reason: "unreadable" })
        yield* opened(place, (outbox) => Effect.sync(() => assert.strictEqual(outbox.producerPosition("p"), 7)))
      })
    )

    it.effect.prop(
      "does what a plain list of records does",
      [OutboxSteps],
      ([steps]) =>
        Effect.gen(function* () {
          const place = yield* makePlace
          const model = new OutboxModel()
          for (const opening of steps) yield* opened(place, (outbox) => followSteps(outbox, model, opening))
          yield* opened(place, (outbox) => Effect.sync(() => model.assertState(outbox)))
        }),
      { timeout: 120_000, arbitrary: { runs, seed: 5 } }
    )
  })
}

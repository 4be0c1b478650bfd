import { assert, describe, it } from "@effect/vitest"
import type { CommitOutcome, Id64, Life, StreamCursor } from "@pure-link/wire"
import { longestRecord } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Inbox } from "../Inbox.ts"
import type { StoreError } from "../StoreError.ts"
import { inboxColumns } from "./inboxColumns.ts"
import { followSteps, InboxModel, InboxSteps, recordsIn } from "./inboxModel.ts"
import { intent, lifeOfTests } from "./intents.ts"
import { recordOf } from "./records.ts"

/**
 * What every `Inbox` promises, as tests: batches and cursors in one transaction, conflicts, forks, generations,
 * pruning, consumers (spec §2.2, §2.3, §8.3–§8.6). An implementation calls this from a test of its own.
 */

/** Where one inbox lives, such as a file. */
export interface InboxPlace {
  /** Opens the inbox of the place; a second opening after the first was closed is a restart. */
  readonly layer: () => Layer.Layer<Inbox, StoreError>
  /** Transactions committed at the place since its last opening. */
  readonly transactions: () => number
  /** Calls take effect at once, as nothing makes a transaction dear: a burst of them is no burst. */
  readonly isImmediate?: boolean
}

type OpenInbox = Inbox["Service"]

/** `runs`: how many random histories the property test tries; fewer where an opening is dear. */
export const inboxContract = (
  name: string,
  makePlace: Effect.Effect<InboxPlace, never, Scope.Scope>,
  runs = 100
): void => {
  const opened = <A, E>(place: InboxPlace, body: (inbox: OpenInbox) => Effect.Effect<A, E>) =>
    Effect.provide(Effect.flatMap(Inbox, body), place.layer())

  describe(`Inbox contract: ${name}`, () => {
    it.effect("stores batches with their cursors, one log per input, across a restart", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(place, (inbox) =>
          Effect.gen(function* () {
            assert.isUndefined(inbox.cursor(shopOrders))
            assert.strictEqual(inbox.lastPosition("orders"), 0)
            const outcomes = yield* inbox.commit([
              intent({ sizes: [5, 0] }),
              intent({ source: "till", sizes: [7] }),
              intent({ input: "returns", sizes: [9] }),
              intent({ first: 3, sizes: [300] })
            ])
            assert.deepStrictEqual(outcomes, [stored(2), stored(1), stored(1), stored(3)])
          })
        )
        yield* opened(place, (inbox) =>
          Effect.gen(function* () {
            assert.deepStrictEqual(inbox.cursor(shopOrders), stored(3).cursor)
            assert.deepStrictEqual(inbox.cursor({ source: "till", input: "orders" }), stored(1).cursor)
            assert.isUndefined(inbox.cursor({ source: "till", input: "returns" }))
            assert.deepStrictEqual([inbox.lastPosition("orders"), inbox.lastPosition("returns")], [4, 1])
            assert.deepStrictEqual(yield* recordsIn(inbox, "orders", 0, { records: 10, bytes: 10_000 }), [
              { position: 1, source: "shop", number: 1, bytes: recordOf(1, 5) },
              { position: 2, source: "shop", number: 2, bytes: recordOf(2, 0) },
              { position: 3, source: "till", number: 1, bytes: recordOf(1, 7) },
              { position: 4, source: "shop", number: 3, bytes: recordOf(3, 300) }
            ])
            assert.deepStrictEqual(yield* inbox.commit([intent({ first: 4, sizes: [1] })]), [stored(4)])
          })
        )
      })
    )

    it.effect("stores nothing of a batch that does not follow its cursor", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(place, (inbox) =>
          Effect.gen(function* () {
            const nothing: CommitOutcome = { _tag: "Conflict", cursor: undefined }
            assert.deepStrictEqual(yield* inbox.commit([intent({ first: 2, sizes: [1] })]), [nothing])
            assert.deepStrictEqual(yield* inbox.commit([intent({ sizes: [] })]), [nothing])
            assert.isUndefined(inbox.cursor(shopOrders))
            yield* inbox.commit([intent({ sizes: [1, 2] })])
            const standing = conflict(2)
            const outcomes = yield* inbox.commit([
              intent({ first: 4, sizes: [4] }),
              intent({ first: 2, sizes: [2, 3] }),
              intent({ sizes: [1, 2] }),
              intent({ source: "till", sizes: [6] }),
              intent({ first: 3, sizes: [3] }),
              intent({ first: 3, sizes: [3] })
            ])
            assert.deepStrictEqual(outcomes, [standing, standing, standing, stored(1), stored(3), conflict(3)])
            const records = yield* recordsIn(inbox, "orders", 0, { records: 9, bytes: 99 })
            const names = records.map(({ number, source }) => `${source} ${number}`)
            assert.deepStrictEqual(names, ["shop 1", "shop 2", "till 1", "shop 3"])
          })
        )
      })
    )

    it.effect("stores nothing of a forked outbox, whatever its list of lives says", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        const list = (...entries: ReadonlyArray<readonly [life: Id64, first: number]>): ReadonlyArray<Life> =>
          entries.map(([life, first]) => ({ life, first }))
        yield* opened(place, (inbox) =>
          Effect.gen(function* () {
            yield* inbox.commit([intent({ sizes: [1, 1, 1, 1], lives: list([10n, 1], [20n, 3]) })])
            const tries: ReadonlyArray<readonly [fork: boolean, lives: ReadonlyArray<Life>]> = [
              [true, list([30n, 3])],
              [true, list([30n, 4])],
              [true, list([10n, 1])],
              [true, list([20n, 3], [30n, 4])],
              [true, list([20n, 5])],
              [true, list([20n, 3], [20n, 5])],
              [true, list([20n, 3], [30n, 6], [20n, 7])],
              [true, list([30n, 5], [40n, 5])],
              [true, list([20n, 3], [30n, 5], [30n, 6])],
              [true, list([30n, 6])],
              [true, []],
              [false, list([10n, 1], [20n, 3])],
              [false, list([20n, 3], [30n, 8])],
              [false, list([30n, 8], [40n, 9], [50n, 99])]
            ]
            let n = 4
            for (const [fork, lives] of tries) {
              const before = inbox.cursor(shopOrders)
              const [outcome] = yield* inbox.commit([intent({ first: n + 1, sizes: [1, 1], lives })])
              assert.strictEqual(outcome?._tag, fork ? "Conflict" : "Stored", JSON.stringify(lives, bigints))
              if (fork) assert.deepStrictEqual(outcome?.cursor, before)
              else n += 2
            }
            assert.deepStrictEqual(inbox.cursor(shopOrders), { generation: 1n, n: 10, life: 40n })
          })
        )
      })
    )

    it.effect("replaces a generation through the first record of another, and refuses the replaced one for ever", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        const high = 0xffff_ffff_ffff_ffffn
        yield* opened(place, (inbox) =>
          Effect.gen(function* () {
            yield* inbox.commit([intent({ sizes: [1, 2, 3] })])
            const gap = yield* inbox.commit([intent({ generation: high, first: 4, sizes: [4] })])
            assert.deepStrictEqual(gap, [conflict(3)])
            assert.strictEqual(inbox.retiredCount(shopOrders), 0)
            assert.deepStrictEqual(yield* inbox.commit([intent({ generation: high, sizes: [8] })]), [stored(1, high)])
            assert.isTrue(inbox.isRetired(shopOrders, 1n))
            assert.isFalse(inbox.isRetired(shopOrders, high))
            assert.isFalse(inbox.isRetired({ source: "till", input: "orders" }, 1n))
          })
        )
        yield* opened(place, (inbox) =>
          Effect.gen(function* () {
            assert.strictEqual(inbox.retiredCount(shopOrders), 1)
            assert.isTrue(inbox.isRetired(shopOrders, 1n))
            assert.deepStrictEqual(inbox.cursor(shopOrders), stored(1, high).cursor)
            const refused = yield* inbox.commit([intent({ first: 4, sizes: [4] }), intent({ sizes: [1] })])
            assert.deepStrictEqual(refused, [conflict(1, high), conflict(1, high)])
            assert.strictEqual((yield* recordsIn(inbox, "orders", 0, { records: 9, bytes: 99 })).length, 4)
          })
        )
      })
    )

    it.effect("keeps 64 retired generations and no more", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(place, (inbox) =>
          Effect.gen(function* () {
            const generations = Array.from({ length: 66 }, (_, i) => intent({ generation: BigInt(i + 1), sizes: [1] }))
            const outcomes = yield* inbox.commit(generations)
            assert.deepStrictEqual(
              outcomes.map(({ _tag }) => _tag),
              [...Array<string>(65).fill("Stored"), "Conflict"]
            )
            assert.strictEqual(inbox.retiredCount(shopOrders), 64)
          })
        )
      })
    )

    it.effect("forgets the retired generations of one stream when it is told to, and then takes new ones again", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        const next = (generation: number) => intent({ generation: BigInt(generation), sizes: [1] })
        yield* opened(place, (inbox) =>
          Effect.gen(function* () {
            assert.strictEqual(yield* inbox.forgetRetired(shopOrders), 0)
            yield* inbox.commit(Array.from({ length: 65 }, (_, i) => next(i + 1)))
            const other = { source: "till", input: "orders" }
            yield* inbox.commit([1n, 2n].map((generation) => intent({ source: "till", generation, sizes: [1] })))
            assert.deepStrictEqual(yield* inbox.commit([next(66)]), [conflict(1, 65n)])
            // In one transaction with a commit that retires one more: whichever was asked first.
            const [forgotten, outcomes] = yield* Effect.all(
              [inbox.forgetRetired(shopOrders), inbox.commit([intent({ source: "till", generation: 3n, sizes: [1] })])],
              { concurrency: "unbounded" }
            )
            assert.strictEqual(forgotten, 64)
            assert.strictEqual(outcomes[0]?._tag, "Stored")
            assert.strictEqual(inbox.retiredCount(shopOrders), 0)
            assert.isFalse(inbox.isRetired(shopOrders, 1n))
            assert.deepStrictEqual(inbox.cursor(shopOrders), stored(1, 65n).cursor)
            assert.strictEqual(inbox.retiredCount(other), 2)
          })
        )
        yield* opened(place, (inbox) =>
          Effect.gen(function* () {
            assert.strictEqual(inbox.retiredCount(shopOrders), 0)
            assert.deepStrictEqual(yield* inbox.commit([next(66)]), [stored(1, 66n)])
            assert.isTrue(inbox.isRetired(shopOrders, 65n))
            assert.strictEqual(yield* inbox.forgetRetired(shopOrders), 1)
            assert.deepStrictEqual(yield* inbox.commit([next(1)]), [stored(1, 1n)])
            assert.strictEqual((yield* recordsIn(inbox, "orders", 0, { records: 99, bytes: 999 })).length, 70)
          })
        )
      })
    )

    it.effect("takes records of 0 B and of 16 MiB", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(place, (inbox) => inbox.commit([intent({ sizes: [0, longestRecord, 0] })]))
        yield* opened(place, (inbox) =>
          Effect.gen(function* () {
            const [first, ...none] = yield* recordsIn(inbox, "orders", 0, { records: 9, bytes: 0 })
            assert.deepStrictEqual([first?.bytes.length, none.length], [0, 0])
            const [large] = yield* recordsIn(inbox, "orders", 1, { records: 9, bytes: longestRecord })
            assert.isTrue(Buffer.from(large!.bytes).equals(recordOf(2, longestRecord)))
            const [last] = yield* recordsIn(inbox, "orders", 2, { records: 9, bytes: longestRecord })
            assert.deepInclude(last, { position: 3, number: 3 })
          })
        )
      })
    )

    it.effect("reads what fits both bounds, at least one record, none past the last", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(place, (inbox) =>
          Effect.gen(function* () {
            yield* inbox.commit([intent({ sizes: [10, 10, 10] })])
            const positions = (after: number, records: number, bytes: number) =>
              Effect.map(recordsIn(inbox, "orders", after, { records, bytes }), (read) =>
                read.map((record) => record.position)
              )
            assert.deepStrictEqual(yield* positions(0, 9, 20), [1, 2])
            assert.deepStrictEqual(yield* positions(0, 1, 99), [1])
            assert.deepStrictEqual(yield* positions(2, 9, 1), [3])
            assert.deepStrictEqual(yield* positions(3, 9, 99), [])
            assert.deepStrictEqual(yield* recordsIn(inbox, "unknown", 0, { records: 9, bytes: 99 }), [])
          })
        )
      })
    )

    inboxColumns(makePlace)

    it.effect("commits a burst of calls together", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(place, (inbox) =>
          Effect.gen(function* () {
            yield* inbox.commit([intent({ sizes: [1] })])
            for (let turn = 0; turn < 8; turn++) yield* Effect.yieldNow // the store is idle again
            const before = place.transactions()
            const intents = Array.from({ length: 100 }, (_, i) => intent({ source: `s${i}`, sizes: [3] }))
            const commits = intents.map((one) => inbox.commit([one]))
            const acknowledging = Array.from({ length: 20 }, (_, i) => inbox.acknowledge("orders", `c${i}`, 1))
            const [outcomes] = yield* Effect.all(
              [
                Effect.all(commits, { concurrency: "unbounded" }),
                Effect.all(acknowledging, { concurrency: "unbounded" }),
                inbox.prune("orders", 1)
              ],
              { concurrency: 3 }
            )
            assert.deepStrictEqual(
              outcomes,
              commits.map(() => [stored(1)])
            )
            assert.strictEqual(place.transactions() - before, place.isImmediate ? 121 : 1)
          })
        )
      })
    )

    it.effect("prunes records but neither cursors nor positions, whatever is pruned", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(place, (inbox) =>
          Effect.gen(function* () {
            yield* inbox.commit([intent({ sizes: [1, 2, 3, 4] }), intent({ input: "returns", sizes: [1] })])
            yield* inbox.acknowledge("orders", "billing", 4)
            assert.strictEqual(yield* inbox.prune("orders", 3), 3)
            assert.strictEqual(yield* inbox.prune("orders", 3), 0)
            assert.strictEqual(yield* inbox.prune("unknown", 9), 0)
            const left = yield* recordsIn(inbox, "orders", 0, { records: 9, bytes: 99 })
            assert.deepStrictEqual(
              left.map(({ position }) => position),
              [4]
            )
            assert.strictEqual(yield* inbox.prune("orders", 1_000), 1)
          })
        )
        yield* opened(place, (inbox) =>
          Effect.gen(function* () {
            assert.strictEqual(inbox.lastPosition("orders"), 4)
            assert.deepStrictEqual(inbox.cursor(shopOrders), stored(4).cursor)
            assert.strictEqual(yield* inbox.consumerPosition("orders", "billing"), 4)
            assert.deepStrictEqual(yield* inbox.commit([intent({ sizes: [1] })]), [conflict(4)])
            yield* inbox.commit([intent({ first: 5, sizes: [5] })])
            const [record] = yield* recordsIn(inbox, "orders", 0, { records: 9, bytes: 99 })
            assert.deepInclude(record, { position: 5, number: 5 })
            assert.strictEqual((yield* recordsIn(inbox, "returns", 0, { records: 9, bytes: 99 })).length, 1)
          })
        )
      })
    )

    it.effect("keeps each consumer's position, which never falls and never leads the log", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(place, (inbox) =>
          Effect.gen(function* () {
            assert.strictEqual(yield* inbox.consumerPosition("orders", "billing"), 0)
            yield* inbox.acknowledge("orders", "billing", 0)
            yield* inbox.commit([intent({ sizes: [1, 2, 3] })])
            yield* inbox.acknowledge("orders", "billing", 2)
            yield* inbox.acknowledge("orders", "billing", 1)
            yield* inbox.acknowledge("orders", "audit", 3)
            const error = yield* Effect.flip(inbox.acknowledge("orders", "audit", 4))
            assert.strictEqual(error.reason, "failed")
          })
        )
        yield* opened(place, (inbox) =>
          Effect.gen(function* () {
            assert.strictEqual(yield* inbox.consumerPosition("orders", "billing"), 2)
            assert.strictEqual(yield* inbox.consumerPosition("orders", "audit"), 3)
            assert.strictEqual(yield* inbox.consumerPosition("returns", "audit"), 0)
          })
        )
      })
    )

    it.effect("tells every watcher the last position now and the newest one after it grew", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(place, (inbox) =>
          Effect.gen(function* () {
            const seen: Array<number> = []
            const quick = yield* Effect.forkChild(
              Stream.runForEach(Stream.take(inbox.grown("orders"), 3), (position) =>
                Effect.sync(() => {
                  seen.push(position)
                })
              ),
              { startImmediately: true }
            )
            yield* inbox.commit([intent({ sizes: [1] })])
            yield* inbox.commit([intent({ input: "returns", sizes: [1] })])
            while (seen.length < 2) yield* Effect.yieldNow
            yield* inbox.commit([intent({ first: 2, sizes: [1, 1, 1] })])
            yield* Fiber.join(quick)
            assert.deepStrictEqual(seen, [0, 1, 4])
            // A slow one finds only the newest position each time it asks.
            const found: Array<number> = []
            yield* Stream.runForEach(Stream.take(inbox.grown("orders"), 2), (position) =>
              Effect.gen(function* () {
                found.push(position)
                if (found.length > 1) return
                for (const first of [5, 6, 7]) yield* inbox.commit([intent({ first, sizes: [1] })])
              })
            )
            assert.deepStrictEqual(found, [4, 7])
          })
        )
      })
    )

    it.effect("sums up every input", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(place, (inbox) =>
          Effect.gen(function* () {
            assert.deepStrictEqual(yield* inbox.summaries, [])
            yield* inbox.commit([
              intent({ input: "returns", sizes: [9] }),
              intent({ source: "till", sizes: [5, 6] }),
              intent({ sizes: [7] }),
              intent({ generation: 2n, sizes: [8] })
            ])
            yield* inbox.acknowledge("orders", "billing", 3)
            yield* inbox.prune("orders", 1)
            yield* inbox.prune("returns", 1)
            assert.deepStrictEqual(yield* inbox.summaries, [
              {
                input: "orders",
                records: 3,
                bytes: 21,
                firstPosition: 2,
                lastPosition: 4,
                sources: [
                  { source: "shop", ...stored(1, 2n).cursor },
                  { source: "till", ...stored(2).cursor }
                ],
                consumers: [{ consumer: "billing", position: 3 }]
              },
              {
                input: "returns",
                records: 0,
                bytes: 0,
                firstPosition: 2,
                lastPosition: 1,
                sources: [{ source: "shop", ...stored(1).cursor }],
                consumers: []
              }
            ])
          })
        )
      })
    )

    it.effect("has one owner at a time", () =>
      Effect.gen(function* () {
        const place = yield* makePlace
        yield* opened(place, () =>
          Effect.gen(function* () {
            const error = yield* Effect.flip(Effect.scoped(Layer.build(place.layer())))
            assert.strictEqual(error.reason, "locked")
          })
        )
        yield* opened(place, (inbox) => inbox.commit([intent({ sizes: [1] })]))
      })
    )

    it.effect.prop(
      "does what plain lists and cursors do",
      [InboxSteps],
      ([steps]) =>
        Effect.gen(function* () {
          const place = yield* makePlace
          const model = new InboxModel()
          for (const opening of steps) yield* opened(place, (inbox) => followSteps(inbox, model, opening))
          yield* opened(place, (inbox) => model.assertState(inbox))
        }),
      { timeout: 120_000, arbitrary: { runs, seed: 11 } }
    )
  })
}

const shopOrders = { source: "shop", input: "orders" }
const cursorAt = (n: number, generation: Id64): StreamCursor => ({ generation, n, life: lifeOfTests })
const stored = (n: number, generation = 1n): CommitOutcome & { readonly cursor: StreamCursor } => ({
  _tag: "Stored",
  cursor: cursorAt(n, generation)
})
const conflict = (n: number, generation = 1n): CommitOutcome => ({ _tag: "Conflict", cursor: cursorAt(n, generation) })

const bigints = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : value)

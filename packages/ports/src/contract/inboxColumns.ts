import { assert, it } from "@effect/vitest"
import type * as Scope from "effect/Scope"
import * as Effect from "effect/Effect"
import { Inbox, inboxRecords, lastPositionOf } from "../Inbox.ts"
import type { InboxPlace } from "./Inbox.ts"
import { intent } from "./intents.ts"
import { recordOf } from "./records.ts"

/** What an `Inbox` promises of the columns that it gives: part of its contract. */
export const inboxColumns = (makePlace: Effect.Effect<InboxPlace, never, Scope.Scope>): void => {
  const opened = <A, E>(place: InboxPlace, body: (inbox: Inbox["Service"]) => Effect.Effect<A, E>) =>
    Effect.provide(Effect.flatMap(Inbox, body), place.layer())

  it.effect("gives columns, with a run for every change of source or jump of numbers", () =>
    Effect.gen(function* () {
      const place = yield* makePlace
      yield* opened(place, (inbox) =>
        Effect.gen(function* () {
          yield* inbox.commit([intent({ sizes: [1, 2] }), intent({ first: 3, sizes: [3] })])
          yield* inbox.commit([intent({ source: "till", sizes: [4, 0] }), intent({ first: 4, sizes: [5] })])
          yield* inbox.commit([intent({ generation: 2n, sizes: [6] })])
          const runs = (after: number, records: number) =>
            Effect.map(inbox.read("orders", after, { records, bytes: 999 }), (batch) => {
              assert.strictEqual(batch.firstPosition, after + 1)
              return batch.runs.map(({ count, firstNumber, source }) => `${count} of ${source} from ${firstNumber}`)
            })
          assert.deepStrictEqual(yield* runs(0, 9), [
            "3 of shop from 1",
            "2 of till from 1",
            "1 of shop from 4",
            "1 of shop from 1"
          ])
          assert.deepStrictEqual(yield* runs(1, 3), ["2 of shop from 2", "1 of till from 1"])
          assert.deepStrictEqual(yield* runs(4, 1), ["1 of till from 2"])
          assert.deepStrictEqual(yield* runs(7, 1), [])
          yield* inbox.prune("orders", 4)
          const batch = yield* inbox.read("orders", 0, { records: 9, bytes: 999 })
          assert.deepStrictEqual([batch.firstPosition, [...batch.sizes]], [5, [0, 5, 6]])
          assert.deepStrictEqual(batch.runs[0], { source: "till", firstNumber: 2, count: 1 })
        })
      )
    })
  )

  it.effect("keeps what it took when the batch is used again, and what it gave until that is pruned", () =>
    Effect.gen(function* () {
      const place = yield* makePlace
      yield* opened(place, (inbox) =>
        Effect.gen(function* () {
          const first = intent({ sizes: [9, 1_000] })
          yield* inbox.commit([first])
          first.batch.bytes.fill(0)
          first.batch.sizes.fill(0)
          const early = yield* inbox.read("orders", 0, { records: 9, bytes: 9_999 })
          for (let n = 3; n <= 300; n += 3) yield* inbox.commit([intent({ first: n, sizes: [700, 0, 700] })])
          const both = [recordOf(1, 9), recordOf(2, 1_000)]
          assert.deepStrictEqual(
            inboxRecords(early).map(({ bytes }) => Uint8Array.from(bytes)),
            both
          )
          yield* inbox.prune("orders", 1)
          const later = yield* inbox.read("orders", 1, { records: 1, bytes: 1 })
          yield* inbox.prune("orders", 1)
          assert.deepStrictEqual(
            inboxRecords(later).map(({ bytes }) => Uint8Array.from(bytes)),
            [both[1]]
          )
        })
      )
    })
  )

  it.effect("reads and prunes through records of many commits in any steps, each record once", () =>
    Effect.gen(function* () {
      const place = yield* makePlace
      yield* opened(place, (inbox) =>
        Effect.gen(function* () {
          const sizes = Array.from({ length: 400 }, (_, i) => (i % 50 === 7 ? 90_000 : (i * 37) % 1_500))
          for (let n = 0; n < sizes.length; n += 20) {
            yield* inbox.commit([intent({ first: n + 1, sizes: sizes.slice(n, n + 20) })])
          }
          let at = 0
          for (const most of [
            { records: 3, bytes: 1 },
            { records: 1_000, bytes: 200_000 },
            { records: 31, bytes: 1 << 30 }
          ]) {
            for (let step = 0; step < 6 && at < 400; step++) {
              const batch = yield* inbox.read("orders", at, most)
              assert.strictEqual(batch.firstPosition, at + 1)
              assert.isTrue(batch.sizes.length === 1 || batch.bytes.length <= most.bytes)
              assert.isTrue(batch.sizes.length >= 1 && batch.sizes.length <= most.records)
              const records = inboxRecords(batch)
              for (const { bytes, position } of records) {
                assert.isTrue(Buffer.from(bytes).equals(recordOf(position, sizes[position - 1]!)))
              }
              at = lastPositionOf(batch)
              const pruned = at - (step % 3)
              if (step > 1) yield* inbox.prune("orders", pruned)
              const [summary] = yield* inbox.summaries
              const left = sizes.slice(summary!.firstPosition - 1).reduce((sum, size) => sum + size, 0)
              assert.deepInclude(summary, { records: 400 - summary!.firstPosition + 1, bytes: left })
            }
          }
          assert.isAbove(at, 100)
          yield* inbox.prune("orders", 400)
          const [summary] = yield* inbox.summaries
          assert.deepInclude(summary, { records: 0, bytes: 0, firstPosition: 401 })
        })
      )
    })
  )
}

import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type Outbox, type ReadBounds, recordOverhead } from "../Outbox.ts"
import type { StoreError } from "../StoreError.ts"
import { recordOf, recordsOf } from "./records.ts"

/** What an `Outbox` promises of the columns that it takes and gives: part of its contract. */
export const outboxColumns = <Place>(
  makePlace: Effect.Effect<Place, never, Scope.Scope>,
  opened: <A, E>(
    place: Place,
    body: (outbox: Outbox["Service"]) => Effect.Effect<A, E>
  ) => Effect.Effect<A, E | StoreError>
): void => {
  it.effect("fails an append of arrays that were given away before, and is not harmed", () =>
    Effect.gen(function* () {
      const place = yield* makePlace
      yield* opened(place, (outbox) =>
        Effect.gen(function* () {
          const { bytes, sizes } = recordsOf(1, [9, 4])
          structuredClone([bytes, sizes], { transfer: [bytes.buffer, sizes.buffer] as Array<ArrayBuffer> })
          const late = yield* Effect.exit(outbox.append({ bytes, sizes: Uint32Array.of(13) }))
          assert.strictEqual(late._tag, "Failure")
          assert.strictEqual(yield* outbox.append(recordsOf(1, [5])), 1)
          const batch = yield* outbox.read(1, { records: 9, bytes: 99 })
          assert.deepStrictEqual(batch, { first: 1, ...recordsOf(1, [5]) })
        })
      )
    })
  )

  it.effect("gives what it holds as it was appended, views of larger arrays too, also after it is removed", () =>
    Effect.gen(function* () {
      const place = yield* makePlace
      yield* opened(place, (outbox) =>
        Effect.gen(function* () {
          const { bytes, sizes } = recordsOf(1, [9, 4, 7, 11])
          yield* outbox.append({ bytes: bytes.subarray(9, 20), sizes: sizes.subarray(1, 3) })
          const kept = yield* outbox.read(1, { records: 9, bytes: 99 })
          yield* outbox.removeThrough(2)
          for (let n = 3; n < 40; n++) yield* outbox.append(recordsOf(n, [500]))
          yield* quiet(outbox)
          assert.deepStrictEqual([...kept.sizes], [4, 7])
          assert.isTrue(Buffer.from(kept.bytes).equals(bytes.subarray(9, 20)))
          assert.isTrue(Buffer.from(bytes).equals(recordsOf(1, [9, 4, 7, 11]).bytes))
        })
      )
    })
  )

  it.effect("reads and removes through many appends in any steps, each record once", () =>
    Effect.gen(function* () {
      const place = yield* makePlace
      const sizes = Array.from({ length: 400 }, (_, i) => (i % 50 === 7 ? 90_000 : (i * 37) % 1_500))
      const followTo = (outbox: Outbox["Service"], from: number, most: ReadBounds) =>
        Effect.gen(function* () {
          let next = from
          for (let step = 0; step < 6 && next <= 400; step++) {
            const batch = yield* outbox.read(next, most)
            assert.isTrue(batch.sizes.length === 1 || batch.bytes.length <= most.bytes)
            assert.isTrue(batch.sizes.length >= 1 && batch.sizes.length <= most.records)
            let offset = 0
            for (const size of batch.sizes) {
              assert.isTrue(
                Buffer.from(batch.bytes.subarray(offset, (offset += size))).equals(recordOf(next, sizes[next - 1]!))
              )
              next += 1
            }
            if (step > 1) yield* outbox.removeThrough(next - 1 - (step % 3))
          }
          return next
        })
      const next = yield* opened(place, (outbox) =>
        Effect.gen(function* () {
          for (let n = 0; n < sizes.length; n += 20) yield* outbox.append(recordsOf(n + 1, sizes.slice(n, n + 20)))
          const next = yield* followTo(outbox, 1, { records: 3, bytes: 1 })
          return yield* followTo(outbox, next, { records: 1_000, bytes: 200_000 })
        })
      )
      yield* opened(place, (outbox) =>
        Effect.gen(function* () {
          const { heldBytes, lowestHeld } = outbox.state()
          const held = sizes.slice(lowestHeld - 1)
          assert.isAtLeast(
            heldBytes,
            counted(
              held.reduce((sum, size) => sum + size, 0),
              held.length
            )
          )
          assert.isAtMost(
            heldBytes,
            counted(
              sizes.reduce((sum, size) => sum + size, 0),
              400
            )
          )
          yield* followTo(outbox, next, { records: 31, bytes: 1 << 30 })
          yield* outbox.removeThrough(400)
          yield* outbox.append(recordsOf(401, [1]))
          assert.strictEqual(outbox.state().heldBytes, counted(1, 1))
        })
      )
    })
  )
}

/** What records count against the limit. */
export const counted = (bytes: number, records: number): number => bytes + recordOverhead * records

/** Lets everything that was asked for so far reach the store and come back. */
export const quiet = Effect.fnUntraced(function* (outbox: Outbox["Service"]) {
  for (let round = 0; round < 4; round++) {
    for (let turn = 0; turn < 4; turn++) yield* Effect.yieldNow
    yield* outbox.read(outbox.state().lowestHeld, { records: 1, bytes: 1 })
  }
})

/**
 * Records that are consumed in batches, as they are stored; and what of an input's records is the application's to keep.
 */
import { assert, describe, it } from "@effect/vitest"
import { type Batch, type ConsumerBatch, ConsumerBusy, Input, Output } from "@pure-link/link"
import { lastPositionOf } from "@pure-link/ports"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { badLink, blobs, device, deviceNode, Dice, hub, manySizes, numbers, outbox, play } from "./world.ts"

/** Sends records from the device, and lets the hub do something with its open input. */
const between = <A, E>(sent: ReadonlyArray<Uint8Array>, body: (input: Input<Uint8Array>) => Effect.Effect<A, E>) =>
  play(
    Effect.gen(function* () {
      const sending = Effect.gen(function* () {
        const output = yield* Output.open(blobs, device)
        yield* output.appendAll(sent)
        yield* Effect.never
      }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
      yield* Effect.forkScoped(sending)
      return yield* Effect.flatMap(Input.open(blobs), body).pipe(Effect.scoped, Effect.provide(hub()))
    }),
    { link: { ...badLink, duplicate: 0 } }
  )

/** The records of a batch, copied. */
const recordsOf = ({ bytes, sizes }: Batch): ReadonlyArray<Uint8Array> => {
  let offset = 0
  return Array.from(sizes, (size) => bytes.slice(offset, (offset += size)))
}

const same = (found: ReadonlyArray<Uint8Array>, sent: ReadonlyArray<Uint8Array>) => {
  assert.strictEqual(found.length, sent.length)
  for (const [i, bytes] of found.entries()) assert.isTrue(Buffer.from(bytes).equals(sent[i]!), `record ${i + 1}`)
}

describe("batches", () => {
  it("bring every record once, in order, and free their room as they are pruned", () => {
    const sent = manySizes(new Dice(5), 800)
    between(sent, (input) =>
      Effect.gen(function* () {
        const found: Array<Uint8Array> = []
        const handle = (batch: ConsumerBatch) =>
          Effect.gen(function* () {
            assert.strictEqual(batch.firstPosition, found.length + 1)
            assert.strictEqual(batch.end, lastPositionOf(batch))
            assert.deepStrictEqual(batch.runs, [
              { source: "device", firstNumber: found.length + 1, count: batch.sizes.length }
            ])
            assert.isTrue(batch.sizes.length === 1 || batch.bytes.length <= 50_000)
            found.push(...recordsOf(batch))
            yield* Effect.all([batch.acknowledge, input.prune(batch.end)], { concurrency: 2 })
          })
        const batches = input.batches({ consumer: "mover", maximumBytes: 50_000 })
        yield* Stream.runForEach(
          Stream.takeUntil(batches, ({ end }) => end === sent.length),
          handle
        )
        same(found, sent)
        assert.strictEqual(yield* input.position("mover"), sent.length)
        assert.strictEqual(yield* input.prune(sent.length), 0)
      })
    )
  })

  it("begin where their consumer stands, one reader at a time, or at a position", () => {
    const sent = numbers(40).map((n) => new Uint8Array(n).fill(n))
    between(sent, (input) =>
      Effect.gen(function* () {
        const options = { consumer: "mover", maximumRecords: 8 }
        const some = <B extends Batch, E>(batches: Stream.Stream<B, E>, count: number) =>
          Stream.runCollect(Stream.take(batches, count))
        const [first] = yield* some(input.batches(options), 1)
        assert.isAtMost(first!.sizes.length, 8)
        yield* first!.acknowledge
        const reading = yield* Effect.forkChild(Stream.runDrain(input.batches(options)), { startImmediately: true })
        yield* Effect.sleep(1_000)
        assert.instanceOf(yield* Effect.flip(some(input.batches(options), 1)), ConsumerBusy)
        yield* Fiber.interrupt(reading)
        const [again] = yield* some(input.batches(options), 1)
        assert.strictEqual(again!.firstPosition, first!.end + 1)
        const [at] = yield* some(input.batchesFrom(31), 1)
        assert.strictEqual(at!.firstPosition, 32)
        same(recordsOf(at!), sent.slice(31, at!.end))
      })
    )
  })
})

describe("values of raw records", () => {
  it("stay what they were when their records are pruned and others come", () => {
    const sent = numbers(3_000).map((n) => new Uint8Array(500).fill(n & 0xff))
    between(sent, (input) =>
      Effect.gen(function* () {
        const kept: Array<Uint8Array> = []
        const chunks = Stream.takeUntil(input.from(0, { maximumRecords: 50 }), ({ end }) => end === sent.length)
        yield* Stream.runForEach(chunks, ({ end, records }) => {
          kept.push(...records.map(({ value }) => value))
          return input.prune(end)
        })
        same(kept, sent)
      })
    )
  })
})

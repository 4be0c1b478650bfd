import { assert, describe, it } from "@effect/vitest"
import { Entropy, Inbox, type InboxRecord, inboxRecords, lastPositionOf, Outbox } from "@pure-link/ports"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { join } from "node:path"
import { InboxSqlite, OutboxSqlite, readInbox, readOutbox } from "../src/index.ts"
import { temporaryFolder } from "./places.ts"
import { startWriter, type WritingProcess } from "./processes/spawn.ts"
import { chunkLength, writerLife, writerStream, writtenRecord } from "./processes/written.ts"

/** Stores between real processes: one owner at a time, readers beside it, and SIGKILL at any moment. */

const withOutbox = <A, E>(file: string, body: (outbox: Outbox["Service"]) => Effect.Effect<A, E>) =>
  Effect.provide(
    Effect.flatMap(Outbox, body),
    Layer.provide(OutboxSqlite.layer({ file, stream: writerStream }), Entropy.layerSystem)
  )
const withInbox = <A, E>(file: string, body: (inbox: Inbox["Service"]) => Effect.Effect<A, E>) =>
  Effect.provide(Effect.flatMap(Inbox, body), InboxSqlite.layer({ file }))

/** All records of an inbox's log. */
const readAll = Effect.fnUntraced(function* (inbox: Inbox["Service"]) {
  const records: Array<InboxRecord> = []
  for (let after = 0; ;) {
    const batch = yield* inbox.read("orders", after, { records: 100_000, bytes: 1 << 30 })
    if (batch.sizes.length === 0) return records
    records.push(...inboxRecords(batch))
    after = lastPositionOf(batch)
  }
})

/**
 * Lets a writer confirm some bursts, kills it in the middle of its work, and returns the last number it had confirmed.
 */
const killAfter = Effect.fnUntraced(function* (writer: WritingProcess, bursts: number) {
  assert.strictEqual(yield* writer.line, "open")
  let confirmed = 0
  for (let burst = 0; burst < bursts; burst++) confirmed = Number(yield* writer.line)
  return Number((yield* writer.kill).at(-1) ?? confirmed)
}, Effect.scoped)

describe("an outbox between processes", () => {
  it.live(
    "is whole and has every confirmed record after SIGKILL in the middle of appends",
    () =>
      Effect.gen(function* () {
        const file = join(yield* temporaryFolder, "orders.outbox")
        const openings: Array<number> = []
        for (const bursts of [2, 60]) {
          const confirmed = yield* Effect.flatMap(startWriter("outboxWriter", file, "write"), (w) =>
            killAfter(w, bursts)
          )
          yield* withOutbox(file, (outbox) =>
            Effect.gen(function* () {
              const { last, lives, lowestHeld } = outbox.state()
              assert.isAtLeast(last, confirmed)
              assert.strictEqual(last % chunkLength, 0)
              assert.strictEqual(outbox.producerPosition("writer"), last)
              for (let number = lowestHeld; number <= last;) {
                const batch = yield* outbox.read(number, { records: 100, bytes: 1 << 20 })
                assert.isAbove(batch.sizes.length, 0)
                let start = 0
                for (const size of batch.sizes) {
                  const record = batch.bytes.slice(start, (start += size))
                  assert.deepStrictEqual(record, writtenRecord(number++))
                }
              }
              openings.push(last)
              assert.strictEqual(new Set(lives.map(({ life }) => life)).size, lives.length)
              assert.isAtMost(lives.at(-1)!.first, last)
            })
          )
        }
        assert.isAbove(openings[1]!, openings[0]!)
      }),
    { timeout: 60_000 }
  )

  it.live(
    "has one owner; others may look on; SIGKILL frees it at once",
    () =>
      Effect.gen(function* () {
        const file = join(yield* temporaryFolder, "orders.outbox")
        yield* withOutbox(file, (outbox) => outbox.append({ bytes: new Uint8Array(5), sizes: Uint32Array.of(5) }))
        const holder = yield* startWriter("outboxWriter", file, "hold")
        yield* holder.line
        const error = yield* Effect.flip(withOutbox(file, () => Effect.void))
        assert.strictEqual(error.reason, "locked")
        assert.include(error.message, `process ${holder.pid}`)
        yield* Effect.scoped(
          Effect.gen(function* () {
            const reader = yield* readOutbox(file)
            assert.deepInclude(yield* reader.state, { stream: writerStream, lowestHeld: 1, last: 1, heldBytes: 5 })
            assert.deepStrictEqual((yield* reader.read(1, { records: 9, bytes: 9 })).sizes, Uint32Array.of(5))
          })
        )
        yield* holder.kill
        yield* withOutbox(file, (outbox) => Effect.sync(() => assert.strictEqual(outbox.state().last, 1)))
      }),
    { timeout: 60_000 }
  )
})

describe("an inbox between processes", () => {
  it.live(
    "is whole and has every confirmed record after SIGKILL in the middle of commits",
    () =>
      Effect.gen(function* () {
        const file = join(yield* temporaryFolder, "node.inbox")
        for (const bursts of [1, 60]) {
          const confirmed = yield* Effect.flatMap(startWriter("inboxWriter", file, "write"), (w) =>
            killAfter(w, bursts)
          )
          yield* withInbox(file, (inbox) =>
            Effect.gen(function* () {
              const last = inbox.lastPosition("orders")
              const cursors = ["a", "b"].map((source) => inbox.cursor({ source, input: "orders" })!)
              for (const { life, n } of cursors) {
                assert.isAtLeast(n, confirmed)
                assert.strictEqual(n % chunkLength, 0)
                assert.strictEqual(life, writerLife)
              }
              assert.strictEqual(cursors[0]!.n + cursors[1]!.n, last)
              const records = yield* readAll(inbox)
              const lowest = last - records.length + 1
              assert.deepStrictEqual(
                records.map(({ position }) => position),
                records.map((_, i) => lowest + i)
              )
              const next = new Map<string, number>()
              for (const { bytes, number, source } of records) {
                assert.strictEqual(number, next.get(source) ?? number)
                assert.deepStrictEqual(Buffer.from(bytes), Buffer.from(writtenRecord(number)))
                next.set(source, number + 1)
              }
              assert.deepStrictEqual(
                [next.get("a"), next.get("b")],
                cursors.map(({ n }) => n + 1)
              )
              assert.isAtMost(yield* inbox.consumerPosition("orders", "consumer"), last)
            })
          )
        }
      }),
    { timeout: 60_000 }
  )

  it.live(
    "can be looked into while another process commits to it",
    () =>
      Effect.gen(function* () {
        const file = join(yield* temporaryFolder, "node.inbox")
        const writer = yield* startWriter("inboxWriter", file, "write")
        for (let burst = 0; burst < 5; burst++) yield* writer.line
        const reader = yield* readInbox(file)
        const looks: Array<number> = []
        for (let look = 0; look < 20; look++) {
          yield* writer.line
          const [summary] = yield* reader.summaries
          assert.strictEqual(summary!.records, summary!.lastPosition - summary!.firstPosition + 1)
          assert.strictEqual(
            summary!.sources.reduce((sum, { n }) => sum + n, 0),
            summary!.lastPosition
          )
          looks.push(summary!.lastPosition)
          const [record] = inboxRecords(
            yield* reader.read("orders", summary!.lastPosition - 1, { records: 1, bytes: 1 })
          )
          assert.deepStrictEqual(record?.bytes, writtenRecord(record!.number))
        }
        assert.deepStrictEqual(
          looks,
          looks.toSorted((a, b) => a - b)
        )
        assert.isAbove(looks.at(-1)!, looks[0]!)
        const error = yield* Effect.flip(withInbox(file, () => Effect.void))
        assert.strictEqual(error.reason, "locked")
      }),
    { timeout: 60_000 }
  )
})

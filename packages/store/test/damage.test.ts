import { assert, describe, it } from "@effect/vitest"
import { Entropy, Inbox, Outbox } from "@pure-link/ports"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import { readFileSync, writeFileSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import type { InboxPiece } from "../src/file/logTable.ts"
import { OutboxSqlite, readInbox, readOutbox } from "../src/index.ts"
import { LogReader } from "../src/LogReader.ts"
import { intent, newFile, records, stream, withInbox } from "./orders.ts"

/** What a read gives where records are damaged or gone, or where their memory is used again meanwhile: never others. */

const outboxLayer = (file: string) => Layer.provide(OutboxSqlite.layer({ file, stream }), Entropy.layerSeeded(3))
const withOutbox = <A, E>(file: string, body: (outbox: Outbox["Service"]) => Effect.Effect<A, E>) =>
  Effect.provide(Effect.flatMap(Outbox, body), outboxLayer(file))
const change = (file: string, sql: string): void => {
  const db = new DatabaseSync(file)
  db.exec(sql)
  db.close()
}

describe("an outbox that lost a record", () => {
  const most = { records: 1_000, bytes: 1 << 20 }

  it.effect("gives those before it, and then an error instead of nothing", () =>
    Effect.gen(function* () {
      const file = yield* newFile
      yield* withOutbox(file, (outbox) => Effect.forEach([4, 1, 5], (count) => outbox.append(records(count, 5))))
      change(file, "DELETE FROM blocks WHERE first = 5")
      const look = (read: Outbox["Service"]["read"]) =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* read(2, most), { first: 2, ...records(3, 5) })
          const error = yield* Effect.flip(read(5, most))
          assert.strictEqual(error.reason, "unreadable")
          assert.include(error.message, "record 5")
          assert.strictEqual((yield* read(6, most)).sizes.length, 5)
          assert.strictEqual((yield* read(11, most)).sizes.length, 0)
        })
      yield* withOutbox(file, (outbox) => look(outbox.read))
      yield* Effect.scoped(Effect.flatMap(readOutbox(file), (reader) => look(reader.read)))
    })
  )

  it.effect("to damage gives the blocks before it, and sees a single bit of it", () =>
    Effect.gen(function* () {
      const file = yield* newFile
      const append = Effect.replicateEffect(5)
      yield* withOutbox(file, (outbox) => append(outbox.append(records(20, 1_000))))
      const whole = readFileSync(file)
      const inTheMiddle = whole.lastIndexOf(new Uint8Array(5_000).fill(7))
      const damages: ReadonlyArray<(bytes: Buffer) => void> = [
        (bytes) => bytes.fill(0xa5, inTheMiddle, inTheMiddle + 4_000),
        (bytes) => (bytes[inTheMiddle + 2_500]! ^= 16)
      ]
      for (const damage of damages) {
        const damaged = Buffer.from(whole)
        damage(damaged)
        writeFileSync(file, damaged)
        yield* withOutbox(file, (outbox) =>
          Effect.gen(function* () {
            let next = 1
            let read = yield* Effect.result(outbox.read(next, most))
            while (read._tag === "Success") {
              assert.isAbove(read.success.sizes.length, 0)
              assert.isTrue(read.success.bytes.every((byte) => byte === 7))
              next += read.success.sizes.length
              read = yield* Effect.result(outbox.read(next, most))
            }
            assert.include([21, 41, 61, 81], next)
            assert.strictEqual(read.failure.reason, "unreadable")
          })
        )
      }
    })
  )
})

describe("an inbox that lost a record, or whose rows say something else", () => {
  const most = { records: 1_000, bytes: 1 << 20 }
  const damages: ReadonlyArray<readonly [what: string, sql: string]> = [
    ["a block is gone", "DELETE FROM log_1 WHERE first = 5"],
    ["a block has another position", "UPDATE log_1 SET first = 7 WHERE first = 5"],
    ["a block has other numbers", "UPDATE log_1 SET number = 6 WHERE first = 5"],
    ["a block is of a source that is not there", "UPDATE log_1 SET source = 3 WHERE first = 5"],
    [
      "a block is of another source",
      "INSERT INTO sources VALUES (2, 'till'); UPDATE log_1 SET source = 2 WHERE first = 5"
    ]
  ]

  for (const [what, sql] of damages) {
    it.effect(`gives those before it, and then an error instead of waiting: ${what}`, () =>
      Effect.gen(function* () {
        const file = yield* newFile
        yield* withInbox(file, (inbox) =>
          Effect.forEach([intent(1, 4), intent(5, 1), intent(6, 5)], (one) => inbox.commit([one]))
        )
        change(file, sql)
        const look = (read: Inbox["Service"]["read"]) =>
          Effect.gen(function* () {
            const before = yield* read("orders", 1, most)
            assert.deepStrictEqual([before.firstPosition, before.sizes.length], [2, 3])
            assert.deepStrictEqual(before.runs, [{ source: "shop", firstNumber: 2, count: 3 }])
            assert.strictEqual((yield* Effect.flip(read("orders", 4, most))).reason, "unreadable")
            assert.strictEqual((yield* read("orders", 5, most)).sizes.length, 5)
            assert.strictEqual((yield* read("orders", 10, most)).sizes.length, 0)
          })
        yield* withInbox(file, (inbox) => look(inbox.read))
        yield* Effect.scoped(Effect.flatMap(readInbox(file), (reader) => look(reader.read)))
      })
    )
  }
})

describe("a read that waits for the thread while it has records that are at hand", () => {
  const piece = (first: number, bytes: Uint8Array): InboxPiece => ({
    first,
    from: first,
    bytes,
    sizes: new Uint32Array(bytes.length).fill(1),
    runs: [["shop", first, bytes.length]]
  })
  const most = { records: 6, bytes: 1 << 20 }

  const moments = [
    ["are pushed out by later ones", (log) => log.written(piece(7, new Uint8Array(9 << 20)), () => {})],
    ["are pruned", (log) => log.prune(3)]
  ] as const satisfies ReadonlyArray<readonly [string, (log: LogReader<never>) => void]>
  for (const [what, happens] of moments) {
    it.effect(`gives them as they were when they ${what} and their buffer moves meanwhile`, () =>
      Effect.gen(function* () {
        const go = Latch.makeUnsafe()
        const begun = Latch.makeUnsafe()
        const log = new LogReader<never>(() =>
          Effect.as(Effect.andThen(begun.open, go.await), [piece(4, Uint8Array.of(4, 5, 6))])
        )
        const atHand = piece(1, Uint8Array.of(1, 2, 3))
        log.written(atHand, () =>
          structuredClone(atHand.bytes.buffer, { transfer: [atHand.bytes.buffer as ArrayBuffer] })
        )
        const reading = yield* Effect.forkChild(log.read(0, most), { startImmediately: true })
        yield* begun.await
        happens(log)
        yield* go.open
        const { bytes, firstPosition, runs, sizes } = yield* Fiber.join(reading)
        assert.deepStrictEqual([...bytes], [1, 2, 3, 4, 5, 6])
        assert.deepStrictEqual([firstPosition, sizes.length], [1, 6])
        assert.deepStrictEqual(runs, [{ source: "shop", firstNumber: 1, count: 6 }])
      })
    )
  }

  it.effect("gives those when the thread fails, and the failure to the read that begins there", () =>
    Effect.gen(function* () {
      const log = new LogReader(() => Effect.fail("broken" as const))
      log.written(piece(1, Uint8Array.of(1, 2, 3)), () => {})
      assert.deepStrictEqual([...(yield* log.read(0, most)).bytes], [1, 2, 3])
      assert.strictEqual(yield* Effect.flip(log.read(3, most)), "broken")
    })
  )
})

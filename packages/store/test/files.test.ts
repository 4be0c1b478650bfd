import { assert, describe, it } from "@effect/vitest"
import { Entropy, Inbox, Outbox, type StoreError } from "@pure-link/ports"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { readFileSync, statSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { OwnedDatabase } from "../src/file/database.ts"
import { outboxKind } from "../src/file/outboxFile.ts"
import { InboxSqlite, OutboxSqlite, readInbox, readOutbox } from "../src/index.ts"
import { temporaryFolder } from "./places.ts"

/**
 * Files as a store may find them: of another kind or version, damaged, missing, full, with a reader that does not go
 * away.
 */

const stream = { source: "shop", input: "orders", shape: 1n }
const outboxLayer = (options: Omit<OutboxSqlite.Options, "stream">) =>
  Layer.provide(OutboxSqlite.layer({ stream, ...options }), Entropy.layerSeeded(3))
const withOutbox = <A, E>(
  options: Omit<OutboxSqlite.Options, "stream">,
  body: (outbox: Outbox["Service"]) => Effect.Effect<A, E>
) => Effect.provide(Effect.flatMap(Outbox, body), outboxLayer(options))
const openOutbox = (file: string): Effect.Effect<void, StoreError> => withOutbox({ file }, () => Effect.void)
const openInbox = (file: string): Effect.Effect<void, StoreError> =>
  Effect.scoped(Effect.asVoid(Layer.build(InboxSqlite.layer({ file }))))

const records = (count: number, size: number) => ({
  bytes: new Uint8Array(count * size).fill(7),
  sizes: new Uint32Array(count).fill(size)
})
const streamOfTests = { generation: 1n, lives: [{ life: 1n, first: 1 }] }
const newFile = Effect.map(temporaryFolder, (folder) => join(folder, "a file"))

/** Changes a closed file by SQL. */
const change = (file: string, sql: string): void => {
  const db = new DatabaseSync(file)
  db.exec(sql)
  db.close()
}

const assertRefused = Effect.fnUntraced(function* (file: string, reason: StoreError["reason"], words: string) {
  for (const open of [openOutbox(file), Effect.scoped(Effect.flatMap(readOutbox(file), (reader) => reader.state))]) {
    const error = yield* Effect.flip(open)
    assert.strictEqual(error.reason, reason)
    assert.include(error.message, words)
    assert.isAbove(error.remedy.length, 10)
  }
})

describe("a store's file", () => {
  it.effect("is written with WAL and synchronous=FULL on the live connection", () =>
    Effect.gen(function* () {
      const owned = new OwnedDatabase(yield* newFile, outboxKind, {})
      const pragma = (name: string) => Object.values(owned.db.prepare(`PRAGMA ${name}`).get()!)[0]
      assert.deepStrictEqual(["journal_mode", "synchronous", "user_version"].map(pragma), ["wal", 2, 2])
      owned.close()
    })
  )

  it.effect("is refused when a later version made it", () =>
    Effect.gen(function* () {
      for (const sql of ["PRAGMA user_version=3", "UPDATE meta SET value = 3 WHERE key = 'schema'"]) {
        const file = yield* newFile
        yield* openOutbox(file)
        change(file, sql)
        yield* assertRefused(file, "version", "schema 3")
      }
    })
  )

  it.effect("is refused and left as it is when it is not ours", () =>
    Effect.gen(function* () {
      const text = yield* newFile
      writeFileSync(text, "orders\n".repeat(1_000))
      yield* assertRefused(text, "unreadable", "not a database")
      assert.strictEqual(readFileSync(text, "utf8"), "orders\n".repeat(1_000))
      const foreign = yield* newFile
      change(foreign, "CREATE TABLE bookmarks(url TEXT)")
      const before = readFileSync(foreign)
      yield* assertRefused(foreign, "unreadable", "another program")
      assert.isTrue(readFileSync(foreign).equals(before))
      const inbox = yield* newFile
      yield* openInbox(inbox)
      yield* assertRefused(inbox, "unreadable", "is a Pure Link inbox")
    })
  )

  it.effect("is refused when it is damaged, at the latest when the damage is read", () =>
    Effect.gen(function* () {
      const file = yield* newFile
      yield* withOutbox({ file }, (outbox) => outbox.append(records(400, 500)))
      const whole = readFileSync(file)
      const readAll = withOutbox({ file }, (outbox) => outbox.read(1, { records: 400, bytes: 1 << 20 }))
      const damaged = Buffer.from(whole)
      damaged.fill(0xa5, 16_384 * 6, whole.length)
      writeFileSync(file, damaged)
      assert.strictEqual((yield* Effect.flip(readAll)).reason, "unreadable")
      writeFileSync(file, whole)
      truncateSync(file, 16_384 * 5)
      assert.strictEqual((yield* Effect.flip(readAll)).reason, "unreadable")
      writeFileSync(file, whole)
      change(file, "DELETE FROM blocks WHERE first > 1 OR count = 400")
      assert.strictEqual((yield* Effect.flip(readAll)).reason, "unreadable")
      writeFileSync(file, whole)
      assert.strictEqual((yield* readAll).sizes.length, 400)
    })
  )

  it.effect('fails with "permission" where no file can be', () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      yield* assertRefused(join(folder, "missing", "a file"), "permission", "folder")
      assert.strictEqual((yield* Effect.flip(openOutbox(folder))).reason, "permission")
      const missing = yield* Effect.flip(Effect.scoped(readInbox(join(folder, "none"))))
      assert.strictEqual(missing.reason, "permission")
    })
  )

  it.effect("that is full refuses appends, keeps what it has, and goes on when there is room", () =>
    Effect.gen(function* () {
      const file = yield* newFile
      yield* withOutbox({ file, fileLimitBytes: 1 << 20 }, (outbox) =>
        Effect.gen(function* () {
          const fill: Effect.Effect<StoreError> = outbox.append(records(50, 1_000)).pipe(
            Effect.flatMap(() => fill),
            Effect.catchTag("StoreError", (error) => Effect.succeed(error)),
            Effect.orDie
          )
          assert.strictEqual((yield* fill).reason, "full")
          const { last } = outbox.state()
          assert.isAbove(last, 400)
          assert.strictEqual(last % 50, 0)
          assert.strictEqual((yield* outbox.read(last, { records: 1, bytes: 1 })).sizes.length, 1)
          yield* outbox.removeThrough(last)
          assert.strictEqual(yield* outbox.append(records(50, 1_000)), last + 1)
        })
      )
    })
  )

  it.effect("that is full refuses commits as a whole, and goes on when records are pruned", () =>
    Effect.gen(function* () {
      const file = yield* newFile
      const commit = (inbox: Inbox["Service"], first: number) =>
        inbox.commit([
          { ...streamOfTests, source: "t", input: `of ${first}`, batch: { first: 1, ...records(1, 1) } },
          { ...streamOfTests, source: "s", input: "orders", batch: { first, ...records(50, 1_000) } }
        ])
      const body = Effect.gen(function* () {
        const inbox = yield* Inbox
        const fill = (first: number): Effect.Effect<readonly [StoreError, number]> =>
          commit(inbox, first).pipe(
            Effect.flatMap(() => fill(first + 50)),
            Effect.catch((error) => Effect.succeed([error, first] as const))
          )
        const [error, first] = yield* fill(1)
        assert.strictEqual(error.reason, "full")
        assert.strictEqual(inbox.cursor({ source: "s", input: "orders" })?.n, first - 1)
        assert.isUndefined(inbox.cursor({ source: "t", input: `of ${first}` }))
        assert.strictEqual(yield* inbox.prune("orders", first - 1), first - 1)
        const outcomes = yield* commit(inbox, first)
        assert.deepStrictEqual(
          outcomes.map(({ _tag }) => _tag),
          ["Stored", "Stored"]
        )
        assert.strictEqual(inbox.lastPosition("orders"), first + 49)
        assert.strictEqual(inbox.lastPosition(`of ${first}`), 1)
        const summary = (yield* inbox.summaries).find(({ input }) => input === "orders")
        assert.deepInclude(summary, { records: 50, bytes: 50_000, firstPosition: first, lastPosition: first + 49 })
      })
      yield* Effect.provide(body, InboxSqlite.layer({ file, fileLimitBytes: 1 << 20 }))
    })
  )

  it.effect("is said to hold the bytes of the records above the last removed, before their rows are deleted too", () =>
    Effect.gen(function* () {
      const file = yield* newFile
      const state = Effect.scoped(Effect.flatMap(readOutbox(file), (reader) => reader.state))
      yield* openOutbox(file)
      assert.deepInclude(yield* state, { lowestHeld: 1, last: 0, heldBytes: 0 })
      yield* withOutbox({ file }, (outbox) => outbox.append(records(10, 25)))
      assert.deepInclude(yield* state, { lowestHeld: 1, last: 10, heldBytes: 250 })
      change(file, "UPDATE progress SET removed = 3")
      assert.deepInclude(yield* state, { lowestHeld: 4, last: 10, heldBytes: 175 })
      change(file, "UPDATE progress SET removed = 10")
      assert.deepInclude(yield* state, { lowestHeld: 11, last: 10, heldBytes: 0 })
    })
  )

  it.effect("keeps its log short beside our readers, and bounded beside one that never lets go", () =>
    Effect.gen(function* () {
      const file = yield* newFile
      const logBytes = () => statSync(`${file}-wal`).size
      yield* withOutbox({ file, logLimitBytes: 16 << 20 }, (outbox) =>
        Effect.gen(function* () {
          const reader = yield* readOutbox(file)
          const append = outbox.append(records(16, 65_536))
          for (let i = 0; i < 40; i++) {
            yield* append
            yield* reader.read(1, { records: 2, bytes: 1 << 20 })
          }
          assert.isBelow(logBytes(), 14 << 20)
          const stuck = new DatabaseSync(file, { readOnly: true })
          stuck.exec("BEGIN")
          stuck.prepare("SELECT count(*) FROM meta").get()
          const fill: Effect.Effect<StoreError> = append.pipe(
            Effect.flatMap(() => fill),
            Effect.catchTag("StoreError", (error) => Effect.succeed(error)),
            Effect.orDie
          )
          const error = yield* fill
          assert.strictEqual(error.reason, "full")
          assert.include(error.message, "read transaction")
          assert.isBelow(logBytes(), 20 << 20)
          stuck.close()
          yield* append
          assert.isBelow(logBytes(), 14 << 20)
        }).pipe(Effect.scoped)
      )
      assert.isUndefined(statSync(`${file}-wal`, { throwIfNoEntry: false }))
    })
  )
})

import { assert, describe, it } from "@effect/vitest"
import { Inbox, StoreError } from "@pure-link/ports"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { existsSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { InboxFile } from "../src/file/inboxFile.ts"
import { OutboxFile, type OutboxProgress } from "../src/file/outboxFile.ts"
import { InboxMemory, InboxSqlite, storeCounters } from "../src/index.ts"
import { makeInbox } from "../src/InboxFront.ts"
import { makeOutbox, type OutboxGroup } from "../src/OutboxFront.ts"
import { openThread } from "../src/StoreThread.ts"
import { intent, newFile, records, stream } from "./orders.ts"
import { slowDisk } from "./places.ts"
import type { DyingOperations } from "./processes/dyingThread.ts"

/** What must never become silence: defects, positions that are none, a dead thread, a full disk. */

/** Lets statements fail with a result code of SQLite's, until what is returned is called. */
const breakSql = (codeFor: (sql: string) => number | undefined) => {
  const { exec, prepare } = DatabaseSync.prototype
  const failOn = (sql: string) => {
    const errcode = codeFor(sql)
    if (errcode !== undefined) throw Object.assign(new Error("disk I/O error"), { errcode })
  }
  DatabaseSync.prototype.exec = function (sql) {
    failOn(sql)
    return exec.call(this, sql)
  }
  DatabaseSync.prototype.prepare = function (sql, ...rest) {
    failOn(sql)
    return prepare.call(this, sql, ...rest)
  }
  return () => void Object.assign(DatabaseSync.prototype, { exec, prepare })
}

describe("a defect in a turn", () => {
  const front = (transact: (group: OutboxGroup) => Effect.Effect<OutboxProgress, StoreError>) =>
    makeOutbox(
      { file: "front", stream, limitBytes: 1_000, life: 2n, counters: storeCounters() },
      { stream, generation: 1n, last: 0, removed: 0, deleted: 0, oldestEnd: 0, bytes: 0, lives: [], producers: [] },
      { transact, read: () => Effect.die("not read here") }
    )
  const progress = ({ chunks }: OutboxGroup) =>
    Effect.succeed({
      deleted: 0,
      oldestEnd: 1,
      bytes: chunks.reduce((sum, { bytes }) => sum + bytes.length, 0),
      transactions: 1
    } satisfies OutboxProgress)

  it.effect("fails the appends of that turn with a typed error, and no later one", () =>
    Effect.gen(function* () {
      let turns = 0
      const outbox = yield* front((group) => {
        if (++turns === 1) throw new Error("a wire broke")
        return progress(group)
      })
      const error = yield* Effect.flip(outbox.append(records(1, 1)))
      assert.deepInclude(error, { _tag: "StoreError", reason: "failed" })
      assert.include(error.message, "a wire broke")
      assert.strictEqual(yield* outbox.append(records(1, 1)), 1)
    }).pipe(Effect.scoped)
  )

  it.effect("that leaves unknown what is on disk ends the store: those in it, behind it and later ones fail", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const outbox = yield* Scope.provide(
        front(() => Effect.as(Effect.yieldNow, undefined as unknown as OutboxProgress)),
        scope
      )
      const appends = Array.from({ length: 3 }, (_, i) => Effect.flip(outbox.append(records(1, 300 + i))))
      for (const error of yield* Effect.all(appends, { concurrency: "unbounded" })) {
        assert.deepInclude(error, { _tag: "StoreError", reason: "failed" })
      }
      assert.deepInclude(yield* Effect.flip(outbox.append(records(1, 1))), { _tag: "StoreError", reason: "failed" })
      yield* Scope.close(scope, Exit.void)
    })
  )

  it.effect("of an inbox, such as a batch that was given away, fails the commit with a typed error", () =>
    Effect.gen(function* () {
      const inbox = yield* Inbox
      const lost = intent(1)
      const committing = yield* Effect.forkChild(Effect.flip(inbox.commit([lost])), { startImmediately: true })
      structuredClone(lost.batch.bytes, { transfer: [lost.batch.bytes.buffer] })
      assert.deepInclude(yield* Fiber.join(committing), { _tag: "StoreError", reason: "failed" })
      assert.strictEqual((yield* inbox.commit([intent(1)]))[0]?._tag, "Stored")
    }).pipe(Effect.provide(InboxMemory.layer(slowDisk)))
  )

  it.effect("of an inbox that commits at once is a typed error too, and the next commit works", () =>
    Effect.gen(function* () {
      const backing = new InboxMemory.Backing()
      const committing = Effect.gen(function* () {
        const inbox = yield* Inbox
        Object.defineProperty(backing, "logOf", { configurable: true, value: () => assert.fail("a fault") })
        assert.deepInclude(yield* Effect.flip(inbox.commit([intent(1)])), { _tag: "StoreError", reason: "failed" })
        Reflect.deleteProperty(backing, "logOf")
        assert.strictEqual((yield* inbox.commit([intent(1)]))[0]?._tag, "Stored")
      })
      yield* Effect.provide(committing, InboxMemory.layer({ backing }))
    })
  )
})

describe("a full inbox", () => {
  it.effect("prunes what was asked for together with a commit that has no room", () =>
    Effect.gen(function* () {
      const groups: Array<string> = []
      const full = new StoreError({ reason: "full", file: "front", detail: "no room", remedy: "make some" })
      const inbox = yield* makeInbox(
        { file: "front", counters: storeCounters() },
        { streams: [], positions: [["orders", 9]] },
        {
          transact: ({ intents, prunings }) =>
            Effect.suspend(() => {
              groups.push(`${intents.length} ${prunings.length}`)
              if (intents.length > 0) return Effect.fail(full)
              const pruned = prunings.map(({ through }) => ({ records: through, through, isDone: true }))
              return Effect.succeed({ outcomes: [], forgotten: [], pruned, positions: [], transactions: 1 })
            }),
          read: () => Effect.die("not read here"),
          consumerPosition: () => Effect.succeed(0),
          summaries: Effect.succeed([])
        }
      )
      const [commit, pruned] = yield* Effect.all([Effect.flip(inbox.commit([intent(1)])), inbox.prune("orders", 4)], {
        concurrency: "unbounded"
      })
      assert.strictEqual(commit.reason, "full")
      assert.strictEqual(pruned, 4)
      assert.deepStrictEqual(groups, ["1 1", "0 1"])
    }).pipe(Effect.scoped)
  )
})

describe("a position that is none", () => {
  for (const [place, layer] of [
    ["in memory", Effect.succeed(InboxMemory.layer())],
    ["in a file", Effect.map(newFile, (file) => InboxSqlite.layer({ file }))]
  ] as const) {
    it.effect(`fails alone, and not the commit whose transaction it would share, ${place}`, () =>
      Effect.gen(function* () {
        const bad = [Number.NaN, 0.5, -1]
        const use = Effect.gen(function* () {
          const inbox = yield* Inbox
          yield* inbox.commit([intent(1, 3)])
          const calls = bad.flatMap((position) => [
            inbox.prune("orders", position),
            inbox.acknowledge("orders", "billing", position)
          ])
          const [outcomes, ...errors] = yield* Effect.all(
            [inbox.commit([intent(4)]), ...calls.map((call) => Effect.flip(call))],
            { concurrency: "unbounded" }
          )
          assert.strictEqual(outcomes[0]?._tag, "Stored")
          for (const { reason } of errors) assert.strictEqual(reason, "failed")
          assert.strictEqual(yield* inbox.consumerPosition("orders", "billing"), 0)
          assert.strictEqual(yield* inbox.prune("orders", Number.POSITIVE_INFINITY), 4)
        })
        yield* Effect.provide(use, yield* layer)
      })
    )
  }
})

describe("a store's thread that ends by itself", () => {
  const program = new URL("./processes/dyingThread.ts", import.meta.url)
  it.effect('fails what waits and what comes later with "died", and says so without being asked', () =>
    Effect.gen(function* () {
      for (const end of ["exit", "die"] as const) {
        const thread = yield* openThread<DyingOperations, string, { file: string }>(program, { file: "thread" })
        const watching = yield* Effect.forkChild(Effect.flip(thread.ended), { startImmediately: true })
        assert.strictEqual(yield* thread.request("echo", "hello"), "hello")
        if (end === "exit") {
          assert.strictEqual((yield* Effect.flip(thread.request("exit", 3))).reason, "died")
        } else yield* Effect.exit(thread.request("die", "a wire broke")) // its reply may still come through
        const error = yield* Fiber.join(watching)
        assert.deepInclude(error, { _tag: "StoreError", reason: "died", isFinal: true })
        assert.include(error.message, end === "exit" ? "code 3" : "a wire broke")
        assert.strictEqual((yield* Effect.flip(thread.request("echo", "again"))).reason, "died")
      }
    }).pipe(Effect.scoped)
  )
})

describe("an inbox whose disk fails twice", () => {
  it.effect("knows afterwards what stands on disk", () =>
    Effect.gen(function* () {
      const inbox = new InboxFile(yield* newFile, {})
      const group = (first: number) => {
        const { batch, ...head } = intent(first)
        const intents = [{ ...head, first, count: batch.sizes.length }]
        return { prunings: [], intents, ...records(1, 1), acknowledgements: [], forgets: [] }
      }
      const broken = new Set<string>()
      const mend = breakSql((sql) => ([...broken].some((start) => sql.startsWith(start)) ? 10 : undefined))
      try {
        inbox.transact(group(1))
        broken.add("COMMIT").add("SELECT id, source")
        assert.throws(() => inbox.transact(group(2)), "disk I/O")
        broken.delete("COMMIT")
        assert.throws(() => inbox.transact(group(2)), "disk I/O")
        assert.throws(() => inbox.read("orders", 0, 9), "disk I/O")
        broken.clear()
        assert.strictEqual(inbox.read("orders", 0, 9)[0]?.sizes.length, 1)
        assert.deepStrictEqual(inbox.transact(group(2)).outcomes, [
          { _tag: "Stored", cursor: { generation: 1n, n: 2, life: 7n } }
        ])
      } finally {
        mend()
        inbox.close()
      }
    })
  )
})

describe("a full disk", () => {
  it.effect("does not keep an outbox from being opened, read and emptied with the room that is kept for that", () =>
    Effect.gen(function* () {
      const file = yield* newFile
      const reserve = `${file}.reserve`
      const open = () => new OutboxFile(file, stream, 9n, {})
      const group = (first: number, count: number, removed: number) => ({
        first,
        ...records(count, 10),
        life: first === 1 ? 5n : undefined,
        removed,
        producers: []
      })
      const before = open()
      before.transact({ ...group(1, 4, 0), ...records(4, 60_000) })
      before.transact({ ...group(5, 6, 0), life: undefined })
      before.close()
      let writes = false
      const mend = breakSql((sql) => {
        if (sql.startsWith("BEGIN")) writes = sql.includes("IMMEDIATE")
        return writes && sql === "COMMIT" && existsSync(reserve) ? 13 : undefined
      })
      try {
        const outbox = open()
        assert.strictEqual(outbox.contents.last, 10)
        assert.isTrue(existsSync(reserve))
        assert.throws(() => outbox.transact(group(11, 1, 0)), "disk I/O")
        assert.strictEqual(outbox.read(1, 9)[0]?.sizes.length, 4)
        assert.strictEqual(outbox.transact(group(11, 0, 4)).deleted, 4)
        assert.isFalse(existsSync(reserve))
        assert.strictEqual(outbox.transact(group(11, 0, 7)).deleted, 4) // room comes back a block at a time
        assert.strictEqual(outbox.transact(group(11, 0, 10)).deleted, 10)
        assert.throws(() => outbox.transact(group(11, 1, 10)), "disk I/O") // what is kept is taken back first
        assert.isTrue(existsSync(reserve))
        outbox.close()
      } finally {
        mend()
      }
      const after = open()
      assert.deepInclude(after.contents, { last: 10, removed: 10, deleted: 10 })
      after.close()
    })
  )

  it.effect("that has no room for the log's index is given some when the file is opened", () =>
    Effect.gen(function* () {
      const file = yield* newFile
      new OutboxFile(file, stream, 9n, {}).close()
      const reserve = `${file}.reserve`
      assert.isTrue(existsSync(reserve))
      const mend = breakSql((sql) => (sql.includes("application_id") && existsSync(reserve) ? 4874 : undefined))
      try {
        new OutboxFile(file, stream, 9n, {}).close()
      } finally {
        mend()
      }
    })
  )
})

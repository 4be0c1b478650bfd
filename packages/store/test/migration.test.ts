import { assert, describe, it } from "@effect/vitest"
import { Entropy, Inbox, inboxRecords, Outbox, recordOverhead } from "@pure-link/ports"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { failureOf } from "../src/file/failure.ts"
import { OutboxFile } from "../src/file/outboxFile.ts"
import { InboxSqlite, OutboxSqlite, readInbox, readOutbox } from "../src/index.ts"
import { temporaryFolder } from "./places.ts"

/** Files of schema 1, a row for each record: rewritten when their owner opens them, refused to who only looks. */

const stream = { source: "shop", input: "orders", shape: 1n }
const id = (value: number) => `x'${value.toString(16).padStart(16, "0")}'`
const head = (applicationId: number) => `
  PRAGMA application_id=${applicationId};
  PRAGMA user_version=1;
  CREATE TABLE meta(key TEXT PRIMARY KEY NOT NULL, value ANY) STRICT, WITHOUT ROWID;
  INSERT INTO meta VALUES ('schema', 1);
`
const sizeOf = (number: number) => (number === 7 ? 300_000 : (number * 37) % 1_500)
const recordOf = (number: number) => new Uint8Array(sizeOf(number)).fill(number & 0xff)

/** An outbox as the former version left it: 2,000 records appended, 3 removed, 2 of them deleted. */
const oldOutbox = (file: string): void => {
  const db = new DatabaseSync(file)
  db.exec(`
    ${head(0x504c4f42)}
    CREATE TABLE records(number INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
    CREATE TABLE lives(first INTEGER PRIMARY KEY, life BLOB NOT NULL UNIQUE CHECK (length(life) = 8)) STRICT;
    CREATE TABLE producers(producer TEXT PRIMARY KEY NOT NULL, position INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE progress(
      id INTEGER PRIMARY KEY CHECK (id = 1), last INTEGER NOT NULL, removed INTEGER NOT NULL,
      deleted INTEGER NOT NULL, bytes INTEGER NOT NULL, CHECK (0 <= deleted AND deleted <= removed AND removed <= last)
    ) STRICT;
    INSERT INTO meta VALUES ('source', 'shop'), ('input', 'orders'), ('shape', ${id(1)}), ('generation', ${id(9)});
    INSERT INTO lives VALUES (1, ${id(5)});
    INSERT INTO producers VALUES ('a.log', 77);
  `)
  db.exec("BEGIN")
  const insert = db.prepare("INSERT INTO records VALUES (?, ?)")
  let bytes = 0
  for (let number = 3; number <= 2_000; number++) {
    insert.run(number, recordOf(number))
    bytes += sizeOf(number)
  }
  db.prepare("INSERT INTO progress VALUES (1, 2000, 3, 2, ?)").run(bytes)
  db.exec("COMMIT")
  db.close()
}

/** An inbox as the former version left it: 600 records of two sources by turns of 50, the first 70 pruned. */
const oldInbox = (file: string): void => {
  const db = new DatabaseSync(file)
  db.exec(`
    ${head(0x504c4942)}
    CREATE TABLE inputs(
      id INTEGER PRIMARY KEY, input TEXT NOT NULL UNIQUE, last_position INTEGER NOT NULL, records INTEGER NOT NULL,
      bytes INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE sources(id INTEGER PRIMARY KEY, source TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE streams(
      id INTEGER PRIMARY KEY, source INTEGER NOT NULL REFERENCES sources, input INTEGER NOT NULL REFERENCES inputs,
      generation BLOB NOT NULL CHECK (length(generation) = 8), n INTEGER NOT NULL CHECK (n >= 1),
      life BLOB NOT NULL CHECK (length(life) = 8), retired INTEGER NOT NULL CHECK (retired IN (0, 1)),
      UNIQUE (source, input, generation)
    ) STRICT;
    CREATE UNIQUE INDEX current_stream ON streams(source, input) WHERE retired = 0;
    CREATE TABLE consumers(
      input INTEGER NOT NULL REFERENCES inputs, consumer TEXT NOT NULL, position INTEGER NOT NULL,
      PRIMARY KEY (input, consumer)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE log_1(
      position INTEGER PRIMARY KEY, source INTEGER NOT NULL, number INTEGER NOT NULL, bytes BLOB NOT NULL
    ) STRICT;
    INSERT INTO sources VALUES (1, 'shop'), (2, 'till');
  `)
  db.exec("BEGIN")
  const insert = db.prepare("INSERT INTO log_1 VALUES (?, ?, ?, ?)")
  const next = [0, 1, 1]
  let bytes = 0
  for (let position = 1; position <= 600; position++) {
    const source = 1 + (Math.floor((position - 1) / 50) % 2)
    const number = next[source]!++
    if (position <= 70) continue
    insert.run(position, source, number, recordOf(position))
    bytes += sizeOf(position)
  }
  db.prepare("INSERT INTO inputs VALUES (1, 'orders', 600, 530, ?)").run(bytes)
  db.exec(`
    INSERT INTO streams VALUES (1, 1, 1, ${id(4)}, 300, ${id(6)}, 0), (2, 2, 1, ${id(5)}, 300, ${id(7)}, 0);
    INSERT INTO consumers VALUES (1, 'billing', 65);
    COMMIT;
  `)
  db.close()
}

describe("a file of the former schema", () => {
  it.effect("is rewritten as an outbox of this one, with all that it held", () =>
    Effect.gen(function* () {
      const file = join(yield* temporaryFolder, "old.outbox")
      oldOutbox(file)
      const refused = yield* Effect.flip(Effect.scoped(Effect.flatMap(readOutbox(file), (reader) => reader.state)))
      assert.strictEqual(refused.reason, "version")
      assert.include(refused.remedy, "once")
      const layer = Layer.provide(OutboxSqlite.layer({ file, stream }), Entropy.layerSeeded(1))
      yield* Effect.provide(
        Effect.gen(function* () {
          const outbox = yield* Outbox
          const { generation, heldBytes, last, lives, lowestHeld } = outbox.state()
          assert.deepStrictEqual([generation, last, lowestHeld], [9n, 2_000, 4])
          assert.deepStrictEqual(lives, [{ life: 5n, first: 1 }])
          assert.isAbove(heldBytes, 1_997 * recordOverhead)
          assert.strictEqual(outbox.producerPosition("a.log"), 77)
          for (let next = 4; next <= 2_000;) {
            const { bytes, sizes } = yield* outbox.read(next, { records: 300, bytes: 1 << 20 })
            let offset = 0
            for (const size of sizes) {
              assert.isTrue(Buffer.from(bytes.subarray(offset, (offset += size))).equals(recordOf(next)))
              next += 1
            }
          }
          yield* outbox.removeThrough(2_000)
          assert.strictEqual(yield* outbox.append({ bytes: Uint8Array.of(1), sizes: Uint32Array.of(1) }), 2_001)
          assert.strictEqual(outbox.state().heldBytes, 1 + recordOverhead)
        }),
        layer
      )
      const reader = yield* readOutbox(file)
      assert.deepInclude(yield* reader.state, { lowestHeld: 2_001, last: 2_001, heldBytes: 1 })
    })
  )

  it.effect("is rewritten as an inbox of this one, with all that it held", () =>
    Effect.gen(function* () {
      const file = join(yield* temporaryFolder, "old.inbox")
      oldInbox(file)
      const refused = yield* Effect.flip(Effect.scoped(Effect.flatMap(readInbox(file), (reader) => reader.summaries)))
      assert.strictEqual(refused.reason, "version")
      yield* Effect.provide(
        Effect.gen(function* () {
          const inbox = yield* Inbox
          assert.deepStrictEqual(inbox.cursor({ source: "till", input: "orders" }), {
            generation: 5n,
            n: 300,
            life: 7n
          })
          assert.strictEqual(inbox.lastPosition("orders"), 600)
          assert.strictEqual(yield* inbox.consumerPosition("orders", "billing"), 65)
          let after = 0
          while (after < 600) {
            const batch = yield* inbox.read("orders", after, { records: after < 100 ? 7 : 999, bytes: 1 << 20 })
            assert.strictEqual(batch.firstPosition, after === 0 ? 71 : after + 1)
            for (const { bytes, number, position, source } of inboxRecords(batch)) {
              assert.isTrue(Buffer.from(bytes).equals(recordOf(position)))
              const turn = Math.floor((position - 1) / 50)
              assert.strictEqual(source, turn % 2 === 0 ? "shop" : "till")
              assert.strictEqual(number, Math.floor(turn / 2) * 50 + ((position - 1) % 50) + 1)
              after = position
            }
          }
          assert.strictEqual(yield* inbox.prune("orders", 90), 20)
          const [summary] = yield* inbox.summaries
          assert.deepInclude(summary, { records: 510, firstPosition: 91 })
        }),
        InboxSqlite.layer({ file })
      )
    })
  )

  it.effect("is left as it is where the disk has no room for what is rewritten, in the log and in the database", () =>
    Effect.gen(function* () {
      const file = join(yield* temporaryFolder, "old.outbox")
      oldOutbox(file)
      const { statfsSync } = fs
      const openWith = (room: number) => {
        Object.assign(fs, { statfsSync: () => ({ bavail: Math.floor(room / 4_096), bsize: 4_096 }) })
        syncBuiltinESMExports()
        try {
          new OutboxFile(file, stream, 1n, {}).close()
          return undefined
        } catch (cause) {
          return failureOf(cause)
        } finally {
          Object.assign(fs, { statfsSync })
          syncBuiltinESMExports()
        }
      }
      const refused = openWith(fs.statSync(file).size * 1.5)
      assert.strictEqual(refused?.reason, "full")
      assert.include(refused?.detail ?? "", "earlier version")
      assert.strictEqual((yield* Effect.flip(Effect.scoped(readOutbox(file)))).reason, "version")
      assert.isUndefined(openWith(fs.statSync(file).size * 3))
      assert.strictEqual((yield* (yield* readOutbox(file)).state).last, 2_000)
    })
  )
})

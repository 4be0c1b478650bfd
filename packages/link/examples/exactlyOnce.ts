import { Input } from "@pure-link/link"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { DatabaseSync } from "node:sqlite"
import { readings } from "./readings.ts"

/**
 * Keeps sums in a database, with the cursor beside them in one transaction: killed anywhere, it counts no reading
 * twice.
 */
export const summarize = (database: DatabaseSync) =>
  Effect.gen(function* () {
    database.exec(`
      CREATE TABLE IF NOT EXISTS sums (sensor TEXT PRIMARY KEY, readings INTEGER NOT NULL, celsius REAL NOT NULL);
      CREATE TABLE IF NOT EXISTS progress (id INTEGER PRIMARY KEY CHECK (id = 1), position INTEGER NOT NULL);
      INSERT OR IGNORE INTO progress VALUES (1, 0);
    `)
    const add = database.prepare(`
      INSERT INTO sums VALUES (?, 1, ?)
      ON CONFLICT DO UPDATE SET readings = readings + 1, celsius = celsius + excluded.celsius
    `)
    const advance = database.prepare("UPDATE progress SET position = ?")
    const { position } = database.prepare("SELECT position FROM progress").get() as { position: number }

    const input = yield* Input.open(readings)
    yield* input.from(position).pipe(
      Stream.runForEach((chunk) =>
        Effect.sync(() => {
          database.exec("BEGIN")
          for (const { value } of chunk.records) add.run(value.sensor, value.celsius)
          advance.run(chunk.end)
          database.exec("COMMIT")
        })
      )
    )
  }).pipe(Effect.scoped)

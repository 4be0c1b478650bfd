import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { existsSync, linkSync, renameSync, rmSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { intent, newFile, withInbox } from "./orders.ts"
import { temporaryFolder } from "./places.ts"

/** A file has one owner, whatever its names, and what becomes of those who are or were a second one. */

describe("a second owner", () => {
  it.effect("is not let in by another name of the file", () =>
    Effect.gen(function* () {
      const file = yield* newFile
      yield* withInbox(file, (inbox) => inbox.commit([intent(1)]))
      linkSync(file, `${file}.link`)
      for (const name of [file, `${file}.link`]) {
        const error = yield* Effect.flip(withInbox(name, () => Effect.void))
        assert.strictEqual(error.reason, "locked")
        assert.include(error.message, "-samefile")
      }
      assert.isFalse(existsSync(`${file}.link.owner`))
      rmSync(`${file}.link`)
      yield* withInbox(file, (inbox) => Effect.sync(() => assert.strictEqual(inbox.lastPosition("orders"), 1)))
    })
  )

  it.effect("that got in because a name was taken away ends the first for good, whose file stays whole", () =>
    Effect.gen(function* () {
      const takeAways: ReadonlyArray<(file: string) => void> = [
        (file) => rmSync(`${file}.owner`),
        (file) => {
          linkSync(file, `${file}.other`)
          rmSync(file)
        },
        (file) => renameSync(file, `${file}.moved`),
        (file) => rmSync(`${file}-wal`)
      ]
      for (const takeAway of takeAways) {
        const file = yield* newFile
        yield* withInbox(file, (inbox) =>
          Effect.gen(function* () {
            yield* inbox.commit([intent(1, 3)])
            const watching = yield* Effect.forkChild(Effect.flip(inbox.ended!), { startImmediately: true })
            takeAway(file)
            for (let again = 0; again < 2; again++) {
              const error = yield* Effect.flip(inbox.commit([intent(4)]))
              assert.deepInclude(error, { reason: "locked", isFinal: true })
              assert.include(error.message, "while it was in use")
            }
            assert.strictEqual((yield* Fiber.join(watching)).reason, "locked")
            assert.strictEqual(inbox.lastPosition("orders"), 3)
          })
        )
      }
    })
  )

  it.effect("through a removed sidecar stores what the first does not overwrite", () =>
    Effect.gen(function* () {
      const file = yield* newFile
      yield* withInbox(file, (first) =>
        Effect.gen(function* () {
          yield* first.commit([intent(1)])
          rmSync(`${file}.owner`)
          yield* withInbox(file, (second) => second.commit([intent(2)]))
          assert.strictEqual((yield* Effect.flip(first.commit([intent(2)]))).reason, "locked")
        })
      )
      yield* withInbox(file, (inbox) => Effect.sync(() => assert.strictEqual(inbox.lastPosition("orders"), 2)))
    })
  )

  it.effect("is not announced beside what can be no store", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const error = yield* Effect.flip(withInbox(folder, () => Effect.void))
      assert.deepInclude(error, { reason: "permission" })
      assert.isFalse(existsSync(join(dirname(folder), `${basename(folder)}.owner`)))
    })
  )
})

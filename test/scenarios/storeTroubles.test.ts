/**
 * An inbox that cannot store for a while, because its disk is full or another process locks its database (spec §10.5):
 * no crash, no STORED, one line; the sender waits and everything goes on by itself. Real processes.
 */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { numbered, portOf, type Running, type Scenario, withFlag, withScenario } from "./processes.ts"
import { canMount } from "./tools.ts"

const markedServe = join(import.meta.dirname, "markedServe.ts")

const troubleLines = (serving: Running): number =>
  serving.errors.split("\n").filter((line) => /nothing is stored and senders wait/.test(line)).length

/** How many records an inbox file holds, as another process sees it. */
const held = (scenario: Scenario, store: string): number =>
  Number(scenario.runToEnd("inbox", "count", "--store", store).output)

describe.runIf(canMount())("a full disk", () => {
  it("stops the inbox, not the node: nothing is STORED, and with room again everything is", () =>
    withScenario(async (scenario) => {
      const disk = scenario.path("disk")
      const store = join(disk, "inbox.db")
      mkdirSync(disk)
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=16m", "tmpfs", disk])
      try {
        const records = 30_000
        writeFileSync(scenario.path("f"), numbered("x".repeat(1_000), 1, records))
        const serving = scenario.start(process.execPath, [
          scenario.program,
          ...withFlag(scenario.serveArguments(), "--store", store)
        ])
        const sending = scenario.send(`127.0.0.1:${await portOf(serving)}`, scenario.path("f"))
        const notice = await serving.eventWhere("notice", (event) => event.notice === "StoreTrouble")
        assert.match(String(notice.message), /senders wait: .*(space|room)/)
        const stored = held(scenario, store)
        assert.isTrue(stored > 0 && stored < records, `${stored} stored`)
        // The sender's word is at most a second old, and never ahead of the disk.
        const told = sending.events("stored").map(({ through }) => Number(through))
        assert.isAtMost(Math.max(0, ...told), stored)
        assert.strictEqual(held(scenario, store), stored, "nothing is stored while the disk is full")
        assert.isNull(serving.child.exitCode)
        assert.isNull(sending.child.exitCode)

        execFileSync("mount", ["-o", "remount,size=256m", disk])
        await serving.eventWhere("notice", (event) => event.notice === "StoreWorks")
        const ended = await sending.ended
        assert.strictEqual(ended.code, 0, ended.errors)
        assert.strictEqual(troubleLines(serving), 1, serving.errors)
        assert.strictEqual((await serving.kill("SIGTERM")).code, 0)
        const shown = scenario.runToEnd("inbox", "show", "--store", store, "--input", "orders", "--raw")
        assert.isTrue(shown.output === numbered("x".repeat(1_000), 1, records), "the inbox equals the file")
      } finally {
        // Lazily: the processes that have files there end with the scenario.
        execFileSync("umount", ["-l", disk])
      }
    }))
})

describe("a locked database", () => {
  /** Holds a write transaction until it is told to let go. */
  const locker = `
    const { DatabaseSync } = await import("node:sqlite")
    const database = new DatabaseSync(process.argv[1])
    database.exec("PRAGMA busy_timeout = 5000; BEGIN IMMEDIATE")
    console.log('{"event":"locked"}')
    process.stdin.on("end", () => { database.exec("ROLLBACK"); database.close() }).resume()
  `

  it("stops the inbox until the other process lets go, with one line", () =>
    withScenario(async (scenario) => {
      const serving = scenario.start(process.execPath, [markedServe, ...scenario.serveArguments()])
      const to = `127.0.0.1:${await portOf(serving)}`
      const sending = scenario.start(process.execPath, [scenario.program, ...scenario.sendArguments(to, "-")], "pipe")
      sending.child.stdin!.write(numbered("before", 1, 100))
      await serving.eventWhere("commitEnded", ({ n }) => n === 100)
      const args = ["--no-warnings", "--input-type=module", "--eval", locker, "--", scenario.path("inbox.db")]
      const locking = scenario.start(process.execPath, args, "pipe")
      await locking.event("locked")
      sending.child.stdin!.end(numbered("after", 101, 200))
      await serving.said(/nothing is stored and senders wait/)
      assert.isUndefined(serving.events("commitEnded").find(({ n }) => Number(n) > 100))
      assert.isNull(sending.child.exitCode)
      locking.child.stdin!.end()
      assert.strictEqual((await locking.ended).code, 0, locking.errors)
      await serving.said(/the inbox stores again/)
      const ended = await sending.ended
      assert.strictEqual(ended.code, 0, ended.errors)
      assert.strictEqual(troubleLines(serving), 1, serving.errors)
      assert.strictEqual(
        scenario.inboxLines().join("\n") + "\n",
        numbered("before", 1, 100) + numbered("after", 101, 200)
      )
    }))
})

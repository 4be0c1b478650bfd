/**
 * Copies of stores, as backups and cloned disks make them: typed errors, nothing lost, nothing mixed (spec §2.5, §2.6,
 * §8.4–§8.7). Real processes, real files.
 */
import { assert, describe, it } from "@effect/vitest"
import { copyFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { Scenario } from "./processes.ts"

const lines = (label: string, from: number, through: number): string =>
  Array.from({ length: through - from + 1 }, (_, i) => `${label} ${from + i}\n`).join("")

const withScenario = (body: (scenario: Scenario, address: string) => Promise<void>) => async () => {
  const scenario = new Scenario()
  try {
    const serving = scenario.serve()
    await body(scenario, String((await serving.event("listening")).address))
  } finally {
    await scenario.close()
  }
}

const sendAll = async (scenario: Scenario, address: string, file: string, extra: ReadonlyArray<string> = []) => {
  const ended = await scenario.send(address, scenario.path(file), extra).ended
  return ended
}

/** Appends the file's lines to an outbox without a receiver to send them to. */
const appendOffline = async (scenario: Scenario, file: string, appended: number) => {
  const sending = scenario.send("127.0.0.1:9", scenario.path(file))
  await sending.event("opened")
  for (let looks = 0; looks < 20; looks++) {
    const { code, output } = scenario.runToEnd("outbox", "count", "--json", "--store", scenario.path("outbox.db"))
    if (code === 0 && (JSON.parse(output) as { last: number }).last === appended) break
  }
  await sending.kill("SIGKILL")
}

describe("copies of stores", () => {
  it(
    "an outbox restored at 100 with 60 appended offline stops when the receiver is at 150",
    withScenario(async (scenario, address) => {
      writeFileSync(scenario.path("a"), lines("first", 1, 100))
      writeFileSync(scenario.path("b"), lines("second", 101, 150))
      writeFileSync(scenario.path("c"), lines("offline", 101, 160))
      assert.strictEqual((await sendAll(scenario, address, "a")).code, 0)
      copyFileSync(scenario.path("outbox.db"), scenario.path("backup.db"))
      assert.strictEqual((await sendAll(scenario, address, "b")).code, 0)
      renameSync(scenario.path("backup.db"), scenario.path("outbox.db"))
      await appendOffline(scenario, "c", 160)

      const ended = await sendAll(scenario, address, "c")
      assert.strictEqual(ended.code, 5, ended.errors)
      assert.match(ended.errors, /copy|fork|restored/)
      assert.strictEqual(scenario.inboxLines().join("\n") + "\n", lines("first", 1, 100) + lines("second", 101, 150))
      const held = JSON.parse(
        scenario.runToEnd("outbox", "count", "--json", "--store", scenario.path("outbox.db")).output
      ) as { held: number }
      assert.strictEqual(held.held, 60)
    })
  )

  it(
    "of two clones of an outbox the second to write stops, and nothing is mixed",
    withScenario(async (scenario, address) => {
      writeFileSync(scenario.path("a"), lines("both", 1, 100))
      writeFileSync(scenario.path("b"), lines("original", 101, 120))
      writeFileSync(scenario.path("c"), lines("clone", 101, 140))
      assert.strictEqual((await sendAll(scenario, address, "a")).code, 0)
      copyFileSync(scenario.path("outbox.db"), scenario.path("clone.db"))
      assert.strictEqual((await sendAll(scenario, address, "b")).code, 0)

      renameSync(scenario.path("clone.db"), scenario.path("outbox.db"))
      const ended = await sendAll(scenario, address, "c")
      assert.strictEqual(ended.code, 5, ended.errors)
      assert.strictEqual(scenario.inboxLines().join("\n") + "\n", lines("both", 1, 100) + lines("original", 101, 120))
    })
  )

  it("an inbox restored from an older copy is told, and nothing is skipped", async () => {
    const scenario = new Scenario()
    try {
      const first = scenario.serve()
      const address = String((await first.event("listening")).address)
      writeFileSync(scenario.path("a"), lines("kept", 1, 100))
      writeFileSync(scenario.path("b"), lines("later", 101, 150))
      writeFileSync(scenario.path("c"), lines("after", 151, 160))
      assert.strictEqual((await sendAll(scenario, address, "a")).code, 0)
      await first.kill("SIGTERM")
      copyFileSync(scenario.path("inbox.db"), scenario.path("older.db"))
      const port = Number(address.split(":").pop())
      const second = scenario.serve({ port })
      await second.event("listening")
      assert.strictEqual((await sendAll(scenario, address, "b")).code, 0)
      await second.kill("SIGTERM")
      for (const suffix of ["-wal", "-shm"]) rmSync(scenario.path(`inbox.db${suffix}`), { force: true })
      renameSync(scenario.path("older.db"), scenario.path("inbox.db"))
      await scenario.serve({ port }).event("listening")

      const ended = await sendAll(scenario, address, "c")
      assert.strictEqual(ended.code, 5, ended.errors)
      assert.match(ended.errors, /behind/)
      assert.strictEqual(scenario.inboxLines().join("\n") + "\n", lines("kept", 1, 100))
    } finally {
      await scenario.close()
    }
  })
})

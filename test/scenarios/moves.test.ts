/**
 * A receiver that moves: its store, memo and key go to another place, and the sender is told the new address, or finds it
 * under the old name (docs/cli.md). Nothing is lost and nothing doubled. Real processes.
 */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { numbered, portOf, program, type Scenario, withFlag, withScenario } from "./processes.ts"
import { canMakeNamespaces } from "./tools.ts"

const records = 30_000
const text = numbered(`record ${"x".repeat(300)}`, 1, records)

/** Moves what a receiver consists of into another folder, and returns how to serve there. */
const moveReceiver = (scenario: Scenario, port: number, host?: string): Array<string> => {
  const folder = scenario.path("elsewhere")
  mkdirSync(folder)
  for (const file of ["inbox.db", "inbox.db-wal", "inbox.db-shm", "inbox.db.memo", "server.key"]) {
    renameSync(scenario.path(file), join(folder, file))
  }
  const args = scenario.serveArguments({ port, ...(host !== undefined && { host }) })
  return withFlag(withFlag(args, "--store", join(folder, "inbox.db")), "--key", join(folder, "server.key"))
}

const assertAllThere = (scenario: Scenario): void => {
  const store = join(scenario.path("elsewhere"), "inbox.db")
  const shown = scenario.runToEnd("inbox", "show", "--store", store, "--input", "orders", "--raw")
  assert.isTrue(shown.output === text, "the inbox equals the file")
}

describe("a moved receiver", () => {
  it("goes on at another address, of which the sender is told: two commands", () =>
    withScenario(async (scenario) => {
      writeFileSync(scenario.path("f"), text)
      const first = scenario.serve()
      const sending = scenario.send(`127.0.0.1:${await portOf(first)}`, scenario.path("f"))
      await first.eventWhere("stored", ({ lastPosition }) => Number(lastPosition) > 0)
      await first.kill("SIGKILL")
      const second = scenario.start(process.execPath, [program, ...moveReceiver(scenario, 0)])
      const address = `127.0.0.1:${await portOf(second)}`
      assert.strictEqual((await sending.kill("SIGTERM")).code, 130, "the transfer was under way")
      const ended = await scenario.send(address, scenario.path("f")).ended
      assert.strictEqual(ended.code, 0, ended.errors)
      assert.strictEqual((await second.kill("SIGTERM")).code, 0)
      assertAllThere(scenario)
    }))
})

const ip = (...args: ReadonlyArray<string>) => execFileSync("ip", args, { stdio: ["ignore", "ignore", "inherit"] })

describe.runIf(canMakeNamespaces())("a moved receiver with a name", () => {
  it("is found under its new address, by the sender that runs", () =>
    withScenario(async (scenario) => {
      // `ip netns exec` puts /etc/netns/NAME/hosts in the place of /etc/hosts for the processes that it starts.
      const space = `plm${process.pid}`
      const folder = `/etc/netns/${space}`
      const hosts = (address: string) => writeFileSync(join(folder, "hosts"), `${address} receiver.example\n`)
      try {
        ip("netns", "add", space)
        ip("-n", space, "link", "set", "lo", "up")
        mkdirSync(folder, { recursive: true })
        hosts("127.0.0.1")
        const inside = (args: ReadonlyArray<string>) =>
          scenario.start("ip", ["netns", "exec", space, process.execPath, program, ...args])
        writeFileSync(scenario.path("f"), text)
        const first = inside(scenario.serveArguments({ port: 4600 }))
        await first.event("listening")
        const sending = inside(scenario.sendArguments("receiver.example:4600", scenario.path("f")))
        await first.eventWhere("stored", ({ lastPosition }) => Number(lastPosition) > 0)
        await first.kill("SIGKILL")
        const second = inside(moveReceiver(scenario, 4600, "127.0.0.2"))
        await second.event("listening")
        hosts("127.0.0.2")
        const found = await sending.eventWhere("notice", ({ address }) => address === "127.0.0.2:4600")
        assert.strictEqual(found.notice, "AddressFound")
        const ended = await sending.ended
        assert.strictEqual(ended.code, 0, ended.errors)
        assert.strictEqual((await second.kill("SIGTERM")).code, 0)
        assertAllThere(scenario)
      } finally {
        await scenario.close()
        ip("netns", "del", space)
        rmSync(folder, { recursive: true, force: true })
      }
    }))
})

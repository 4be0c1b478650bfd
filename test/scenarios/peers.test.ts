/**
 * Who may send is managed while `serve` runs (docs/cli.md): a long peers file, read again on SIGHUP; keys in bulk; the
 * rotation of a key. Real processes.
 */
import { assert, describe, it } from "@effect/vitest"
import { appendFileSync, renameSync, statSync, writeFileSync } from "node:fs"
import { numbered, type Running, withFlag, withScenario } from "./processes.ts"

/** Writes the file as an operator should: whole, and at once. */
const replace = (path: string, text: string): void => {
  writeFileSync(`${path}.new`, text)
  renameSync(`${path}.new`, path)
}

/** Tells `serve` to read its peers again and returns what it says. */
const hangUp = async (serving: Running, event: "peersChanged" | "peersKept") => {
  const before = serving.events(event).length
  serving.child.kill("SIGHUP")
  return serving.event(event, before + 1)
}

const addressOf = async (serving: Running): Promise<string> => String((await serving.event("listening")).address)

describe("peers", () => {
  it("10,000 keys are made and allowed in seconds, and the file is read again on SIGHUP", () =>
    withScenario(async (scenario) => {
      const keys = scenario.path("keys")
      const peers = scenario.path("peers")
      const began = performance.now()
      const made = scenario.runToEnd(
        "keygen",
        "--count",
        "10000",
        "--directory",
        keys,
        "--name",
        "till",
        "--peer-lines"
      )
      const keygenSeconds = (performance.now() - began) / 1_000
      assert.strictEqual(made.code, 0, made.errors)
      assert.match(made.output, /^pk[\w-]{43} till-00001\n/)
      assert.strictEqual(statSync(`${keys}/till-10000.key`).mode & 0o777, 0o600)
      const listed = made.output.trim().split("\n")
      assert.strictEqual(new Set(listed).size, 10_000)

      replace(peers, listed.join("\n"))
      const starting = performance.now()
      const serving = scenario.serve({ peers })
      const address = await addressOf(serving)
      const serveSeconds = (performance.now() - starting) / 1_000
      assert.isBelow(serveSeconds, 10)

      writeFileSync(scenario.path("f"), numbered("record", 1, 50))
      const rest = listed.slice(1, -1)
      const turned = listed[1]!.replace(/ .*/, " elsewhere")
      replace(peers, [...rest.slice(1), turned, `${scenario.clientKey} till`, `${scenario.clientKey} till`].join("\n"))
      const hanging = performance.now()
      const change = await hangUp(serving, "peersChanged")
      const hangupSeconds = (performance.now() - hanging) / 1_000
      assert.deepStrictEqual(change, { event: "peersChanged", added: 1, removed: 2, changed: 1, peers: 9_999 })
      const sent = await scenario.send(address, scenario.path("f")).ended
      assert.strictEqual(sent.code, 0, sent.errors)

      appendFileSync(peers, "\nnonsense *\n")
      const kept = await hangUp(serving, "peersKept")
      assert.match(String(kept.message), /line 10001: "nonsense" is not a public key/)
      replace(peers, "# nobody\n")
      assert.match(String((await hangUp(serving, "peersKept")).message), /names no key/)
      appendFileSync(scenario.path("f"), "one more\n")
      assert.strictEqual((await scenario.send(address, scenario.path("f")).ended).code, 0, "nothing changed")
      console.log(
        `10,000 peers: keygen ${keygenSeconds.toFixed(1)} s, serve listens after ${serveSeconds.toFixed(1)} s, ` +
          `SIGHUP ${hangupSeconds.toFixed(2)} s`
      )
    }))

  it("a changed source refuses its running sender, a revoked one is met with silence, both until they are back", () =>
    withScenario(async (scenario) => {
      const peers = scenario.path("peers")
      const other = scenario.keygen("other.key")
      replace(peers, `${scenario.clientKey} till\n`)
      const serving = scenario.serve({ peers, extra: ["--allow", other] })
      const address = await addressOf(serving)
      const args = [...scenario.sendArguments(address, "-", ["--keep-trying"])]
      const sending = scenario.start(process.execPath, [scenario.program, ...args], "pipe")
      const stored = async (text: string, through: number) => {
        sending.child.stdin!.write(text)
        await sending.eventWhere("stored", (event) => Number(event.through) >= through)
      }
      await stored("one\n", 1)

      replace(peers, `${scenario.clientKey} another\n`)
      const changed = { event: "peersChanged", added: 0, removed: 0, changed: 1, peers: 2 }
      assert.deepStrictEqual(await hangUp(serving, "peersChanged"), changed)
      sending.child.stdin!.write("two\n")
      await sending.said(/refused \(reason 3\)/)
      replace(peers, `${scenario.clientKey} another,till\n`)
      await hangUp(serving, "peersChanged")
      await stored("three\n", 3)

      replace(peers, `${other} *\n`)
      const removed = { event: "peersChanged", added: 0, removed: 1, changed: 0, peers: 1 }
      assert.deepStrictEqual(await hangUp(serving, "peersChanged"), removed)
      sending.child.stdin!.write("four\n")
      await sending.said(/a new epoch is offered/)
      assert.deepStrictEqual(scenario.inboxLines(), ["one", "two", "three"])
      replace(peers, `${scenario.clientKey} *\n`)
      await hangUp(serving, "peersChanged")
      sending.child.stdin!.end("five\n")
      assert.strictEqual((await sending.ended).code, 0, sending.errors)
      assert.deepStrictEqual(scenario.inboxLines(), ["one", "two", "three", "four", "five"])
      assert.strictEqual((await serving.kill("SIGTERM")).code, 0)
    }))

  it("a sender's key is rotated while both sides run: no record is lost or doubled", () =>
    withScenario(async (scenario) => {
      const peers = scenario.path("peers")
      const nextKey = scenario.keygen("next.key")
      replace(peers, `${scenario.clientKey} till\n`)
      const serving = scenario.serve({ peers })
      const address = await addressOf(serving)
      const text = numbered(`record ${"x".repeat(400)}`, 1, 20_000)
      writeFileSync(scenario.path("f"), text)
      const first = scenario.send(address, scenario.path("f"))
      await serving.eventWhere("stored", ({ lastPosition }) => Number(lastPosition) > 0)

      replace(peers, `${scenario.clientKey} till\n${nextKey} till\n`)
      await hangUp(serving, "peersChanged")
      const stopped = await first.kill("SIGTERM")
      const second = scenario.start(process.execPath, [
        scenario.program,
        ...withFlag(scenario.sendArguments(address, scenario.path("f")), "--key", scenario.path("next.key"))
      ])
      await second.event("opened")
      replace(peers, `${nextKey} till\n`)
      const change = await hangUp(serving, "peersChanged")
      assert.deepStrictEqual(change, { event: "peersChanged", added: 0, removed: 1, changed: 0, peers: 1 })
      assert.strictEqual((await second.ended).code, 0, second.errors)
      assert.isTrue(scenario.inboxLines().join("\n") + "\n" === text, "the inbox equals the file")
      assert.strictEqual(stopped.code, 130, "the first sender was stopped in the middle of its work")
    }))
})

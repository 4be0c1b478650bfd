/**
 * What goes wrong for ordinary people gets one clear line that names the remedy, the documented exit code, and loses
 * nothing.
 */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from "node:fs"
import { Scenario, withFlag } from "./processes.ts"

const within = async (body: (scenario: Scenario) => Promise<void>): Promise<void> => {
  const scenario = new Scenario()
  try {
    await body(scenario)
  } finally {
    await scenario.close()
  }
}

/** One line, with the remedy, and no stack. */
const assertClear = (
  errors: string,
  code: number | null,
  expected: { readonly code: number; readonly says: RegExp }
): void => {
  const lines = errors
    .trim()
    .split("\n")
    .filter((line) => line.startsWith("pure-link: "))
  assert.strictEqual(lines.length, 1, errors)
  assert.match(lines[0]!, expected.says)
  assert.notMatch(errors, /\n\s+at /)
  assert.strictEqual(code, expected.code, errors)
}

describe("bad input", () => {
  it("keys, addresses, formats and files that are wrong are refused with the remedy", () =>
    within(async (scenario) => {
      writeFileSync(scenario.path("f"), "one\n")
      const send = (change: (args: Array<string>) => Array<string>) => {
        const { code, errors } = scenario.runToEnd(...change(scenario.sendArguments("127.0.0.1:9", scenario.path("f"))))
        return { code, errors }
      }
      const replaced = (flag: string, value: string) => (args: Array<string>) =>
        args.map((arg, index) => (args[index - 1] === flag ? value : arg))
      const cases: ReadonlyArray<readonly [(args: Array<string>) => Array<string>, number, RegExp]> = [
        [replaced("--peer", "nonsense"), 2, /not a public key.*keygen/],
        [replaced("--key", scenario.path("none")), 2, /key file.*keygen/],
        [replaced("--to", "no-port"), 2, /port/],
        [replaced("--to", "127.0.0.1:0"), 2, /port 0/],
        [replaced("--to", "no-such-host.invalid:4600"), 6, /no-such-host/],
        [replaced("--peer", scenario.clientKey), 2, /own key/],
        [replaced("--source", "x".repeat(65)), 2, /64 B/],
        [(args) => [...args.slice(0, -1), scenario.path("missing")], 2, /ENOENT/]
      ]
      for (const [change, code, says] of cases) {
        const ended = send(change)
        assertClear(ended.errors, ended.code, { code, says })
      }
      const peers = scenario.runToEnd(
        ...scenario.serveArguments().filter((arg, index, args) => arg !== "--allow" && args[index - 1] !== "--allow")
      )
      assertClear(peers.errors, peers.code, { code: 2, says: /--allow/ })
      const format = scenario.runToEnd(...scenario.serveArguments({ extra: ["--input", "a:csv"] }))
      assertClear(format.errors, format.code, { code: 2, says: /lines\|ndjson\|file/ })
    }))

  it("a record that is too long is refused with its line, and what came before it is kept", () =>
    within(async (scenario) => {
      writeFileSync(
        scenario.path("f"),
        Buffer.concat([Buffer.from("first\n"), Buffer.alloc(16_777_217, 97), Buffer.from("\nlast\n")])
      )
      const { code, errors } = scenario.runToEnd(...scenario.sendArguments("127.0.0.1:9", scenario.path("f")))
      assertClear(errors, code, { code: 2, says: /line 2 .*limit/ })
      assert.strictEqual(scenario.runToEnd("outbox", "count", "--store", scenario.path("outbox.db")).output.trim(), "1")
    }))

  it("stores that are no stores, or cannot be written, are refused and untouched", () =>
    within(async (scenario) => {
      writeFileSync(scenario.path("f"), "one\n")
      writeFileSync(scenario.path("outbox.db"), "this is no database, but somebody's letter".repeat(100))
      const foreign = scenario.runToEnd(...scenario.sendArguments("127.0.0.1:9", scenario.path("f")))
      assertClear(foreign.errors, foreign.code, { code: 4, says: /outbox\.db/ })
      mkdirSync(scenario.path("inbox.db"))
      const folder = scenario.runToEnd(...scenario.serveArguments())
      assertClear(folder.errors, folder.code, { code: 4, says: /inbox\.db/ })
      const shown = scenario.runToEnd("inbox", "list", "--store", scenario.path("none.db"))
      assertClear(shown.errors, shown.code, { code: 4, says: /none\.db/ })
    }))

  it("a port in use and a store in use name the remedy, and the first owner goes on", () =>
    within(async (scenario) => {
      const first = scenario.serve()
      const port = Number(
        String((await first.event("listening")).address)
          .split(":")
          .pop()
      )
      const locked = scenario.runToEnd(...scenario.serveArguments())
      assertClear(locked.errors, locked.code, { code: 4, says: /owns the file; stop it/ })
      const elsewhere = scenario
        .serveArguments({ port })
        .map((arg) => (arg === scenario.path("inbox.db") ? scenario.path("other.db") : arg))
      const taken = scenario.runToEnd(...elsewhere)
      assertClear(taken.errors, taken.code, { code: 6, says: /EADDRINUSE/ })
      assert.strictEqual((await first.kill("SIGTERM")).code, 0)
    }))

  it("a refused stream ends with its reason and remedy, and its records wait in the outbox", () =>
    within(async (scenario) => {
      writeFileSync(scenario.path("f"), "one\ntwo\n")
      const serving = scenario.serve({ extra: ["--input", "typed:ndjson"] })
      const address = String((await serving.event("listening")).address)
      const refused = async (input: string, extra: ReadonlyArray<string>, says: RegExp) => {
        const args = scenario
          .sendArguments(address, scenario.path("f"), extra)
          .map((arg, index, all) =>
            all[index - 1] === "--input" ? input : all[index - 1] === "--outbox" ? scenario.path(`${input}.db`) : arg
          )
        const ended = scenario.runToEnd(...args)
        assertClear(ended.errors, ended.code, { code: 3, says })
        assert.strictEqual(
          scenario.runToEnd("outbox", "count", "--store", scenario.path(`${input}.db`)).output.trim(),
          "2"
        )
      }
      await refused("nowhere", [], /reason 1.*input/)
      await refused("typed", [], /reason 2.*type/)
      // The waiting records are not lost: with the right input name they would need a new outbox, with the input opened they go.
      await serving.kill("SIGTERM")
      const port = Number(address.split(":").pop())
      await scenario.serve({ port, extra: ["--input", "nowhere"] }).event("listening")
      const args = scenario
        .sendArguments(address, scenario.path("f"))
        .map((arg, index, all) =>
          all[index - 1] === "--input" ? "nowhere" : all[index - 1] === "--outbox" ? scenario.path("nowhere.db") : arg
        )
      const sent = await scenario.start(process.execPath, [scenario.program, ...args]).ended
      assert.strictEqual(sent.code, 0, sent.errors)
    }))

  it("a source that the key may not send as is refused with reason 3", () =>
    within(async (scenario) => {
      writeFileSync(scenario.path("f"), "one\n")
      const args = scenario
        .serveArguments()
        .map((arg) => (arg === scenario.clientKey ? `${scenario.clientKey}=another-till` : arg))
      const serving = scenario.start(process.execPath, [scenario.program, ...args])
      const address = String((await serving.event("listening")).address)
      const ended = scenario.runToEnd(...scenario.sendArguments(address, scenario.path("f")))
      assertClear(ended.errors, ended.code, { code: 3, says: /reason 3.*source/ })
    }))

  it("an outbox that another one replaced ends with reason 6 on both sides, and keeps what it holds", () =>
    within(async (scenario) => {
      writeFileSync(scenario.path("f"), "one\n")
      writeFileSync(scenario.path("g"), "one\ntwo\n")
      const serving = scenario.serve()
      const address = String((await serving.event("listening")).address)
      const send = (outbox: string, file: string) => {
        const args = withFlag(scenario.sendArguments(address, scenario.path(file)), "--outbox", scenario.path(outbox))
        return scenario.start(process.execPath, [scenario.program, ...args]).ended
      }
      assert.strictEqual((await send("former.db", "f")).code, 0)
      assert.strictEqual((await send("latter.db", "f")).code, 0)
      const ended = await send("former.db", "g")
      assertClear(ended.errors, ended.code, { code: 3, says: /reason 6.*another outbox file.*outbox show/ })
      const failed = ended.output.split("\n").find((line) => line.includes('"failed"'))
      assert.match(String(failed), /"exit":3,.*reason 6.*another outbox file/)
      const notice = await serving.eventWhere("notice", (event) => event.notice === "InputRefused")
      assert.strictEqual(notice.reason, 6)
      assert.include(
        scenario.runToEnd("outbox", "show", "--raw", "--store", scenario.path("former.db")).output,
        "two\n"
      )
    }))

  it("a source that stays open keeps no process: a signal and a refusal end it, what was read is kept", () =>
    within(async (scenario) => {
      const pipe = scenario.path("pipe")
      assert.strictEqual(spawnSync("mkfifo", [pipe]).status, 0)
      const writing = openSync(pipe, "r+")
      try {
        writeSync(writing, "one\n")
        const stopped = scenario.send("127.0.0.1:9", pipe)
        await stopped.event("opened")
        for (let looks = 0; looks < 20; looks++) {
          const { output } = scenario.runToEnd("outbox", "count", "--store", scenario.path("outbox.db"))
          if (output.trim() === "1") break
        }
        assert.strictEqual((await stopped.kill("SIGINT")).code, 130)
        assert.strictEqual(
          scenario.runToEnd("outbox", "count", "--store", scenario.path("outbox.db")).output.trim(),
          "1"
        )

        const args = scenario.serveArguments().map((arg) => (arg === "orders" ? "elsewhere" : arg))
        const serving = scenario.start(process.execPath, [scenario.program, ...args])
        const refused = await scenario.send(String((await serving.event("listening")).address), pipe).ended
        assert.strictEqual(refused.code, 3, refused.errors)
      } finally {
        closeSync(writing)
      }
    }))

  it("no answer for 10 s says whom it waits for and what to check; a signal ends it with the records kept", () =>
    within(async (scenario) => {
      writeFileSync(scenario.path("f"), "one\n")
      const impatient = scenario.send("127.0.0.1:9", scenario.path("f"))
      await impatient.event("opened")
      impatient.child.kill("SIGINT")
      assert.strictEqual((await impatient.kill("SIGINT")).code, 130, "a second signal ends it at once")
      const sending = scenario.send("127.0.0.1:9", scenario.path("f"))
      await new Promise<void>((resolve) => {
        sending.child.stderr!.on("data", () => {
          if (/no answer/.test(sending.errors)) resolve()
        })
      })
      assert.match(sending.errors, /127\.0\.0\.1:9.*firewall/)
      assert.include(sending.errors, scenario.clientKey)
      const ended = await sending.kill("SIGINT")
      assert.strictEqual(ended.code, 130)
      assertClear(ended.errors, ended.code, { code: 130, says: /waits in the outbox/ })
    }))
})

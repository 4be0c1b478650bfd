/**
 * `pure-link outbox` and `pure-link inbox` look into stores, for people and for scripts, also while their owner runs.
 */
import { assert, describe, it } from "@effect/vitest"
import { writeFileSync } from "node:fs"
import { Scenario } from "./processes.ts"

describe("looking into stores", () => {
  it("shows what waits, what is stored, and where consumers and sources stand", async () => {
    const scenario = new Scenario()
    try {
      const look = (...args: ReadonlyArray<string>): Array<string> => {
        const { code, errors, output } = scenario.runToEnd(...args)
        assert.strictEqual(code, 0, errors)
        return output.trimEnd().split("\n")
      }
      const json = (...args: ReadonlyArray<string>) =>
        look(...args, "--json").map((line) => JSON.parse(line) as unknown)
      const outbox = ["--store", scenario.path("outbox.db")]
      const inbox = ["--store", scenario.path("inbox.db")]
      writeFileSync(scenario.path("f"), Buffer.from("first\n\u001b[31mred\n\n"))

      const offline = scenario.send("127.0.0.1:9", scenario.path("f"))
      await offline.event("opened")
      for (let looks = 0; looks < 20 && look("outbox", "count", ...outbox)[0] !== "3"; looks++) {
        // Each look is a process of its own, which takes longer than the append.
      }
      assert.match(
        look("outbox", "list", ...outbox).join("\n"),
        /"till" → "orders"\n3 records held \(\d+ B\), 3 appended/
      )
      assert.deepStrictEqual(
        look("outbox", "show", ...outbox),
        ["1  first", "2  \\u001b[31mred", "3"].map((l) => l.trimEnd())
      )
      assert.deepStrictEqual(json("outbox", "show", "--from", "2", "--count", "1", ...outbox), [
        { number: 2, text: "\u001b[31mred" }
      ])
      await offline.kill("SIGKILL")

      const serving = scenario.serve()
      const address = String((await serving.event("listening")).address)
      assert.strictEqual((await scenario.send(address, scenario.path("f")).ended).code, 0)
      assert.deepStrictEqual(json("outbox", "count", ...outbox), [{ held: 0, bytes: 0, last: 3 }])
      assert.match(
        look("inbox", "list", ...inbox).join("\n"),
        /orders: 3 records \(13 B\), last position 3\n {2}from "till"/
      )
      assert.deepStrictEqual(look("inbox", "count", "--input", "orders", ...inbox), ["3"])
      assert.deepStrictEqual(json("inbox", "show", "--input", "orders", "--from", "3", ...inbox), [
        { position: 3, source: "till", number: 3, text: "" }
      ])
      assert.deepStrictEqual(look("inbox", "show", "--input", "orders", "--count", "1", ...inbox), ["1  till 1  first"])
      assert.strictEqual((await serving.kill("SIGTERM")).code, 0)
    } finally {
      await scenario.close()
    }
  })
})

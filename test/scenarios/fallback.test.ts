/**
 * Whether the processes of scenarios run on the path that they are said to run on: with PURE_LINK_NATIVE=off, as in
 * `npm run test:fallback`, on node:dgram and node:crypto, else on the addon where one loads. The kernel is asked, which
 * lists every file that a process has mapped.
 */
import { assert, describe, it } from "@effect/vitest"
import { load } from "@pure-link/native"
import { existsSync, readFileSync } from "node:fs"
import { basename } from "node:path"
import { type Running, withScenario } from "./processes.ts"

/** Whether a process has the addon in its memory, once it listens. */
const hasAddon = async (serving: Running): Promise<boolean> => {
  await serving.event("listening")
  const maps = readFileSync(`/proc/${serving.child.pid}/maps`, "utf8")
  assert.include(maps, basename(process.execPath))
  return maps.includes("pure_link.node")
}

describe.runIf(existsSync("/proc/self/maps"))("the processes of scenarios", () => {
  it("have the addon where this process has it, and so what was asked for in the environment", () =>
    withScenario(async (scenario) => {
      assert.strictEqual(await hasAddon(scenario.serve()), load().addon !== undefined)
    }))

  it("have none with PURE_LINK_NATIVE=off", () =>
    withScenario(async (scenario) => {
      const serve = [process.execPath, scenario.program, ...scenario.serveArguments()]
      assert.isFalse(await hasAddon(scenario.start("env", ["PURE_LINK_NATIVE=off", ...serve])))
    }))
})

/**
 * The README's main job, as a script reads it.
 */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { readFileSync, rmSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "../..")

describe("npm run demo", () => {
  it("moves every record once, in order, and ends with one JSON line that says so", () => {
    const ran = spawnSync("npm", ["run", "--silent", "demo", "--", "--json"], { cwd: root, encoding: "utf8" })
    assert.strictEqual(ran.status, 0, ran.stderr)
    const { seconds, ...counts } = JSON.parse(ran.stdout.trim().split("\n").at(-1)!) as Record<string, number>
    const lines =
      readFileSync(join(root, "node_modules/vega-datasets/data/zipcodes.csv"), "utf8").split("\n").length - 1
    assert.isAtLeast(lines, 10_000)
    assert.deepStrictEqual(counts, { records: lines, stored: lines, duplicates: 0, missing: 0, out_of_order: 0 })
    assert.isAbove(seconds!, 0)
    rmSync(join(root, ".demo"), { recursive: true })
  })
})

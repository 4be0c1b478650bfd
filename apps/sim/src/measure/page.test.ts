import { assert, describe, it } from "@effect/vitest"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { readOptions } from "../options.ts"
import type { SimResult } from "../result.ts"
import { makePage } from "./page.ts"
import { readRuns, writeRuns } from "./rawRuns.ts"
import type { RawRun, Row } from "./row.ts"
import { rows } from "./rows.ts"
import { judge } from "./verdict.ts"

const run = (row: string, seed: number, goodput: number, variant: RawRun["variant"] = "main"): RawRun => ({
  row,
  variant,
  seed,
  args: ["--rtt", "20"],
  result: {
    goodput_mbit_s: goodput,
    trace_digest: `digest ${goodput}`,
    ...(seed === 1 && { series: [0.5, 1].map((seconds) => ({ seconds, goodput, window: 9_000 * seconds, tcp: 1 })) })
  } as unknown as SimResult
})

const row = (id: string, least: number): Row => ({
  id,
  group: "clean",
  title: `path ${id}`,
  args: ["--rtt", "20"],
  seeds: 3,
  twin: { what: "digest again", args: [] },
  checks: [{ what: "goodput, Mbit/s", of: ({ goodput_mbit_s }) => goodput_mbit_s, judged: "median", least, digits: 2 }]
})

const raw: Readonly<Record<string, ReadonlyArray<RawRun>>> = {
  a: [run("a", 1, 47.5), run("a", 2, 46), run("a", 3, 47.6), run("a", 1, 47.5, "twin")],
  b: [run("b", 1, 7), run("b", 2, 6), run("b", 3, 5), run("b", 1, 7.5, "twin")]
}
const runsOf = (id: string) => raw[id] ?? []
const states = (chosen: Row) => judge(chosen, runsOf).map(({ state }) => state)

describe("verdicts", () => {
  it("a median holds although one seed is below the bar; digests must be equal", () => {
    assert.deepStrictEqual(states(row("a", 47.3)), ["holds", "holds"])
    assert.deepStrictEqual(states(row("b", 6.6)), ["missed", "missed"])
  })

  it("a bar for each seed is missed by one, or by a figure that never came", () => {
    const each = (of: (result: SimResult) => number | null, most: number): Row => ({
      ...row("a", 0),
      checks: [{ what: "x", of, judged: "every", most, digits: 0 }]
    })
    assert.strictEqual(states(each((result) => result.goodput_mbit_s, 48))[0], "holds")
    assert.strictEqual(states(each((result) => result.goodput_mbit_s, 47.5))[0], "missed")
    assert.strictEqual(states(each((result) => (result.goodput_mbit_s > 47 ? null : 0), 48))[0], "missed")
  })

  it("a bar may be a share of another row's median", () => {
    const relative = (id: string, of: string): Row => {
      const [check] = row(id, 0).checks
      const { least: _, ...rest } = check!
      return { ...row(id, 0), checks: [{ ...rest, leastOf: { row: of, factor: 0.95 } }] }
    }
    assert.strictEqual(states(relative("a", "b"))[0], "holds")
    assert.strictEqual(states(relative("b", "a"))[0], "missed")
    assert.strictEqual(judge(relative("b", "a"), runsOf)[0]!.bar, "≥ 45.13 (0.95 of a)")
    assert.strictEqual(states(relative("a", "none"))[0], "missing")
  })

  it("fewer seeds than asked for are not a measurement", () => {
    assert.strictEqual(states({ ...row("a", 1), seeds: 4 })[0], "missing")
    assert.deepStrictEqual(states(row("none", 1)), ["missing", "missing"])
  })
})

describe("the page", () => {
  const chosen = [row("a", 47.3), row("b", 6.6), row("none", 1)]

  it("is the same to the byte for the same results, through files too", () => {
    const folder = mkdtempSync(join(tmpdir(), "lossy-paths-"))
    try {
      for (const [id, runs] of Object.entries(raw)) writeRuns(id, runs.toReversed(), folder)
      const first = makePage(chosen, runsOf, "remarks")
      const second = makePage(chosen, (id) => readRuns(id, folder), "remarks")
      assert.strictEqual(first.markdown, second.markdown)
      assert.deepStrictEqual([...first.plots], [...second.plots])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it("tells every row with its bar and verdict, and names what was missed", () => {
    const { markdown, plots } = makePage(chosen, runsOf, "remarks")
    assert.include(markdown, "**2 of 4 bars hold.**")
    assert.include(markdown, "Missed: `b` (goodput, Mbit/s), `b` (digest again).")
    assert.include(markdown, "2 are not measured.")
    assert.include(markdown, "| path a | goodput, Mbit/s | ≥ 47.3 | 47.50 | 46.00 | 47.60 | 3 | holds |")
    assert.deepStrictEqual([...plots.keys()], ["goodput.svg", "a.svg", "b.svg"])
    for (const file of plots.keys()) assert.include(markdown, `lossy-paths/${file}`)
    for (const svg of plots.values()) assert.notMatch(svg, /NaN|Infinity|undefined/)
  })
})

describe("rows", () => {
  it("have names of their own and arguments that sim takes", () => {
    assert.strictEqual(new Set(rows.map(({ id }) => id)).size, rows.length)
    for (const { args, id, twin } of rows) {
      assert.isDefined(readOptions([...args, ...(twin?.args ?? []), "--json", "--seed", "1"]), id)
    }
  })

  it("bars that depend on other rows name rows that are", () => {
    const ids = new Set(rows.map(({ id }) => id))
    const others = rows.flatMap(({ checks }) => checks.flatMap(({ leastOf }) => leastOf?.row ?? []))
    assert.lengthOf(others, 4)
    for (const other of others) assert.isTrue(ids.has(other), other)
  })
})

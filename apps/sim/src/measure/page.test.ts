import { assert, describe, it } from "@effect/vitest"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { readOptions } from "../options.ts"
import type { SimResult } from "../result.ts"
import { codeDigest } from "./code.ts"
import { makePage } from "./page.ts"
import { readRuns, writeRuns } from "./rawRuns.ts"
import type { RawRun, Row } from "./row.ts"
import { rows } from "./rows.ts"
import { judge } from "./verdict.ts"

const argsOf = (seed: number): ReadonlyArray<string> => ["--rtt", "20", "--idle", `${seed}:1`]

const run = (row: string, seed: number, goodput: number, variant: RawRun["variant"] = "main"): RawRun => ({
  row,
  variant,
  seed,
  args: [...argsOf(seed), ...(variant === "twin" ? ["--again"] : [])],
  code: "c0de",
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
  argsOf,
  seeds: 3,
  twin: { what: "digest again", args: ["--again"] },
  checks: [{ what: "goodput, Mbit/s", of: ({ goodput_mbit_s }) => goodput_mbit_s, judged: "median", least, digits: 2 }]
})

const raw: Readonly<Record<string, ReadonlyArray<RawRun>>> = {
  a: [run("a", 1, 47.5), run("a", 2, 46), run("a", 3, 47.6), run("a", 1, 47.5, "twin")],
  b: [run("b", 1, 7), run("b", 2, 6), run("b", 3, 5), run("b", 1, 7.5, "twin")]
}
const runsOf = (id: string) => raw[id] ?? []
/** A bar of 0.95 of what row `of` reached. */
const relative = (id: string, of: string): Row => {
  const [check] = row(id, 0).checks
  const { least: _, ...rest } = check!
  return { ...row(id, 0), checks: [{ ...rest, leastOf: { row: row(of, 0), factor: 0.95 } }] }
}
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
    assert.strictEqual(states(relative("a", "b"))[0], "holds")
    assert.strictEqual(states(relative("b", "a"))[0], "missed")
    assert.strictEqual(judge(relative("b", "a"), runsOf)[0]!.bar, "≥ 45.13 (0.95 of a)")
    assert.strictEqual(states(relative("a", "none"))[0], "missing")
  })

  it("a bar that depends on another row waits until that one is whole", () => {
    const without = (id: string) => (id === "b" ? raw["b"]!.filter(({ seed }) => seed !== 3) : runsOf(id))
    assert.strictEqual(judge(relative("a", "b"), runsOf)[0]!.state, "holds")
    assert.strictEqual(judge(relative("a", "b"), without)[0]!.state, "missing")
  })

  it("fewer seeds than asked for are not a measurement", () => {
    assert.strictEqual(states({ ...row("a", 1), seeds: 4 })[0], "missing")
    assert.deepStrictEqual(states(row("none", 1)), ["missing", "missing"])
  })

  /** The verdicts on row a, when its file says otherwise. */
  const judged = (change: (run: RawRun) => RawRun) =>
    judge(row("a", 47.3), () => raw["a"]!.map(change)).map(({ seeds, state }) => `${state} ${seeds}`)

  it("a run of other arguments is no run of the row", () => {
    const other = (variant: string, seed: number) => (each: RawRun) =>
      each.variant === variant && each.seed === seed ? { ...each, args: ["--rtt", "21"] } : each
    assert.deepStrictEqual(
      judged((each) => each),
      ["holds 3", "holds 1"]
    )
    assert.deepStrictEqual(judged(other("main", 2)), ["missing 2", "holds 1"])
    assert.deepStrictEqual(judged(other("main", 1)), ["missing 2", "missing 1"])
    assert.deepStrictEqual(judged(other("twin", 1)), ["holds 3", "missing 1"])
  })

  it("the arguments of a run are those of its own seed", () => {
    const swapped = (each: RawRun) => (each.variant === "main" ? { ...each, args: argsOf(4 - each.seed) } : each)
    assert.deepStrictEqual(judged(swapped), ["missing 1", "missing 1"])
  })

  it("a seed counts once, and only if the row asks for it", () => {
    assert.deepStrictEqual(
      judged((each) => (each.seed === 3 ? { ...each, seed: 2, args: argsOf(2) } : each)),
      ["missing 2", "holds 1"]
    )
    assert.deepStrictEqual(
      judged((each) => (each.seed === 3 ? { ...each, seed: 4, args: argsOf(4) } : each)),
      ["missing 2", "holds 1"]
    )
  })

  it("code that has changed since does not unmeasure a row", () => {
    assert.deepStrictEqual(
      judged((each) => ({ ...each, code: "other" })),
      ["holds 3", "holds 1"]
    )
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

describe("the code of the page's runs", () => {
  it("is told, and when it is mixed, of which rows", () => {
    const page = (of: (id: string) => string) => {
      const runs = (id: string) => runsOf(id).map((each) => ({ ...each, code: of(id) }))
      return makePage([row("a", 47.3), row("b", 6.6)], runs, "").markdown
    }
    assert.include(
      page(() => "c0de"),
      "Measured with code `c0de`"
    )
    assert.include(
      page((id) => `code-${id}`),
      "**mixed code** (digests of the sources). `code-a`: `a`; `code-b`: `b`."
    )
  })

  it("changes with any source that runs, and with no test", () => {
    const folder = mkdtempSync(join(tmpdir(), "code-"))
    const write = (file: string, text: string): string => {
      mkdirSync(dirname(join(folder, file)), { recursive: true })
      writeFileSync(join(folder, file), text)
      return codeDigest(folder)
    }
    try {
      const first = write("packages/wire/src/frames/ack.ts", "1")
      assert.match(first, /^[0-9a-f]{12}$/)
      const second = write("packages/wire/src/frames/ack.ts", "2")
      const third = write("apps/sim/src/path.ts", "1")
      assert.strictEqual(new Set([first, second, third]).size, 3)
      assert.strictEqual(write("packages/wire/src/frames/ack.test.ts", "1"), third)
      assert.strictEqual(write("apps/sim/src/measure/page.ts", "1"), third)
      assert.strictEqual(write("packages/wire/src/frames/ack.ts", "1") === third, false)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

describe("rows", () => {
  it("have names of their own and arguments that sim takes", () => {
    assert.strictEqual(new Set(rows.map(({ id }) => id)).size, rows.length)
    for (const { argsOf, id, seeds, twin } of rows) {
      for (let seed = 1; seed <= seeds; seed++) {
        assert.isDefined(readOptions([...argsOf(seed), ...(twin?.args ?? []), "--json", "--seed", "1"]), id)
      }
    }
  })

  it("have events that come at another moment with each seed", () => {
    const ids = ["delay-step", "blackout", "blackhole", "idle", "idle-slow-start"]
    for (const { argsOf, id, seeds } of rows) {
      const lines = new Set(Array.from({ length: seeds }, (_, i) => argsOf(i + 1).join(" ")))
      assert.strictEqual(lines.size, ids.includes(id) ? seeds : 1, id)
    }
    const line = (id: string, seed: number) =>
      rows
        .find((row) => row.id === id)!
        .argsOf(seed)
        .join(" ")
    assert.include(line("delay-step", 1), "--delay-step 10:400:1 ")
    assert.include(line("blackhole", 1), "--blackhole-at growth ")
  })

  it("are run without the black-hole detector too, unless they raise its suspicion or are about something else", () => {
    const without = rows.filter(({ twin }) => twin?.args.includes("--no-blackhole-detection") !== true)
    assert.deepStrictEqual(
      without.map(({ id }) => id),
      ["storm", "storm-newreno", "blackout", "blackhole", "repeat"]
    )
  })

  it("bars that depend on other rows name rows that are", () => {
    const others = rows.flatMap(({ checks }) => checks.flatMap(({ leastOf }) => leastOf?.row ?? []))
    assert.lengthOf(others, 4)
    for (const other of others) assert.isTrue(rows.includes(other), other.id)
  })
})

import { assert, describe, it } from "@effect/vitest"
import { execFileSync, spawnSync } from "node:child_process"
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { vi } from "vitest"
import { main } from "./commandLine.ts"

const program = join(import.meta.dirname, "../bin/sim.js")

/** What a call printed, and its exit code. */
const call = (line: string): { readonly code: number; readonly out: string; readonly error: string } => {
  let out = ""
  const error = vi.spyOn(console, "error").mockImplementation(() => {})
  try {
    const code = main(line.split(" "), (text) => (out += `${text}\n`))
    return { code, out, error: error.mock.calls.map((args) => `${args.join(" ")}\n`).join("") }
  } finally {
    error.mockRestore()
  }
}

describe("the command line of sim", () => {
  it("a wrong value is one line and exit code 2, also for a script", () => {
    assert.deepStrictEqual(call("--rate fast"), {
      code: 2,
      out: "",
      error: 'sim: --rate takes Mbit/s from 0.01 to 100,000, not "fast"; see --help\n'
    })
    const { code, out } = call("--json --rate fast")
    assert.strictEqual(code, 2)
    assert.deepStrictEqual(JSON.parse(out), {
      event: "failed",
      exit: 2,
      message: '--rate takes Mbit/s from 0.01 to 100,000, not "fast"'
    })
  })

  it("for a person it prints what counts and two plots", () => {
    const { code, out } = call("--records 300")
    assert.strictEqual(code, 0)
    for (const part of [
      "50 Mbit/s, RTT 20 ms",
      "records stored        300 of 1013 B",
      "goodput, Mbit/s",
      "window, KiB"
    ]) {
      assert.include(out, part)
    }
  })

  it("exit code 1 when not all was stored in time", () => {
    const { code, error } = call("--records 3000 --limit 0.1")
    assert.strictEqual(code, 1)
    assert.include(error, "not all was stored within 0.1 s")
  })

  it("a trace has every event of every node", () => {
    const folder = mkdtempSync(join(tmpdir(), "sim-trace-"))
    const file = join(folder, "trace.jsonl")
    try {
      assert.strictEqual(call(`--records 100 --json --trace ${file}`).code, 0)
      const lines = readFileSync(file, "utf8").trimEnd().split("\n")
      const events = lines.map((line) => JSON.parse(line) as { node: string; _tag: string; at: number })
      assert.deepStrictEqual([...new Set(events.map(({ node }) => node))].toSorted(), ["flow-1", "receiver"])
      assert.isTrue(events.some(({ _tag }) => _tag === "PacketSent"))
      assert.deepStrictEqual(
        events.map(({ at }) => at).toSorted((a, b) => a - b),
        events.map(({ at }) => at)
      )
    } finally {
      rmSync(folder, { recursive: true })
    }
    assert.include(call("--records 1 --trace /nowhere/at/all").error, "cannot be written")
  })

  it("a value that begins with a dash is one clear line", () => {
    assert.include(call("--rtt -5").error, "--rtt takes no value that begins with a dash")
  })

  it("a result or a trace that cannot be written is exit code 3, and never lost in silence", () => {
    const trace = call("--records 10 --trace /dev/full")
    assert.deepStrictEqual([trace.code, trace.out], [3, ""])
    assert.include(trace.error, "the trace cannot be written: ENOSPC")
    const full = openSync("/dev/full", "w")
    const { status, stderr } = spawnSync(process.execPath, [program, "--records", "10", "--json"], {
      stdio: ["ignore", full, "pipe"],
      encoding: "utf8"
    })
    closeSync(full)
    assert.strictEqual(status, 3)
    assert.include(stderr, "the result cannot be written: ENOSPC")
  })

  it("runs as a program, whose last line is the result", () => {
    const text = execFileSync(process.execPath, [program, "--records", "10", "--json"], { encoding: "utf8" })
    assert.strictEqual(
      (JSON.parse(text.trimEnd().split("\n").at(-1)!) as { records_stored: number }).records_stored,
      10
    )
  })
})

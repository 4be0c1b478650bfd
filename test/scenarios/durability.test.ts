/**
 * What STORED stands on, seen from the kernel (spec §2.2): in a system-call trace of the receiver, an fsync or fdatasync
 * of the inbox returns before the first answer with a raised n leaves. The test build of `serve` marks such answers with
 * an access to a path that does not exist.
 */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Scenario } from "./processes.ts"
import { canTrace } from "./tools.ts"

const markedServe = join(import.meta.dirname, "markedServe.ts")

interface Call {
  readonly kind: "sync" | "commitBegins" | "mark" | "send"
  readonly n: number
}

/**
 * The calls that matter, in the order in which they returned (strace writes a call's line when it returns). A sync counts
 * only if it is of the inbox or its log; when another thread's call comes between, strace names the file in the first of
 * two lines and the result in the second.
 */
const callsOf = (trace: string): Array<Call> => {
  const ofInbox = new Set<string>()
  return trace.split("\n").flatMap((line): Array<Call> => {
    const thread = line.split(" ", 1)[0]!
    if (/(fsync|fdatasync)\(\d+</.test(line)) {
      if (!/\/inbox\.db(-wal)?>/.test(line)) return []
      if (/<unfinished/.test(line)) ofInbox.add(thread)
      return /\) += 0$/.test(line) ? [{ kind: "sync", n: 0 }] : []
    }
    if (/<\.\.\. (fsync|fdatasync) resumed>/.test(line)) {
      return ofInbox.delete(thread) && line.endsWith(" = 0") ? [{ kind: "sync", n: 0 }] : []
    }
    const begins = /write\(1<[^>]*>, "\{\\"event\\":\\"commitBegins\\",\\"n\\":(\d+)/.exec(line)
    if (begins) return [{ kind: "commitBegins", n: Number(begins[1]) }]
    const mark = /"\/answer-with-raised-n\/(\d+)"/.exec(line)
    if (mark) return [{ kind: "mark", n: Number(mark[1]) }]
    return /send(msg|mmsg|to)\(/.test(line) ? [{ kind: "send", n: 0 }] : []
  })
}

/** Moves 2,000 records into a traced receiver and returns what went wrong in its trace, one line per answer. */
const brokenAnswers = async (
  environment: Record<string, string>
): Promise<{ readonly answers: number; readonly broken: Array<string> }> => {
  const scenario = new Scenario()
  try {
    const lines = Array.from({ length: 2_000 }, (_, i) => `record ${i} ${"x".repeat(i % 700)}\n`).join("")
    writeFileSync(scenario.path("input"), lines)
    const calls = "fsync,fdatasync,write,sendmsg,sendmmsg,sendto,access,faccessat,faccessat2,stat,statx,newfstatat"
    const settings = Object.entries(environment).flatMap(([name, value]) => ["-E", `${name}=${value}`])
    const traced = scenario.start("strace", [
      "-D",
      "-f",
      "-y",
      "-qq",
      "-e",
      `trace=${calls}`,
      "-e",
      "signal=none",
      "-o",
      scenario.path("trace"),
      ...settings,
      process.execPath,
      markedServe,
      ...scenario.serveArguments()
    ])
    const address = String((await traced.event("listening")).address)
    const sent = await scenario.send(address, scenario.path("input")).ended
    assert.strictEqual(sent.code, 0, sent.errors)
    await traced.kill("SIGTERM")
    return judge(callsOf(readFileSync(scenario.path("trace"), "utf8")))
  } finally {
    await scenario.close()
  }
}

const judge = (calls: ReadonlyArray<Call>): { readonly answers: number; readonly broken: Array<string> } => {
  const marks = calls.flatMap((call, index) => (call.kind === "mark" ? [{ ...call, index }] : []))
  const broken = marks.flatMap(({ index, n }): Array<string> => {
    const begun = calls.findLastIndex((call, at) => at < index && call.kind === "commitBegins" && call.n >= n)
    if (begun < 0) return [`n = ${n} was answered before its commit began`]
    if (!calls.slice(begun, index).some((call) => call.kind === "sync"))
      return [`n = ${n} was answered before a sync returned`]
    return calls.slice(index).some((call) => call.kind === "send") ? [] : [`no answer left after the mark of ${n}`]
  })
  if (marks.at(-1)?.n !== 2_000) broken.push("the trace does not show the answer for the last record")
  return { answers: marks.length, broken }
}

describe.runIf(canTrace())("durability", () => {
  it("a sync of the inbox returns before the first answer with a raised n leaves", async () => {
    const { answers, broken } = await brokenAnswers({})
    assert.isAbove(answers, 0)
    assert.deepStrictEqual(broken, [])
  })

  it("the trace would show an answer that comes before its commit", async () => {
    const { broken } = await brokenAnswers({ PURE_LINK_FAULT: "storedBeforeCommit" })
    assert.isAbove(broken.length, 0)
  })
})

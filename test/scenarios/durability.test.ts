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

/** The calls that matter, in the order in which they returned (strace writes a call's line when it returns). */
const callsOf = (trace: string): Array<Call> =>
  trace.split("\n").flatMap((line): Array<Call> => {
    if (/(fsync|fdatasync)(\(| resumed>).*= 0$/.test(line)) return [{ kind: "sync", n: 0 }]
    const begins = /write\(1, "\{\\"event\\":\\"commitBegins\\",\\"n\\":(\d+)/.exec(line)
    if (begins) return [{ kind: "commitBegins", n: Number(begins[1]) }]
    const mark = /"\/answer-with-raised-n\/(\d+)"/.exec(line)
    if (mark) return [{ kind: "mark", n: Number(mark[1]) }]
    return /send(msg|mmsg|to)\(/.test(line) ? [{ kind: "send", n: 0 }] : []
  })

describe.runIf(canTrace())("durability", () => {
  it("a sync of the inbox returns before the first answer with a raised n leaves", async () => {
    const scenario = new Scenario()
    try {
      const lines = Array.from({ length: 2_000 }, (_, i) => `record ${i} ${"x".repeat(i % 700)}\n`).join("")
      writeFileSync(scenario.path("input"), lines)
      const traced = scenario.start("strace", [
        "-D",
        "-f",
        "-qq",
        "-e",
        "trace=fsync,fdatasync,write,sendmsg,sendmmsg,sendto,access,faccessat,faccessat2,stat,statx,newfstatat",
        "-e",
        "signal=none",
        "-o",
        scenario.path("trace"),
        process.execPath,
        markedServe,
        ...scenario.serveArguments()
      ])
      const address = String((await traced.event("listening")).address)
      const sent = await scenario.send(address, scenario.path("input")).ended
      assert.strictEqual(sent.code, 0, sent.errors)
      await traced.kill("SIGTERM")

      const calls = callsOf(readFileSync(scenario.path("trace"), "utf8"))
      const marks = calls.flatMap((call, index) => (call.kind === "mark" ? [{ ...call, index }] : []))
      assert.isAbove(marks.length, 0, "the trace shows no answer with a raised n")
      assert.strictEqual(marks.at(-1)!.n, 2_000)
      for (const { index, n } of marks) {
        const begun = calls.findLastIndex((call, at) => at < index && call.kind === "commitBegins" && call.n >= n)
        assert.isAtLeast(begun, 0, `n = ${n} was answered before its commit began`)
        const synced = calls.slice(begun, index).some((call) => call.kind === "sync")
        assert.isTrue(synced, `n = ${n} was answered before a sync returned`)
        assert.isTrue(
          calls.slice(index).some((call) => call.kind === "send"),
          `no answer left after the mark of ${n}`
        )
      }
    } finally {
      await scenario.close()
    }
  })
})

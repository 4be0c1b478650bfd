import { it } from "@effect/vitest"
import { Bench, list, makeRecords, stored, tagsOf, recordsOf } from "./scriptedPeer.ts"
it("dbg", () => {
  const bench = new Bench({ records: makeRecords(Array.from({ length: 3000 }, (_, i) => i % 700)) })
  const acked: number[] = []
  for (let i = 0; i < 12; i++) {
    const ps = bench.pass(20_000)
    console.log(i, bench.now, bench.link.status, ps.map((p) => `${p.number}e${p.epoch}${tagsOf(p).join("")}:${recordsOf(p).join(",")}`).join(" | "), bench.link.deadline(), JSON.stringify(bench.link.counters))
    acked.push(...ps.map((p) => p.number))
    if (ps.length) bench.answer(list("Ack", ...acked), stored(0, { creditRecords: 1000, creditBytes: 300_000 }))
  }
})

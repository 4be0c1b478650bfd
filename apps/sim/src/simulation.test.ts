import { assert, describe, it } from "@effect/vitest"
import { readOptions } from "./options.ts"
import type { SimResult } from "./result.ts"
import { simulate } from "./simulation.ts"
import { summarize } from "./summary.ts"

const sim = (line: string): SimResult => summarize(simulate(readOptions(line.split(" "))!), 0)

describe("sim", () => {
  it("a clean path is full, within what framing leaves", () => {
    const result = sim("--seconds 2 --skip 1")
    assert.isAbove(result.goodput_mbit_s, 47)
    assert.isAtMost(result.goodput_mbit_s, 1.002 * result.goodput_limit_mbit_s!)
    assert.isNull(result.complete)
    assert.isAtMost(result.framing_bytes_full_packet, 41)
    assert.closeTo(result.goodput_limit_mbit_s!, (50 * (1_452 - result.framing_bytes_mean)) / 1_480, 0.001)
    assert.strictEqual(result.datagram_size, 1_452)
    assert.strictEqual(result.truly_lost, result.queue_drops)
    assert.strictEqual(result.path_drops, 0)
  })

  it("one seed gives one course of events, another seed another", () => {
    const line = "--records 300 --loss 0.02 --jitter 3 --duplicate 0.02 --corrupt 0.002"
    const digests = ["--seed 1", "--seed 1", "--seed 2"].map((seed) => sim(`${line} ${seed}`).trace_digest)
    assert.strictEqual(digests[0], digests[1])
    assert.notStrictEqual(digests[0], digests[2])
  })

  it("all records arrive over a lossy path, and losses are found", () => {
    const result = sim("--records 2000 --loss 0.05 --rtt 10")
    assert.isTrue(result.complete)
    assert.strictEqual(result.records_stored, 2_000)
    assert.isAbove(result.path_drops, 20)
    assert.closeTo(result.truly_lost, result.path_drops + result.queue_drops, 5)
    assert.strictEqual(result.undone_with_true_loss, 0)
  })

  it("a rated flow on a clean path takes half a round trip and its own transmission", () => {
    const { latency_ms: latency, records_stored } = sim("--every 20 --seconds 2 --rtt 20")
    assert.closeTo(latency!.p50, 10.2, 0.1)
    assert.isAtMost(latency!.max, 10.5)
    assert.closeTo(records_stored, 100, 1)
  })

  it("records that a blackout holds back at the end count with their age", () => {
    const { latency_ms: latency, records_stored } = sim("--every 20 --seconds 2 --blackout 1:5")
    assert.closeTo(records_stored, 50, 2)
    assert.closeTo(latency!.max, 1_000, 25)
  })

  it("copies of packets, TCP's among them, are not taken for packets that are too old", () => {
    assert.strictEqual(sim("--tcp 1 --duplicate 0.1 --loss 0.01 --seconds 1").dropped_too_old, 0)
  })

  it("TCP flows join when they are asked to", () => {
    const { series } = sim("--tcp 1 --join 1 --seconds 2 --series 20")
    assert.isTrue(series!.slice(0, 9).every(({ tcp }) => tcp === 0))
    assert.isAbove(series![19]!.tcp, 0)
  })

  it("a record larger than many datagrams and one of no bytes arrive whole", () => {
    assert.strictEqual(sim("--size 100000 --records 20").records_stored, 20)
    const empty = sim("--size 0 --records 500")
    assert.strictEqual(empty.records_stored, 500)
    assert.isNull(empty.goodput_limit_mbit_s)
  })

  it("a run that does not end in time says so", () => {
    const result = sim("--records 3000 --limit 0.2")
    assert.isFalse(result.complete)
    assert.strictEqual(result.virtual_seconds, 0.2)
    assert.isBelow(result.records_stored, 3_000)
  })

  it("nothing passes in a blackout, and the first STORED after it is timed", () => {
    const result = sim("--blackout 0.2:3 --seconds 7")
    assert.isAbove(result.other_drops, 0)
    assert.isAbove(result.stored_after_blackout_ms!, 0)
    assert.isBelow(result.stored_after_blackout_ms!, 3_000)
    assert.isAbove(result.packets_into_blackout_after_first_pto!, 0)
  })

  it("a black hole opens when the datagram grows", () => {
    const result = sim("--blackhole-at growth --records 1500 --limit 30")
    assert.isAbove(result.other_drops, 0)
    assert.isTrue(result.complete)
    assert.isAbove(result.all_stored_after_blackhole_ms!, 0)
    assert.isBelow(result.smallest_datagram_size_after_growth!, 1_452)
  })

  it("a black hole may open a while after the growth, with what is under way", () => {
    const at = (when: string) => sim(`--blackhole-at ${when} --records 1500 --limit 30`)
    const later = at("growth+0.01")
    assert.isAbove(later.other_drops, 0)
    assert.strictEqual(later.undone_with_true_loss, 0)
    assert.notStrictEqual(later.trace_digest, at("growth").trace_digest)
  })

  it("an idle time ends when it should, and only then growth counts", () => {
    const result = sim("--idle 0.2:60 --seconds 60.8")
    assert.isAbove(result.max_window_growth_per_rtt, 1)
    assert.isBelow(result.max_window_growth_per_rtt, 1.9)
  })

  it("shares the bottleneck with TCP and among its own flows", () => {
    const result = sim("--tcp 1 --flows 2 --jitter 1 --seconds 2 --skip 1 --series 20")
    assert.isAbove(result.share!, 0.1)
    assert.isBelow(result.share!, 0.9)
    assert.closeTo(result.goodput_mbit_s + result.tcp_goodput_mbit_s!, 47.9, 1)
    assert.lengthOf(result.series!, 20)
    assert.isAbove(result.series![15]!.tcp, 1)
  })

  it("policies are exchanged by flags", () => {
    const reordered = "--jitter 5 --seconds 1"
    const adaptive = sim(reordered)
    const fixed = sim(`${reordered} --loss-detection fixed --no-undo`)
    assert.isAbove(adaptive.goodput_mbit_s, 3 * fixed.goodput_mbit_s)
    assert.strictEqual(fixed.undone, 0)
    assert.strictEqual(sim("--path-mtu fixed --records 500").datagram_size, 1_200)
    assert.isAbove(sim("--pacing unpaced --records 500").max_burst_over_pacing, 5)
    assert.notStrictEqual(
      sim("--controller newreno --records 1000 --loss 0.02").trace_digest,
      sim("--controller cubic --records 1000 --loss 0.02").trace_digest
    )
  })
})

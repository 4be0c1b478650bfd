import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { LinkOptions } from "../LinkOptions.ts"
import { Sim } from "../Sim.ts"
import { VirtualNetwork } from "../VirtualNetwork.ts"
import { startTcpFlow } from "./TcpFlow.ts"

/**
 * The reference flow against what Linux 6.18 does on the same paths (50 Mbit/s, queue of one round trip), as measured
 * through an emulator with real kernels. Of 50 Mbit/s, 48.27 are data: 1,448 of 1,500 bytes.
 */

describe("TcpFlow through 50 Mbit/s with a queue of one round trip", () => {
  for (const roundTrip of [20, 100]) {
    it(`fills the path alone at ${roundTrip} ms`, () => {
      const { rates, counters } = runFlows({ roundTrip, skip: 2, seconds: 22 })
      assert.closeTo(rates[0]!, 48.1, 0.2)
      assert.isAbove(counters[0]!.fastRecoveries, 0)
      assert.strictEqual(counters[0]!.timeouts, 0)
    })

    it(`shares with another of its kind at ${roundTrip} ms`, () => {
      const { rates } = runFlows({ roundTrip, skip: 20, seconds: 60, flows: 2, jitter: 1 })
      const share = rates[0]! / (rates[0]! + rates[1]!)
      assert.closeTo(share, 0.5, 0.1)
      assert.closeTo(rates[0]! + rates[1]!, 47.8, 0.5)
    })

    it(`leaves slow start long before the queue overflows at ${roundTrip} ms`, () => {
      const { queue, drops } = runFlows({ roundTrip, skip: 0, seconds: 10 * (roundTrip / 1_000) })
      assert.strictEqual(drops, 0)
      assert.isBelow(queue, 0.8)
      assert.isAbove(queue, 0.05)
    })
  }

  it("gets 5 to 7 Mbit/s with 1 % loss at 20 ms, with and without jitter of 3 ms", () => {
    const plain = runFlows({ roundTrip: 20, skip: 2, seconds: 62, loss: 0.01 })
    const jittered = runFlows({ roundTrip: 20, skip: 2, seconds: 62, loss: 0.01, jitter: 3 })
    assert.closeTo(plain.rates[0]!, 6, 1)
    assert.closeTo(jittered.rates[0]!, 6, 1)
  })

  it("gets 1.5 to 3 Mbit/s with 5 % loss at 20 ms", () => {
    assert.closeTo(runFlows({ roundTrip: 20, skip: 2, seconds: 62, loss: 0.05 }).rates[0]!, 2.25, 0.75)
  })

  it("gets 1 to 1.6 and 0.4 to 0.7 Mbit/s with 1 and 5 % loss at 100 ms", () => {
    assert.closeTo(runFlows({ roundTrip: 100, skip: 2, seconds: 122, loss: 0.01 }).rates[0]!, 1.3, 0.3)
    assert.closeTo(runFlows({ roundTrip: 100, skip: 2, seconds: 122, loss: 0.05 }).rates[0]!, 0.55, 0.15)
  })

  it("survives jitter of 3 ms as Linux does, which PAWS costs more at 100 ms", () => {
    assert.closeTo(runFlows({ roundTrip: 20, skip: 0, seconds: 14, jitter: 3 }).rates[0]!, 44, 4)
    assert.closeTo(runFlows({ roundTrip: 100, skip: 0, seconds: 14, jitter: 3 }).rates[0]!, 34, 12)
  })

  it("goes the same way for the same seed, and another for another", () => {
    const course = (seed: number) => {
      const { delivered, counters, drops } = runFlows({ roundTrip: 20, skip: 0, seconds: 5, jitter: 3, flows: 2, seed })
      return JSON.stringify({ delivered, counters, drops })
    }
    assert.strictEqual(course(1), course(1))
    assert.notStrictEqual(course(1), course(2))
  })

  it("delivers so many bytes and then falls silent", () => {
    const { delivered, counters } = runFlows({ roundTrip: 20, skip: 0, seconds: 5, bytes: 1_000_001, loss: 0.02 })
    assert.deepStrictEqual(delivered, [1_000_001])
    assert.isBelow(counters[0]!.segmentsSent, 800)
  })
})

interface Path {
  /** In milliseconds, seconds and parts. */
  readonly roundTrip: number
  readonly jitter?: number
  readonly loss?: number
  readonly flows?: number
  readonly bytes?: number
  readonly skip: number
  readonly seconds: number
  readonly seed?: number
}

/** Rates in Mbit/s from `skip` to `seconds`; the largest queue as a part of what it may be. */
const runFlows = (path: Path) => {
  const queueBytes = (50_000_000 / 8_000) * path.roundTrip
  const link: Partial<LinkOptions> = { delayMicros: path.roundTrip * 500, jitterMicros: (path.jitter ?? 0) * 1_000 }
  const program = Effect.gen(function* () {
    const network = yield* VirtualNetwork
    network.bottleneck("b", { rateBitsPerSecond: 50_000_000, queueBytes })
    network.configure("sender", "receiver", { ...link, loss: path.loss ?? 0, bottleneck: "b" })
    network.configure("receiver", "sender", link)
    const flows = Array.from({ length: path.flows ?? 1 }, (_, i) =>
      startTcpFlow(network, {
        from: { host: "sender", port: i + 1 },
        to: { host: "receiver", port: i + 1 },
        ...(path.bytes === undefined ? {} : { bytes: path.bytes })
      })
    )
    yield* Effect.sleep(path.skip * 1_000)
    const before = flows.map((flow) => flow.deliveredBytes)
    yield* Effect.sleep((path.seconds - path.skip) * 1_000)
    const { dropped, largestQueueBytes } = network.bottleneckCounters("b")
    const delivered = flows.map((flow) => flow.deliveredBytes)
    const counters = flows.map((flow) => flow.counters)
    for (const flow of flows) flow.stop()
    const rates = delivered.map((bytes, i) => ((bytes - before[i]!) * 8) / 1e6 / (path.seconds - path.skip))
    return { rates, delivered, counters, drops: dropped, queue: largestQueueBytes / queueBytes }
  })
  const exit = new Sim().run(Effect.provide(program, VirtualNetwork.layer({ seed: path.seed ?? 1 })))
  if (!Exit.isSuccess(exit)) throw new Error(String(exit.cause))
  return exit.value
}

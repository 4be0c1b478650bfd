import { forEachDatagram } from "@pure-link/ports"
import { assert, describe, it } from "@effect/vitest"
import { type Address, never } from "@pure-link/wire"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { openOn, run } from "../test/run.ts"
import { Bottleneck, type BottleneckOptions } from "./Bottleneck.ts"
import type { Network } from "./Network.ts"

const sender: Address = { host: "a", port: 1 }
/** 1 µs for each byte on the wire. */
const byteAMicro = { rateBitsPerSecond: 8e6, overheadBytes: 0 }

describe("Bottleneck", () => {
  it("sends one datagram after the other, each for as long as it takes, headers included", () => {
    const bottleneck = new Bottleneck({ rateBitsPerSecond: 50e6, queueBytes: Infinity })
    assert.strictEqual(bottleneck.pass(1_000, 1_452, sender), 1_236.8)
    assert.closeTo(bottleneck.pass(1_000, 1_452, sender), 1_473.6, 1e-6)
    assert.closeTo(bottleneck.pass(1_100, 22, sender), 1_481.6, 1e-6)
    assert.strictEqual(bottleneck.pass(5_000, 1_452, sender), 5_236.8)
  })

  it("keeps its rate over time to the microsecond, though one datagram takes a fraction of it", () => {
    const bottleneck = new Bottleneck({ rateBitsPerSecond: 30e6, queueBytes: Infinity })
    let departure = 0
    for (let i = 0; i < 300_000; i++) departure = bottleneck.pass(Math.floor(i * 300), 1_472, sender)
    assert.closeTo(departure, 300_000 * 400, 0.01)
  })

  it("accepts what just fits the queue and drops what is one byte more; what is being sent does not count", () => {
    const bottleneck = new Bottleneck({ ...byteAMicro, queueBytes: 300 })
    const pass = (now: number, bytes: number) => bottleneck.pass(now, bytes, sender)
    assert.deepStrictEqual([pass(0, 1_000), pass(0, 200)], [1_000, 1_200])
    assert.strictEqual(bottleneck.waitingBytes(0), 200)
    assert.deepStrictEqual([pass(999, 101), pass(999, 100), pass(999, 1)], [never, 1_300, never])
    assert.strictEqual(bottleneck.waitingBytes(999), 300)
    // At 1,000 the first has left and the second, of 200, is being sent.
    assert.deepStrictEqual([pass(1_000, 201), pass(1_000, 200)], [never, 1_500])
    assert.strictEqual(bottleneck.waitingBytes(1_499), 0)
    assert.strictEqual(bottleneck.counters.largestQueueBytes, 300)
    const { accepted, acceptedBytes, dropped, droppedBytes } = bottleneck.counters
    assert.deepStrictEqual([accepted, acceptedBytes, dropped, droppedBytes], [4, 1_500, 3, 303])
  })

  it("without a queue carries what finds it idle, of any size", () => {
    const bottleneck = new Bottleneck({ ...byteAMicro, queueBytes: 0 })
    const passed = [0, 1_499, 1_500, 1_501].map((now) => bottleneck.pass(now, 1_500, sender))
    assert.deepStrictEqual(passed, [1_500, never, 3_000, never])
    assert.strictEqual(bottleneck.counters.largestQueueBytes, 0)
  })

  it("changes its rate and queue for what comes later only", () => {
    const bottleneck = new Bottleneck({ ...byteAMicro, queueBytes: 2_000 })
    for (let i = 0; i < 3; i++) bottleneck.pass(0, 1_000, sender)
    bottleneck.change({ ...byteAMicro, rateBitsPerSecond: 4e6, queueBytes: 2_500 })
    assert.strictEqual(bottleneck.pass(0, 500, sender), 4_000)
    bottleneck.change({ ...byteAMicro, queueBytes: 1_000 })
    assert.strictEqual(bottleneck.pass(1_500, 1, sender), never)
    assert.strictEqual(bottleneck.pass(2_500, 500, sender), 4_500)
  })

  it("rejects options that make no sense", () => {
    const attempt = (options: Partial<BottleneckOptions>) => () =>
      new Bottleneck({ rateBitsPerSecond: 1, queueBytes: 0, ...options })
    for (const rate of [0, -1, NaN, Infinity]) {
      assert.throws(attempt({ rateBitsPerSecond: rate }), RangeError, "rateBitsPerSecond must be finite and above 0")
    }
    for (const queueBytes of [-1, NaN]) assert.throws(attempt({ queueBytes }), RangeError, "queueBytes")
    for (const overheadBytes of [-1, NaN, Infinity]) assert.throws(attempt({ overheadBytes }), RangeError, "overhead")
  })

  const Arrivals = Schema.Array(Schema.Struct({ gap: upTo(120), bytes: upTo(200) }))

  it.prop("agrees with a queue that is a plain list", [Arbitrary.schema(Arrivals)], ([arrivals]) => {
    const bottleneck = new Bottleneck({ ...byteAMicro, queueBytes: 250 })
    const twin = new ListedQueue(250)
    let now = 0
    // Several rounds, so that the ring turns and grows.
    for (const { gap, bytes } of [...arrivals, ...arrivals, ...arrivals]) {
      now += gap
      assert.strictEqual(bottleneck.pass(now, bytes, sender), twin.pass(now, bytes))
      assert.strictEqual(bottleneck.waitingBytes(now), twin.waitingBytes(now))
    }
  })

  it("holds any number of datagrams", () => {
    const bottleneck = new Bottleneck({ ...byteAMicro, queueBytes: Infinity })
    const twin = new ListedQueue(Infinity)
    for (let now = 0; now < 3_000; now++) {
      assert.strictEqual(bottleneck.pass(now, 1 + (now % 7), sender), twin.pass(now, 1 + (now % 7)))
      assert.strictEqual(bottleneck.waitingBytes(now), twin.waitingBytes(now))
    }
  })
})

/** The readable twin: bytes that leave at 1 µs each. */
class ListedQueue {
  readonly #capacity: number
  #inside: ReadonlyArray<{ readonly departure: number; readonly bytes: number }> = []

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  pass(now: number, bytes: number): number {
    const waiting = this.waitingBytes(now)
    if (this.#inside.length > 0 && waiting + bytes > this.#capacity) return never
    const departure = (this.#inside.at(-1)?.departure ?? now) + bytes
    this.#inside = [...this.#inside, { departure, bytes }]
    return departure
  }

  waitingBytes(now: number): number {
    this.#inside = this.#inside.filter(({ departure }) => departure > now)
    return this.#inside.slice(1).reduce((sum, { bytes }) => sum + bytes, 0)
  }
}

describe("a link with a bottleneck", () => {
  it("delivers in the order of sending, at the bottleneck's rate, then after the link's delay", () => {
    run({ seed: 1, link: { delayMicros: 10_000 } }, function* (network) {
      network.bottleneck("narrow", { rateBitsPerSecond: 50e6, queueBytes: 15_000 })
      network.configure("a", "b", { bottleneck: "narrow" })
      const [a, b] = [yield* openOn(network, "a"), yield* openOn(network, "b")]
      const arrivals: Array<readonly [number, number]> = []
      b.onReadable = () => forEachDatagram(b.receive(9), (bytes) => arrivals.push([bytes[0]!, network.now()]))
      const slab = new Uint8Array(1_452 * 20).map((_, i) => Math.floor(i / 1_452))
      a.send(slab, 1_452, new Uint32Array(20).fill(1_452), 20, b.local)
      assert.strictEqual(network.underWay, 11)
      assert.strictEqual(network.waitingBytes("narrow"), 14_800)
      yield* Effect.sleep(50)
      const expected = Array.from({ length: 11 }, (_, i) => [i, 10_000 + Math.round((i + 1) * 236.8)])
      assert.deepStrictEqual(arrivals, expected as unknown as typeof arrivals)
      assert.strictEqual(network.underWay, 0)
      assert.strictEqual(network.counters("a", "b").queueDropped, 9)
      assert.strictEqual(network.bottleneckCounters("narrow").dropped, 9)
    })
  })

  it("shares it with other links, whose flows are counted apart and add up", () => {
    run({ seed: 1, link: { delayMicros: 1_000 } }, function* (network) {
      network.bottleneck("narrow", { rateBitsPerSecond: 8e6, queueBytes: 10_000, overheadBytes: 0 })
      for (const from of ["a", "c"]) network.configure(from, "b", { bottleneck: "narrow" })
      let arrivedBytes = 0
      const b = network.station(
        { host: "b", port: 0 },
        { arrive: (_, bytes) => void (arrivedBytes += bytes.length), wake }
      )
      const flows = [
        { from: { host: "a", port: 5 }, every: 800 },
        { from: { host: "a", port: 6 }, every: 2_000 },
        { from: { host: "c", port: 5 }, every: 3_000 }
      ]
      for (const { from, every } of flows) {
        for (let at = 0; at < 1_000_000; at += every) {
          network.at(at, () => network.inject(new Uint8Array(1_000), from, b.local))
        }
      }
      yield* Effect.sleep(900)
      // Filled for 899 ms at 1 µs a byte, and only whole datagrams count.
      assert.closeTo(arrivedBytes, 899_000, 1_000)
      yield* Effect.sleep(200)
      const total = network.bottleneckCounters("narrow")
      const each = flows.map(({ from }) => network.flowCounters("narrow", from))
      for (const field of ["accepted", "acceptedBytes", "dropped", "droppedBytes"] as const) {
        assert.strictEqual(
          each.reduce((sum, flow) => sum + flow[field], 0),
          total[field]
        )
      }
      assert.deepStrictEqual(
        each.map(({ accepted, dropped }) => accepted + dropped),
        [1_250, 500, 334]
      )
      for (const flow of each) assert.isAbove(flow.dropped, 0)
      assert.strictEqual(arrivedBytes, total.acceptedBytes)
      assert.strictEqual(network.flowCounters("narrow", { host: "z", port: 1 }).accepted, 0)
      assert.strictEqual(total.largestQueueBytes, 10_000)
    })
  })

  it("meets its mtu and loss behind the bottleneck, and a partition in front of it", () => {
    run({ seed: 1 }, function* (network) {
      network.bottleneck("wide", { rateBitsPerSecond: 1e9, queueBytes: 100_000 })
      const bytesOf = (options: Parameters<Network["configure"]>[2]) => {
        network.configure("a", "b", { bottleneck: "wide", mtu: 1_500, loss: 0, ...options })
        const before = network.bottleneckCounters("wide").acceptedBytes
        network.inject(new Uint8Array(1_000), sender, { host: "b", port: 1 })
        return network.bottleneckCounters("wide").acceptedBytes - before
      }
      assert.deepStrictEqual(
        [bytesOf({ mtu: 999 }), bytesOf({ loss: 1 }), bytesOf({ bottleneck: undefined })],
        [1_028, 1_028, 0]
      )
      network.partition("a", "b")
      assert.strictEqual(bytesOf({}), 0)
      yield* Effect.sleep(2)
      const { tooLarge, lost, cut, unreachable } = network.counters("a", "b")
      assert.deepStrictEqual([tooLarge, lost, cut, unreachable], [1, 1, 1, 1])
    })
  })

  it("needs one that was made before", () => {
    run({ seed: 1, link: { bottleneck: "none" } }, function* (network) {
      assert.throws(() => network.configure("a", "b", { bottleneck: "other" }), "no bottleneck")
      assert.throws(() => network.bottleneckCounters("none"), 'no bottleneck "none"')
      yield* Effect.void
    })
  })
})

function upTo(most: number) {
  return Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: most }))
}

const wake = (): void => {}

import { assert, describe, it } from "@effect/vitest"
import { DatagramSocket, forEachDatagram, type OpenSocket } from "@pure-link/ports"
import { datagramSocketContract } from "@pure-link/ports/contract/DatagramSocket"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { Sim } from "./Sim.ts"
import { firstDifference, openOn, run, succeed } from "../test/run.ts"
import type { LinkOptions } from "./LinkOptions.ts"
import type { Network, NetworkOptions } from "./Network.ts"
import { VirtualNetwork } from "./VirtualNetwork.ts"

datagramSocketContract("virtual, on Sim", {
  layer: Layer.provide(VirtualNetwork.host("alice"), VirtualNetwork.layer({ seed: 1 })),
  bindHost: "::",
  reachHost: "alice",
  run: (test) => succeed(new Sim().run(test))
})

datagramSocketContract("virtual, on the live clock", {
  layer: Layer.provide(VirtualNetwork.host("alice"), VirtualNetwork.layer({ seed: 1, link: { delayMicros: 50 } })),
  bindHost: "alice",
  reachHost: "alice",
  run: (test) => Effect.runPromise(test)
})

describe("VirtualNetwork", () => {
  const bad: Partial<LinkOptions> = {
    delayMicros: 20_000,
    jitterMicros: 15_000,
    loss: 0.1,
    duplicate: 0.05,
    reorder: 0.02,
    reorderMicros: 60_000
  }

  it("loses, duplicates, delays and reorders as often and as much as it is told", () => {
    run({ seed: 7, link: bad }, function* (network) {
      const [a, b] = [yield* openOn(network, "a"), yield* openOn(network, "b")]
      const delays: Array<number> = []
      let overtakings = 0
      let latest = -1
      b.onReadable = () => {
        forEachDatagram(b.receive(256), (bytes) => {
          const sentAt = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0)
          delays.push(network.now() - sentAt)
          if (sentAt < latest) overtakings++
          latest = Math.max(latest, sentAt)
        })
      }
      const stamp = new Uint8Array(4)
      for (let i = 0; i < 20_000; i++) {
        new DataView(stamp.buffer).setUint32(0, network.now())
        a.send(stamp, 4, Uint32Array.of(4), 1, b.local)
        yield* Effect.sleep(0.1)
      }
      yield* Effect.sleep("1 second")
      const counters = network.counters("a", "b")
      assert.strictEqual(counters.sent, 20_000)
      assert.strictEqual(counters.arrived, counters.sent - counters.lost + counters.duplicated)
      assert.strictEqual(delays.length, counters.arrived)
      assert.closeTo(counters.lost, 2_000, 150)
      assert.closeTo(counters.duplicated, 900, 110)
      assert.closeTo(counters.reordered, 360, 80)
      const prompt = delays.filter((delay) => delay <= 35_000)
      assert.closeTo(delays.length - prompt.length, 360, 80)
      assert.isAtLeast(Math.min(...prompt), 5_000)
      assert.isAtMost(Math.max(...delays), 95_000)
      assert.closeTo(prompt.reduce((sum, delay) => sum + delay, 0) / prompt.length, 20_000, 300)
      assert.isAbove(overtakings, 10_000)
    })
  })

  it("drops above the mtu only, and only in the direction it was set for", () => {
    run({ seed: 1 }, function* (network) {
      const [a, b] = [yield* openOn(network, "a"), yield* openOn(network, "b")]
      network.configure("a", "b", { mtu: 1_200 })
      a.send(new Uint8Array(2_401), 1_200, Uint32Array.of(1_200, 1_201), 2, b.local)
      b.send(new Uint8Array(1_452), 1_452, Uint32Array.of(1_452), 1, a.local)
      yield* Effect.sleep(2)
      assert.strictEqual(
        forEachDatagram(b.receive(9), (bytes) => assert.strictEqual(bytes.length, 1_200)),
        1
      )
      assert.strictEqual(a.receive(9).count, 1)
      assert.strictEqual(network.counters("a", "b").tooLarge, 1)
    })
  })

  it("parts two hosts and no others, until healed; what is under way arrives", () => {
    run({ seed: 1 }, function* (network) {
      const [a, b, c] = [yield* openOn(network, "a"), yield* openOn(network, "b"), yield* openOn(network, "c")]
      const greetAll = () => {
        for (const from of [a, b, c]) {
          for (const to of [a, b, c]) if (from !== to) from.send(Uint8Array.of(1), 1, Uint32Array.of(1), 1, to.local)
        }
      }
      const heard = () => [a, b, c].map((socket) => socket.receive(9).count)
      greetAll()
      network.partition("a", "b")
      yield* Effect.sleep(2)
      assert.deepStrictEqual(heard(), [2, 2, 2])
      greetAll()
      yield* Effect.sleep(2)
      assert.deepStrictEqual(heard(), [1, 1, 2])
      assert.strictEqual(network.counters("a", "b").cut, 1)
      network.heal("b", "a")
      greetAll()
      yield* Effect.sleep(2)
      assert.deepStrictEqual(heard(), [2, 2, 2])
    })
  })

  it("shows to a tap what befalls every datagram, and lets a test drop and inject its own", () => {
    run({ seed: 1, receiveQueue: 2 }, function* (network) {
      const [a, b] = [yield* openOn(network, "a"), yield* openOn(network, "b")]
      const seen: Array<string> = []
      const untap = network.tap(({ at, fate, bytes }) => void seen.push(`${at} ${bytes[0]} ${fate}`))
      network.sieve = (bytes) => bytes[0] === 2
      a.send(Uint8Array.of(1, 2, 3), 1, Uint32Array.of(1, 1, 1), 3, b.local)
      a.send(Uint8Array.of(4), 1, Uint32Array.of(1), 1, { host: "b", port: 9 })
      network.inject(Uint8Array.of(5), { host: "mallory", port: 1 }, b.local)
      yield* Effect.sleep(2)
      untap()
      a.send(Uint8Array.of(6), 1, Uint32Array.of(1), 1, b.local)
      assert.deepStrictEqual(seen, [
        "0 1 sent",
        "0 2 sent",
        "0 2 sieved",
        "0 3 sent",
        "0 4 sent",
        "0 5 sent",
        "1000 1 arrived",
        "1000 3 arrived",
        "1000 4 unreachable",
        "1000 5 overrun"
      ])
      assert.strictEqual(b.counters.receiveDrops, 1)
    })
  })

  it("overwrites bytes that were kept when it is asked again, and gives each copy bytes of its own", () => {
    run({ seed: 1, link: { duplicate: 1 } }, function* (network) {
      const [a, b] = [yield* openOn(network, "a"), yield* openOn(network, "b")]
      const kept: Array<Uint8Array> = []
      a.send(Buffer.from([1, 2]), 2, Uint32Array.of(2), 1, b.local)
      yield* Effect.sleep(2)
      forEachDatagram(b.receive(9), (bytes) => {
        assert.deepStrictEqual([...bytes], [1, 2])
        kept.push(bytes)
        bytes.fill(7)
      })
      b.receive(9)
      assert.deepStrictEqual(
        kept.map((bytes) => [...bytes]),
        [
          [0xdb, 0xdb],
          [0xdb, 0xdb]
        ]
      )
    })
  })

  it("binds to its own host only, takes free ports, and forgets a host's sockets that closed", () => {
    run({ seed: 1 }, function* (network) {
      const error = yield* Effect.flip(network.socketsOf("a").open({ host: "b", port: 1 }))
      assert.strictEqual(error.code, "EADDRNOTAVAIL")
      const first = yield* openOn(network, "a")
      const second = yield* openOn(network, "a")
      assert.notStrictEqual(first.local.port, second.local.port)
      assert.strictEqual(first.local.host, "a")
    })
  })

  it("kills a socket on demand, for good", () => {
    run({ seed: 1 }, function* (network) {
      const [a, b] = [yield* openOn(network, "a"), yield* openOn(network, "b")]
      network.kill(b.local, "ENETDOWN")
      assert.strictEqual((yield* Effect.flip(b.died)).code, "ENETDOWN")
      b.send(Uint8Array.of(1), 1, Uint32Array.of(1), 1, a.local)
      assert.strictEqual(b.counters.sendErrors, 1)
      yield* network.socketsOf("b").open(b.local)
    })
  })

  it("calls a driver once for all that arrives at an instant", () => {
    run({ seed: 1 }, function* (network) {
      const [a, b] = [yield* openOn(network, "a"), yield* openOn(network, "b")]
      let calls = 0
      b.onReadable = () => calls++
      a.send(new Uint8Array(50), 1, new Uint32Array(50).fill(1), 50, b.local)
      yield* Effect.sleep(2)
      assert.strictEqual(calls, 1)
      assert.strictEqual(b.receive(99).count, 50)
    })
  })

  it("keeps what befalls one link apart from the traffic of others and from its other options", () => {
    const lossesOf = (bystanders: number, options: Partial<LinkOptions>) => {
      const losses: Array<number> = []
      run({ seed: 3, link: { loss: 0.3 } }, function* (network) {
        const [a, b, c] = [yield* openOn(network, "a"), yield* openOn(network, "b"), yield* openOn(network, "c")]
        network.configure("a", "b", options)
        network.tap(({ fate, from, bytes }) => {
          if (fate === "lost" && from.host === "a") losses.push(bytes[0]!)
        })
        for (let i = 0; i < 100; i++) {
          for (let other = 0; other < bystanders; other++) c.send(Uint8Array.of(0), 1, Uint32Array.of(1), 1, b.local)
          a.send(Uint8Array.of(i), 1, Uint32Array.of(1), 1, b.local)
        }
      })
      return losses
    }
    const alone = lossesOf(0, {})
    assert.isAbove(alone.length, 15)
    assert.deepStrictEqual(lossesOf(3, {}), alone)
    assert.deepStrictEqual(lossesOf(0, { duplicate: 0.5, jitterMicros: 900, reorder: 0.5 }), alone)
  })

  it("gives the same trace for the same seed and another one for another", () => {
    const trace = (seed: number) => succeed(new Sim().run(gossip({ seed, link: bad }, 4)))
    const one = trace(11)
    assert.isAbove(one.length, 1_000)
    assert.strictEqual(firstDifference(trace(11), one), undefined)
    assert.isDefined(firstDifference(trace(12), one))
  })

  it("does so with all that a network can do", () => {
    const trace = (seed: number) => succeed(new Sim().run(gossip({ seed, link: bad }, 4, withEverything)))
    const one = trace(11)
    const fates = new Set(one.map((line) => line.split(" ")[3]))
    const expected = [
      "sent",
      "queueDropped",
      "lost",
      "duplicated",
      "corrupted",
      "tooLarge",
      "cut",
      "arrived",
      "unreachable"
    ]
    assert.deepStrictEqual([...fates].sort(), expected.sort())
    assert.strictEqual(firstDifference(trace(11), one), undefined)
    assert.isDefined(firstDifference(trace(12), one))
  })

  it.effect("gives the same trace on TestClock as on Sim", () =>
    Effect.gen(function* () {
      const options = { seed: 5, link: bad }
      const onTestClock = yield* Effect.forkChild(gossip(options, 4))
      yield* TestClock.adjust("1 second")
      const trace = yield* Fiber.join(onTestClock)
      const onSim = succeed(new Sim().run(gossip(options, 4)))
      assert.isAbove(trace.length, 1_000)
      assert.deepStrictEqual(firstDifference(trace, onSim), undefined)
    })
  )

  it.effect("does so with all that a network can do", () =>
    Effect.gen(function* () {
      // With this seed no sleep ends in the microsecond of an arrival, which either clock may order its own way.
      const options = { seed: 5, link: bad }
      const onTestClock = yield* Effect.forkChild(gossip(options, 4, withEverything))
      yield* TestClock.adjust("1 second")
      const trace = yield* Fiber.join(onTestClock)
      const onSim = succeed(new Sim().run(gossip(options, 4, withEverything)))
      assert.isAbove(trace.length, 2_000)
      assert.deepStrictEqual(firstDifference(trace, onSim), undefined)
    })
  )
})

/** Nodes that start rumours at their own pace and pass each on a few times: a trace of all that happens in a second. */
const gossip = (
  options: NetworkOptions,
  nodes: number,
  equip: (network: Network) => void = () => {}
): Effect.Effect<ReadonlyArray<string>, unknown> =>
  Effect.gen(function* () {
    const network = yield* VirtualNetwork
    equip(network)
    const trace: Array<string> = []
    network.tap(({ at, fate, from, to, bytes }) => {
      trace.push(`${at} ${from.host} ${to.host} ${fate} ${bytes.join()}`)
    })
    for (let i = 0; i < nodes; i++) {
      const sockets = network.socketsOf(`n${i}`)
      yield* gossiper(i, nodes).pipe(Effect.provideService(DatagramSocket, sockets), Effect.forkScoped)
    }
    yield* Effect.sleep("1 second")
    return trace
  }).pipe(Effect.scoped, Effect.provide(VirtualNetwork.layer(options)))

/** All options that `bad` leaves alone, a bottleneck that several links share, schedules, a NAT and two stations. */
const withEverything = (network: Network): void => {
  network.bottleneck("core", { rateBitsPerSecond: 200_000, queueBytes: 1_500 })
  const rough = { bottleneck: "core", burstLoss: { enter: 0.05, leave: 0.3, loss: 0.9 }, corrupt: 0.1 }
  for (const [from, to] of [
    ["n0", "n1"],
    ["n1", "n2"],
    ["s", "n0"],
    ["s", "t"]
  ] as const)
    network.configure(from, to, rough)
  network.schedule("n0", "n1", [
    { atMicros: 301_003, options: { mtu: 3, delayMicros: 7_000 } },
    { atMicros: 600_101, cut: true },
    { atMicros: 703_333, cut: false, options: { loss: 0.5, mtu: 9 } }
  ])
  network.at(500_013, () => network.rebind({ host: "n1", port: 40 }, { host: "n1", port: 41 }))
  network.at(800_017, () => network.bottleneck("core", { rateBitsPerSecond: 100_000, queueBytes: 900 }))
  const t = network.station({ host: "t", port: 1 }, { arrive: (_, bytes, from) => t.send(bytes, from), wake: () => {} })
  const s = network.station(
    { host: "s", port: 1 },
    {
      arrive: (now) => s.wakeAt(now + 77),
      wake: (now) => {
        s.send(Uint8Array.of(now & 0xff, 1, 2), now % 3 === 0 ? { host: "n0", port: 40 } : t.local)
        s.wakeAt(now + 3_331)
      }
    }
  )
  s.wakeAt(1)
}

const gossiper = Effect.fnUntraced(function* (self: number, nodes: number) {
  const socket = yield* (yield* DatagramSocket).open({ host: "::", port: 40 })
  const wake = Latch.makeUnsafe(true)
  socket.onReadable = () => wake.openUnsafe()
  const pass = (socket: OpenSocket, bytes: Uint8Array, hops: number) => {
    const rumour = Uint8Array.of(hops, self, ...bytes.subarray(0, 6))
    const next = (self + 1 + (hops % (nodes - 1))) % nodes
    socket.send(rumour, rumour.length, Uint32Array.of(rumour.length), 1, { host: `n${next}`, port: 40 })
  }
  const start = Effect.forever(
    Effect.suspend(() => {
      pass(socket, Uint8Array.of(socket.counters.sent & 0xff), 3)
      return Effect.sleep(13.137 + self * 1.611)
    })
  )
  const forward = Effect.forever(
    Effect.gen(function* () {
      yield* wake.await
      wake.closeUnsafe()
      forEachDatagram(socket.receive(100), (bytes) => {
        if (bytes[0]! > 0) pass(socket, bytes, bytes[0]! - 1)
      })
    })
  )
  yield* Effect.all([start, forward], { concurrency: "unbounded" })
})

import { forEachDatagram } from "@pure-link/ports"
import { assert, describe, it } from "@effect/vitest"
import type { Address } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import { openOn, run } from "../test/run.ts"
import { BurstLoss } from "./BurstLoss.ts"
import type { LinkOptions } from "./LinkOptions.ts"
import type { Network } from "./Network.ts"
import { SeededStream } from "./SeededStream.ts"

describe("BurstLoss", () => {
  /** Whether each of a million datagrams was lost. */
  const losses = (loss: number): ReadonlyArray<boolean> => {
    const burstLoss = new BurstLoss(new SeededStream(1, "burst"))
    return Array.from({ length: 1_000_000 }, () => burstLoss.draw({ enter: 0.01, leave: 0.25, loss }))
  }

  it("loses as much as theory says, in bursts as long and as far apart", () => {
    const all = losses(1)
    const lost = all.filter(Boolean).length
    const bursts = all.filter((isLost, i) => isLost && all[i - 1] !== true).length
    assert.closeTo(lost / all.length, 0.01 / 0.26, 0.001)
    assert.closeTo(lost / bursts, 1 / 0.25, 0.1)
    assert.closeTo((all.length - lost) / bursts, 1 / 0.01, 3)
  })

  it("loses the given part of what meets a bad link", () => {
    assert.closeTo(losses(0.4).filter(Boolean).length / 1_000_000, (0.4 * 0.01) / 0.26, 0.0006)
  })

  it("is good again after it was off", () => {
    const burstLoss = new BurstLoss(new SeededStream(1, "burst"))
    assert.isTrue(burstLoss.draw({ enter: 1, leave: 0, loss: 1 }))
    assert.isTrue(burstLoss.draw({ enter: 0, leave: 0, loss: 1 }))
    assert.isFalse(burstLoss.draw(undefined))
    assert.isFalse(burstLoss.draw({ enter: 0, leave: 0, loss: 1 }))
  })
})

describe("a link", () => {
  it("flips exactly one bit of what it corrupts, any bit alike, and nothing of the rest", () => {
    run({ seed: 3, link: { corrupt: 0.3, duplicate: 0.5 } }, function* (network) {
      const flips = Array.from({ length: 24 }, () => 0)
      let intact = 0
      const b = station(network, "b", (bytes) => {
        if (bytes.length === 0) return void intact++
        const flipped = flips.map((_, bit) => bit).filter((bit) => ((bytes[bit >> 3]! ^ 0x5a) >> (bit & 7)) & 1)
        assert.isAtMost(flipped.length, 1)
        if (flipped.length === 0) intact++
        else flips[flipped[0]!]!++
      })
      let [flippedNow, bothFlipped] = [0, 0]
      network.tap(({ fate }) => {
        if (fate === "sent") flippedNow = 0
        if (fate === "corrupted" && ++flippedNow === 2) bothFlipped++
      })
      for (let i = 0; i < 20_000; i++) network.inject(Uint8Array.of(0x5a, 0x5a, 0x5a), nobody, b.local)
      network.inject(new Uint8Array(0), nobody, b.local)
      yield* Effect.sleep(2)
      const { corrupted, arrived, duplicated } = network.counters("a", "b")
      assert.strictEqual(intact, arrived - corrupted)
      assert.closeTo(duplicated, 10_000, 300)
      assert.closeTo(corrupted / arrived, 0.3, 0.01)
      assert.closeTo(bothFlipped / duplicated, 0.3 * 0.3, 0.01)
      for (const count of flips) assert.closeTo(count, corrupted / 24, 80)
    })
  })

  it("does to the rest what it did without burst loss, corruption or bottleneck", () => {
    const arrivals = (options: Partial<LinkOptions>) => {
      const seen: Array<string> = []
      run({ seed: 3 }, function* (network) {
        network.bottleneck("wide", { rateBitsPerSecond: 1e12, queueBytes: Infinity })
        network.configure("a", "b", { loss: 0.2, jitterMicros: 900, duplicate: 0.2, ...options })
        const b = station(network, "b", (bytes) => void seen.push(`${network.now()} ${bytes.length}`))
        for (let i = 0; i < 200; i++) network.inject(new Uint8Array(i), nobody, b.local)
        yield* Effect.sleep(5)
      })
      return seen
    }
    const plain = arrivals({})
    assert.isAbove(plain.length, 150)
    assert.deepStrictEqual(arrivals({ corrupt: 0.5, bottleneck: "wide" }), plain)
    const bursts = arrivals({ burstLoss: { enter: 0.1, leave: 0.2, loss: 1 } })
    assert.isBelow(bursts.length, plain.length)
    assert.deepStrictEqual(
      bursts.filter((arrival) => !plain.includes(arrival)),
      []
    )
  })

  it("rejects options out of their bounds, by name, and stays as it was", () => {
    run({ seed: 1 }, function* (network) {
      const wrong: ReadonlyArray<Partial<LinkOptions>> = [
        ...[-0.1, 1.1, NaN].flatMap((value) => [
          { loss: value },
          { duplicate: value },
          { corrupt: value },
          { reorder: value }
        ]),
        ...[-1, NaN, Infinity].flatMap((value) => [
          { delayMicros: value },
          { jitterMicros: value },
          { reorderMicros: value }
        ]),
        ...[-1, NaN].map((mtu) => ({ mtu })),
        ...["enter", "leave", "loss"].map((name) => ({ burstLoss: { enter: 0, leave: 0, loss: 0, [name]: 2 } }))
      ]
      for (const options of wrong) {
        const name = Object.keys(options)[0]!
        assert.throws(() => network.configure("a", "b", options), RangeError, name)
        assert.throws(() => network.schedule("a", "b", [{ atMicros: 5, options }]), RangeError, name)
      }
      assert.throws(() => network.schedule("a", "b", [{ atMicros: NaN }]), RangeError, "atMicros")
      assert.throws(() => network.at(NaN, () => {}), RangeError)
      let arrived = 0
      const b = station(network, "b", () => void arrived++)
      network.inject(new Uint8Array(1_400), nobody, b.local)
      yield* Effect.sleep(2)
      assert.strictEqual(arrived, 1)
    })
    assert.throws(() => run({ seed: 1, link: { loss: 2 } }, function* () {}), "failed")
  })
})

describe("time on the network", () => {
  it("calls what was set for a time, in the order of time, then of setting, never in the caller's stack", () => {
    run({ seed: 1 }, function* (network) {
      const log: Array<string> = []
      const note = (name: string) => () => void log.push(`${name}@${network.now()}`)
      yield* Effect.sleep(1)
      network.at(3_000, note("late"))
      network.at(2_000, note("first"))
      network.at(2_000, note("second"))
      network.at(2_000.2, note("fraction"))
      network.at(Infinity, note("never"))
      network.at(0, () => {
        note("at once")()
        network.at(0, note("nested"))
      })
      assert.deepStrictEqual(log, [])
      yield* Effect.sleep(9)
      assert.deepStrictEqual(log, [
        "at once@1000",
        "nested@1000",
        "first@2000",
        "second@2000",
        "fraction@2001",
        "late@3000"
      ])
    })
  })

  it("ends what sets itself again at once for ever", () => {
    const spin = () =>
      run({ seed: 1 }, function* (network) {
        const again = () => network.at(0, again)
        again()
        yield* Effect.sleep(1)
      })
    assert.throws(spin, "events at 0 µs")
  })

  it("changes a link by schedule: loss, delay, a black hole for large datagrams, a blackout", () => {
    run({ seed: 1 }, function* (network) {
      const arrivals: Array<string> = []
      const b = station(network, "b", (bytes) => void arrivals.push(`${bytes[0]}: ${bytes.length} at ${network.now()}`))
      const back = station(network, "a", () => void arrivals.push("back"))
      network.schedule("a", "b", [
        { atMicros: 20_000, options: { mtu: 1_300 } },
        { atMicros: 10_000, options: { loss: 1 } },
        { atMicros: 15_000, options: { loss: 0, delayMicros: 3_000 } },
        { atMicros: 30_000, cut: true, options: { mtu: 1_452 } },
        { atMicros: 40_000, cut: false, options: { delayMicros: 1_000 } }
      ])
      for (let i = 0; i < 5; i++) {
        network.at(9_000 + i * 7_500, () => {
          for (const length of [1_300, 1_301]) network.inject(new Uint8Array(length).fill(i), nobody, b.local)
        })
      }
      network.at(12_000, () => network.inject(Uint8Array.of(9), nobody, b.local))
      network.at(35_000, () => network.inject(Uint8Array.of(9), b.local, back.local))
      network.at(41_000, () => network.inject(Uint8Array.of(9, 9), nobody, b.local))
      yield* Effect.sleep(60)
      assert.deepStrictEqual(arrivals, [
        "0: 1300 at 10000",
        "0: 1301 at 10000",
        "1: 1300 at 19500",
        "1: 1301 at 19500",
        "2: 1300 at 27000",
        "back",
        "9: 2 at 42000"
      ])
      const { tooLarge, cut, lost } = network.counters("a", "b")
      assert.deepStrictEqual([tooLarge, cut, lost], [1, 4, 1])
    })
  })
})

describe("a NAT", () => {
  it("changes where datagrams come from and go to, both ways; the former outside address is unreachable", () => {
    run({ seed: 1 }, function* (network) {
      const [a, b] = [yield* openOn(network, "a"), yield* openOn(network, "b")]
      const outside = { host: "nat", port: 7 }
      const echo = () =>
        forEachDatagram(b.receive(9), (bytes, from) =>
          b.send(bytes, bytes.length, Uint32Array.of(bytes.length), 1, from)
        )
      b.onReadable = echo
      const heard = function* () {
        a.send(Uint8Array.of(1), 1, Uint32Array.of(1), 1, b.local)
        yield* Effect.sleep(5)
        return forEachDatagram(a.receive(9), (_, from) => assert.deepStrictEqual(from, b.local))
      }
      const unreachable = () => network.counters("b", "a").unreachable + network.counters("b", "nat").unreachable
      assert.strictEqual(yield* heard(), 1)
      // What is under way to the former address when the NAT rebinds is lost too.
      network.inject(Uint8Array.of(2), b.local, a.local)
      network.rebind(a.local, outside)
      assert.strictEqual(yield* heard(), 1)
      assert.strictEqual(unreachable(), 1)
      assert.strictEqual(network.counters("nat", "b").arrived, 1)
      network.inject(Uint8Array.of(3), b.local, a.local)
      yield* Effect.sleep(5)
      assert.strictEqual(unreachable(), 2)
      network.rebind(a.local, { host: "nat", port: 8 })
      network.inject(Uint8Array.of(3), b.local, outside)
      assert.strictEqual(yield* heard(), 1)
      assert.strictEqual(unreachable(), 3)
      network.rebind(a.local, a.local)
      assert.strictEqual(yield* heard(), 1)
      assert.strictEqual(network.counters("b", "a").arrived, 2)
    })
  })

  it("gives no address that is taken, moves nobody who is not there, and frees what it gave", () => {
    run({ seed: 1 }, function* (network) {
      const [a, b] = [yield* openOn(network, "a"), yield* openOn(network, "b")]
      assert.throws(() => network.rebind(a.local, b.local), "taken")
      assert.throws(() => network.rebind(nobody, { host: "nat", port: 1 }), "no socket is open")
      network.rebind(b.local, { host: "c", port: 5 })
      const bind = (at: Address) => Effect.scoped(network.socketsOf(at.host).open(at))
      assert.strictEqual((yield* Effect.flip(bind({ host: "c", port: 5 }))).code, "EADDRINUSE")
      assert.strictEqual((yield* Effect.flip(bind(b.local))).code, "EADDRINUSE")
      assert.throws(() => network.rebind(a.local, b.local), "taken")
      network.kill(b.local)
      yield* bind({ host: "c", port: 5 })
      network.rebind(a.local, b.local)
    })
  })
})

describe("a station", () => {
  it("sends copies, receives bytes that are valid only during the call, and answers at once", () => {
    run({ seed: 1, link: { delayMicros: 3_000 } }, function* (network) {
      const log: Array<string> = []
      let kept = new Uint8Array(0)
      network.tap(({ fate, from }) => void log.push(`${fate} ${from.host}`))
      const b = network.station(
        { host: "b", port: 9 },
        {
          arrive: (now, bytes, from) => {
            log.push(`b at ${now}: ${bytes}`)
            kept = bytes as Uint8Array<ArrayBuffer>
            b.send(bytes.subarray(1), from)
          },
          wake: () => {}
        }
      )
      const a = station(
        network,
        "a",
        (bytes, from) => void log.push(`a at ${network.now()}: ${bytes} from ${from.port}`)
      )
      const reused = Uint8Array.of(1, 2, 3)
      a.send(reused, b.local)
      reused.fill(0)
      yield* Effect.sleep(10)
      assert.deepStrictEqual([...kept], [0xdb, 0xdb, 0xdb])
      const expected = ["sent a", "arrived a", "b at 3000: 1,2,3", "sent b", "arrived b", "a at 6000: 2,3 from 9"]
      assert.deepStrictEqual(log, expected)
    })
  })

  it("may send what no socket would, as far as the mtu lets it", () => {
    run({ seed: 1, link: { mtu: 300_000 } }, function* (network) {
      const lengths: Array<number> = []
      const a = station(network, "a", (bytes) => void lengths.push(bytes.length))
      for (const length of [300_001, 300_000, 0]) a.send(new Uint8Array(length), a.local)
      yield* Effect.sleep(2)
      assert.deepStrictEqual(lengths, [300_000, 0])
    })
  })

  it("wakes at the earliest time set, once, and never in the caller's stack", () => {
    run({ seed: 1 }, function* (network) {
      const wakes: Array<number> = []
      const port = network.station(
        { host: "a", port: 0 },
        {
          arrive: () => {},
          wake: (now) => {
            wakes.push(now)
            if (wakes.length === 1) for (const at of [7_000, 5_000, 6_000, Infinity]) port.wakeAt(at)
            if (wakes.length === 2) port.wakeAt(0)
          }
        }
      )
      for (const at of [4_000, 2_000, 3_000]) port.wakeAt(at)
      assert.throws(() => port.wakeAt(NaN), RangeError)
      assert.deepStrictEqual(wakes, [])
      yield* Effect.sleep(20)
      assert.deepStrictEqual(wakes, [2_000, 5_000, 5_000])
      port.wakeAt(21_000)
      port.wakeAt(0)
      port.close()
      yield* Effect.sleep(20)
      assert.strictEqual(wakes.length, 3)
    })
  })

  it("has its address for itself until it closes", () => {
    run({ seed: 1 }, function* (network) {
      let arrived = 0
      const senders: Array<number> = []
      const first = station(network, "a", () => void arrived++)
      assert.throws(() => network.station(first.local, { arrive: () => {}, wake: () => {} }), "is taken")
      assert.strictEqual((yield* Effect.flip(network.socketsOf("a").open(first.local))).code, "EADDRINUSE")
      assert.notStrictEqual((yield* openOn(network, "a")).local.port, first.local.port)
      network.rebind(first.local, { host: "a", port: 80 })
      network.tap(({ from }) => void senders.push(from.port))
      first.send(Uint8Array.of(1), { host: "b", port: 1 })
      network.inject(Uint8Array.of(1), nobody, { host: "a", port: 80 })
      yield* Effect.sleep(2)
      network.inject(Uint8Array.of(1), nobody, { host: "a", port: 80 })
      first.close()
      yield* Effect.sleep(2)
      assert.strictEqual(arrived, 1)
      assert.strictEqual(network.counters("a", "a").unreachable, 1)
      assert.strictEqual(senders[0], 80)
      assert.throws(() => first.send(Uint8Array.of(1), nobody), "closed")
      yield* network.socketsOf("a").open(first.local)
    })
  })
})

const nobody: Address = { host: "a", port: 1 }

const station = (network: Network, host: string, arrive: (bytes: Uint8Array, from: Address) => void) =>
  network.station({ host, port: 0 }, { arrive: (_, bytes, from) => arrive(bytes, from), wake: () => {} })

import { assert, describe, it } from "@effect/vitest"
import { type Bytes, type Micros, never, type PacketNumber } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import { between } from "../../test/random.ts"
import { Policies } from "../policies.ts"
import { PathMtu } from "./PathMtu.ts"
import type { PathMtuDiscovery } from "./PathMtuDiscovery.ts"

const second = 1_000_000
const minute = 60 * second
const small = 1_200
const large = 1_452

const makerOf = (layer: (typeof PathMtu)["layerDiscovery"]) => Effect.runSync(Effect.provide(PathMtu, layer)).make
const discoveries = [
  ["discovery", makerOf(PathMtu.layerDiscovery)],
  ["discovery without black holes", makerOf(PathMtu.layerWithoutBlackHoles)],
  ["fixed size", makerOf(PathMtu.layerFixed)],
  ["the default", Policies.defaults.pathMtu.make]
] as const
const discovering = (datagramSize: Bytes = small): PathMtuDiscovery => discoveries[0][1]({ datagramSize })

interface Flight {
  readonly number: PacketNumber
  readonly bytes: Bytes
  readonly sentAt: Micros
}

/** Calls as recovery makes them, on a path that may do anything. */
class Fuzz {
  readonly #path: PathMtuDiscovery
  readonly #any: (low: number, high: number) => number
  readonly #why: string
  /** The size that it began with, which a suspicion may give back. */
  readonly #first: Bytes
  #flying: Array<Flight> = []
  #now = 0
  #next = 0

  constructor(path: PathMtuDiscovery, seed: number) {
    this.#path = path
    this.#first = path.datagramSize
    this.#any = between(seed)
    this.#why = `seed ${seed}`
  }

  run(steps: number): void {
    const path = this.#path
    path.handleRoundTrip(this.#now)
    for (let step = 0; step < steps; step++) {
      this.#now += [0, 1, this.#any(1, 200_000), this.#any(1, 20 * minute)][this.#any(0, 3)]!
      const { probeAt, datagramSize } = path
      this.#step()
      this.#check(step)
      if (path.probeAt !== probeAt) assert.isAtLeast(path.probeAt, this.#leastProbeAt, `${this.#why}, step ${step}`)
      if (path.datagramSize > datagramSize) assert.include([path.probeSize, this.#first], path.datagramSize, this.#why)
      if (path.datagramSize < datagramSize) assert.strictEqual(path.datagramSize, small, this.#why)
    }
  }

  #leastProbeAt: Micros = 0

  #step(): void {
    const [path, now, any] = [this.#path, this.#now, this.#any]
    this.#leastProbeAt = now
    switch (any(0, 7)) {
      case 0:
      case 1:
        if (path.probeAt <= now) return path.handleProbeSent(now, this.#send(path.probeSize))
        return void this.#send([path.datagramSize, any(47, small)][any(0, 1)]!)
      case 2:
        return this.#sendTimeoutProbe()
      case 3:
      case 4:
        for (const { number, bytes } of this.#take()) path.handleAcknowledged(now, number, bytes)
        break
      case 5:
        for (const { number, bytes, sentAt } of this.#take()) path.handleLost(now, number, bytes, sentAt)
        break
      case 6:
        return path.handleProbeTimeout(this.#next)
      default:
        if (any(0, 5) > 0) return
        this.#flying = []
        return path.handleForgotten(now)
    }
    const vanished = path.takeVanished()
    assert.isTrue(vanished === never || (vanished >= 0 && vanished < this.#next), `${vanished}, ${this.#why}`)
    assert.strictEqual(path.takeVanished(), never, "told once")
  }

  #sendTimeoutProbe(): void {
    this.#send(this.#path.datagramSize)
    this.#path.handleTimeoutProbe(this.#path.datagramSize)
  }

  #send(bytes: Bytes): PacketNumber {
    this.#flying.push({ number: this.#next, bytes, sentAt: this.#now })
    return this.#next++
  }

  #take(): Array<Flight> {
    return this.#flying.splice(this.#any(0, this.#flying.length), this.#any(1, 6))
  }

  #check(step: number): void {
    const { datagramSize, probeSize, probeAt } = this.#path
    for (const bytes of [datagramSize, probeSize]) {
      assert.isTrue(Number.isInteger(bytes) && bytes >= small && bytes <= large, `${bytes}, ${this.#why}, step ${step}`)
    }
    assert.isTrue(probeAt === never || datagramSize < probeSize, `${this.#why}, step ${step}`)
    assert.isTrue(probeAt >= 0, `${probeAt}, ${this.#why}, step ${step}`)
  }
}

for (const [name, make] of discoveries) {
  describe(`${name}: what every path MTU policy keeps`, () => {
    it("keeps sizes within 1,200 to 1,452 B, and asks for probes that are still to come", () => {
      for (let seed = 1; seed <= 100; seed++) {
        new Fuzz(make({ datagramSize: [small, 1_300, large][seed % 3]! }), seed).run(200)
      }
    })

    it("begins with the size it was told, and wants no probe before the path answered", () => {
      for (const datagramSize of [small, 1_300, large]) {
        const path = make({ datagramSize })
        assert.deepStrictEqual([path.datagramSize, path.probeAt, path.takeVanished()], [datagramSize, never, never])
      }
    })

    it("wants no probe of a size that it has", () => {
      const path = make({ datagramSize: large })
      path.handleRoundTrip(second)
      assert.strictEqual(path.probeAt, never)
    })
  })
}

for (const [name, make] of discoveries) {
  describe(`${name}: a system that may cut datagrams`, () => {
    it("has no probe believed: the size to begin with stays (spec §14.8)", () => {
      const path = make({ datagramSize: small, mayBeCut: true })
      path.handleRoundTrip(second)
      assert.deepStrictEqual([path.probeAt, path.datagramSize, path.name], [never, small, "fixed"])
    })
  })
}

for (const [name, make] of discoveries.slice(0, 2)) {
  describe(`${name}: the timetable (spec §14.8)`, () => {
    it("probes for 1,452 B at once, again 1 s after each loss, three times, and then every ten minutes", () => {
      const path = make({ datagramSize: small })
      path.handleRoundTrip(second)
      assert.deepStrictEqual([path.probeAt, path.probeSize], [second, large])
      let now = second
      const waits: Array<Micros> = []
      for (let number = 1; number <= 7; number++) {
        path.handleProbeSent(now, number)
        assert.strictEqual(path.probeAt, never, "one probe at a time")
        now += 50_000
        path.handleLost(now, number, large, now - 50_000)
        waits.push(path.probeAt - now)
        now = path.probeAt
      }
      assert.deepStrictEqual(waits, [second, second, second, 10 * minute, 10 * minute, 10 * minute, 10 * minute])
      assert.strictEqual(path.datagramSize, small)
    })

    it("takes the size when a probe is acknowledged, and asks no more", () => {
      const path = make({ datagramSize: small })
      path.handleRoundTrip(0)
      path.handleProbeSent(0, 5)
      path.handleAcknowledged(1_000, 4, small)
      assert.strictEqual(path.datagramSize, small)
      path.handleAcknowledged(1_001, 5, large)
      assert.deepStrictEqual([path.datagramSize, path.probeAt], [large, never])
    })

    it("takes the size of the latest probe, too, when that was thought lost, or forgotten", () => {
      for (const end of ["lost", "forgotten"]) {
        const path = make({ datagramSize: small })
        path.handleRoundTrip(0)
        path.handleProbeSent(10, 5)
        if (end === "lost") path.handleLost(1_000, 5, large, 10)
        else path.handleForgotten(1_000)
        assert.isBelow(path.probeAt, never)
        path.handleAcknowledged(1_001, 5, large)
        assert.deepStrictEqual([path.datagramSize, path.probeAt], [large, never], end)
      }
    })

    it("probes again 1 s after a probe that was forgotten, which then says nothing any more", () => {
      const path = make({ datagramSize: small })
      path.handleRoundTrip(0)
      path.handleProbeSent(10, 5)
      path.handleForgotten(1_000)
      assert.strictEqual(path.probeAt, 10 + second)
      path.handleForgotten(2_000)
      assert.strictEqual(path.probeAt, 10 + second)
      path.handleProbeSent(2 * second, 9)
      path.handleLost(3 * second, 9, large, 2 * second)
      assert.strictEqual(path.probeAt, 4 * second)
    })

    it("begins once: another first round trip starts no other search", () => {
      const path = make({ datagramSize: small })
      path.handleRoundTrip(0)
      path.handleProbeSent(0, 1)
      path.handleRoundTrip(second)
      assert.strictEqual(path.probeAt, never)
    })
  })
}

describe("discovery: a suspicion that is withdrawn (spec §14.8)", () => {
  /** Numbers 1 to 4 went unanswered, two of them for probe timeouts; number 5, small, arrives at 900. */
  const suspicious = (datagramSize: Bytes): PathMtuDiscovery => {
    const path = discovering(datagramSize)
    path.handleAcknowledged(0, 0, datagramSize)
    for (let i = 0; i < 2; i++) path.handleTimeoutProbe(datagramSize)
    path.handleProbeTimeout(5)
    assert.deepStrictEqual([path.isSuspicious, path.datagramSize, path.probeAt], [true, small, never])
    path.handleAcknowledged(900, 5, small)
    assert.strictEqual(path.probeAt, 900)
    return path
  }

  it("gives back the size of before, whatever arrived, and searches on if that is not the largest", () => {
    const path = suspicious(1_300)
    path.handleAcknowledged(1_000, 3, 1_250)
    assert.deepStrictEqual([path.isSuspicious, path.datagramSize, path.probeAt], [false, 1_300, 1_000])
  })

  it("asks for no probe of the size that is back, though one that is under way is lost or forgotten", () => {
    for (const end of ["lost", "forgotten"]) {
      const path = suspicious(large)
      path.handleProbeSent(900, 6)
      path.handleAcknowledged(1_000, 4, large)
      if (end === "lost") path.handleLost(1_100, 6, large, 900)
      else path.handleForgotten(1_100)
      assert.deepStrictEqual([path.isSuspicious, path.datagramSize, path.probeAt], [false, large, never], end)
    }
  })
})

describe("discovery: what gives a black hole away", () => {
  /** Three large flights of one round, then others of a second; small ones arrive after both. */
  const rounds = (path: PathMtuDiscovery, first: number, secondRound: number): Micros => {
    path.handleAcknowledged(0, 0, large)
    for (let i = 1; i <= first; i++) path.handleLost(200, i, large, 100)
    path.handleAcknowledged(300, first + 1, small)
    for (let i = 1; i <= secondRound; i++) path.handleLost(400, first + 1 + i, large, 250)
    return path.takeVanished()
  }

  it("is the fourth large flight in a row, from a second round, with a small one acknowledged", () => {
    const path = discovering(large)
    assert.strictEqual(rounds(path, 3, 1), 1, "all from number 1 on")
    assert.deepStrictEqual([path.datagramSize, path.probeAt], [small, 400 + second])
    assert.strictEqual(rounds(discovering(large), 2, 1), never, "three are few")
    assert.strictEqual(rounds(discovering(large), 30, 0), never, "one round says nothing")
    assert.strictEqual(rounds(discovering(large), 1, 3), 1)
  })

  it("is not seen by a discovery without black holes", () => {
    assert.strictEqual(rounds(discoveries[1][1]({ datagramSize: large }), 30, 30), never)
  })

  it("needs a second round: flights sent before the first was declared lost are of the first", () => {
    for (const [sentAt, vanished] of [
      [199, never],
      [200, 1]
    ] as const) {
      const path = discovering(large)
      path.handleAcknowledged(0, 0, large)
      for (let i = 1; i <= 3; i++) path.handleLost(200, i, large, 100)
      path.handleAcknowledged(300, 9, small)
      path.handleLost(400, 4, large, sentAt)
      assert.strictEqual(path.takeVanished(), vanished)
    }
  })

  it("needs a small flight that was sent after the first large one vanished", () => {
    const path = discovering(large)
    path.handleAcknowledged(0, 0, large)
    for (let i = 2; i <= 4; i++) path.handleLost(200, i, large, 100)
    path.handleAcknowledged(300, 1, small)
    path.handleLost(400, 5, large, 250)
    assert.strictEqual(path.takeVanished(), never)
  })

  it("counts anew when any large flight arrives between or after them, however late", () => {
    for (const arrived of [2, 4]) {
      const path = discovering(large)
      path.handleAcknowledged(0, 0, large)
      for (const i of [1, 3]) path.handleLost(200, i, large, 100)
      path.handleAcknowledged(300, 9, small)
      path.handleAcknowledged(310, arrived, large)
      for (const i of [5, 6, 7]) path.handleLost(400, i, large, 250)
      assert.strictEqual(path.takeVanished(), never, `${arrived} arrived`)
    }
  })

  it("is not the loss of large flights that were sent before one that arrived", () => {
    const path = discovering(large)
    path.handleAcknowledged(100, 50, large)
    for (const i of [1, 2, 3]) path.handleLost(200, i, large, 90)
    path.handleAcknowledged(300, 9, small)
    for (const i of [10, 11, 12]) path.handleLost(400, i, large, 250)
    assert.strictEqual(path.takeVanished(), never)
  })

  it("is never the loss of small flights, nor of probes of the path", () => {
    const path = discovering(small)
    path.handleRoundTrip(0)
    for (let i = 0; i < 100; i++) {
      path.handleProbeSent(i * second, 3 * i)
      path.handleLost(i * second, 3 * i, large, i * second)
      path.handleLost(i * second, 3 * i + 1, small, i * second)
      path.handleAcknowledged(i * second, 3 * i + 2, small)
      assert.strictEqual(path.takeVanished(), never)
    }
  })

  it("begins the search again: a probe after 1 s, and three more", () => {
    const path = discovering(large)
    rounds(path, 3, 1)
    let now = path.probeAt
    const waits: Array<Micros> = []
    for (let number = 100; number < 104; number++) {
      path.handleProbeSent(now, number)
      path.handleLost(now, number, large, now)
      waits.push(path.probeAt - now)
      now = path.probeAt
    }
    assert.deepStrictEqual(waits, [second, second, second, 10 * minute])
  })
})

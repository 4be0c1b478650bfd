/**
 * Senders whose address changes under them (spec §13): ten thousand times, every 300 ms in the middle of a transfer, to
 * another IP, while answers are lost. PURE_LINK_REBINDINGS changes how many times.
 */
import { assert, describe, it } from "@effect/vitest"
import { Input, Inputs, LinkNode, Output } from "@pure-link/link"
import type { ReceiverFaults } from "@pure-link/receiver"
import { makeMemoMemory } from "@pure-link/store"
import { VirtualNetwork } from "@pure-link/virtual-net"
import { type Address, amplificationLimit, formatAddress, type Micros } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import { Device, Hub, type HubOptions, keysOf, MachineWorld, millisecond, second } from "./machines.ts"
import { appendSizes, device, deviceAddress, hub, outbox, play, readings, toHub } from "./nodes.ts"
import { Process } from "./process.ts"
import { type Reachable, reachableFrom } from "./reachable.ts"
import { alike } from "../world/record.ts"

const rebindings = Number(process.env["PURE_LINK_REBINDINGS"] ?? 10_000)

describe(`${rebindings} rebindings, a third of them never answered`, () => {
  it("leave tables and timers as they were", () => {
    const seed = 21
    const figures = play(
      { seed, link: { delayMicros: 10 * millisecond } },
      Effect.gen(function* () {
        const network = yield* VirtualNetwork
        const receiving = yield* Process.make
        const sending = yield* Process.make
        const unheard = (port: number): boolean => port % 3 === 0
        network.sieve = (_, from, to) => from.host === "hub" && unheard(to.port)
        return yield* Effect.gen(function* () {
          yield* Input.open(readings)
          const { seam } = yield* Inputs
          const hubNode = yield* LinkNode
          return yield* Effect.gen(function* () {
            const output = yield* Output.open(readings, { source: "device", peer: toHub })
            const shots: Array<{ readonly tables: Reachable; readonly timers: number; readonly heap: number }> = []
            const shoot = () =>
              shots.push({
                tables: reachableFrom(seam.machine),
                timers: sending.timers + receiving.timers,
                heap: process.memoryUsage().heapUsed
              })
            for (let i = 1; i <= rebindings; i++) {
              network.rebind(deviceAddress, { host: "device", port: 10_000 + i })
              yield* appendSizes(output, i, [61])
              yield* sending.beside(Effect.sleep(unheard(10_000 + i) ? 150 : 45))
              if (i === rebindings / 10 || i === rebindings) shoot()
            }
            network.sieve = undefined
            yield* output.drained
            yield* sending.beside(Effect.sleep(20_000))
            shoot()
            const { receiver } = yield* hubNode.counters
            return {
              shots,
              receiver: receiver!,
              most: { sending: sending.mostTimers, receiving: receiving.mostTimers }
            }
          }).pipe(
            Effect.scoped,
            Effect.provide([device(seed, { process: sending }), outbox(seed, "device")]),
            sending.run
          )
        }).pipe(Effect.scoped, Effect.provide(hub(seed, {}, { node: { process: receiving } })), receiving.run)
      })
    )
    const [early, late, end] = figures.shots
    const { pathsChallenged, pathsValidated, pathsGivenUp } = figures.receiver
    const told =
      `${rebindings} rebindings: ${pathsChallenged} challenges, ${pathsValidated} validated, ${pathsGivenUp} given up; ` +
      `the receiver holds ${early!.tables.objects} objects and ${early!.tables.bytes} B after a tenth, ` +
      `${late!.tables.objects} and ${late!.tables.bytes} B after all, ${end!.tables.objects} and ${end!.tables.bytes} B ` +
      `at rest; timers ${early!.timers}, ${late!.timers}, ${end!.timers}, at most ${figures.most.sending} and ` +
      `${figures.most.receiving} at once; heap ${figures.shots.map(({ heap }) => Math.round(heap / 2 ** 20)).join(", ")} MiB`
    console.log(told)
    assert.isAtLeast(pathsChallenged!, rebindings * 0.6, told)
    assert.isAtLeast(pathsValidated!, rebindings * 0.6, told)
    for (const shot of [late!, end!]) {
      assert.isAtMost(shot.tables.objects, early!.tables.objects * 1.1, told)
      assert.isAtMost(shot.tables.bytes, early!.tables.bytes * 1.1, told)
      assert.isAtMost(shot.timers, early!.timers + 2, told)
    }
    assert.isAtMost(figures.most.sending + figures.most.receiving, 12, told)
  })
})

const deviceKeys = keysOf(501)
const hubKeys = keysOf(502)
const hubAddress: Address = { host: "hub", port: 4_600 }
const roundTrip: Micros = 100 * millisecond

/** What came from each address and went to it, as the hub sees it; and the most that went to one not yet validated. */
const worldOf = (seed: number, options: Pick<HubOptions, "streamBytes" | "faults"> = {}) => {
  const world = new MachineWorld(seed, { delayMicros: roundTrip / 2 })
  world.network.bottleneck("line", { rateBitsPerSecond: 5e6, queueBytes: 64_000 })
  const hub = new Hub(world, {
    identity: hubKeys,
    address: hubAddress,
    ...options,
    peers: [{ publicKey: deviceKeys.publicKey, sources: "any" }]
  })
  hub.start(makeMemoMemory().memo)
  const device = new Device(world, {
    identity: deviceKeys,
    hub: { publicKey: hubKeys.publicKey, address: hubAddress },
    source: "device",
    address: { host: "device", port: 4_000 }
  })
  world.network.configure("device", "hub", { bottleneck: "line" })
  return { world, hub, device }
}

describe("a rebinding in the middle of a transfer", () => {
  const records = 4_000
  /** How long a transfer takes whose sender moves to the nth address every so often. */
  const transfer = (seed: number, every: Micros, addressOf: (n: number) => Address) => {
    const { world, hub, device } = worldOf(seed)
    let moves = 0
    const move = () => {
      const outside = addressOf(++moves)
      world.network.configure(outside.host, "hub", { bottleneck: "line" })
      world.network.rebind(device.port.local, outside)
      if (device.stored.n < records) world.network.at(world.now + every, move)
    }
    if (every < Infinity) world.network.at(every, move)
    device.append(alike(records, 1_013))
    world.until("the transfer", () => device.stored.n === records, 300 * second)
    const { pathsChallenged, pathsValidated } = hub.machine.counters
    return {
      micros: device.stored.at,
      moves,
      pathsChallenged,
      pathsValidated,
      moved: device.link.counters.pathsChanged
    }
  }

  it("does not starve it", () => {
    const seed = 1
    const still = transfer(seed, Infinity, () => hubAddress)
    const ports = transfer(seed, 300 * millisecond, (n) => ({ host: "device", port: 10_000 + n }))
    const hosts = transfer(seed, 3 * second, (n) => ({ host: `device-${n}`, port: 4_000 }))
    const told =
      `rebinding at RTT 100, seed ${seed}: ${(still.micros / second).toFixed(2)} s without; another port every 300 ms ` +
      `(${ports.moves} times, ${ports.pathsValidated} validated): goodput ${(still.micros / ports.micros).toFixed(2)} of ` +
      `that; another IP every 3 s (${hosts.moves} times, ${hosts.moved} noticed): ${(still.micros / hosts.micros).toFixed(2)}`
    console.log(told)
    assert.isAtLeast(ports.moves, 10, told)
    assert.strictEqual(ports.moved, 0, told)
    assert.isAtLeast(still.micros / ports.micros, 0.5, told)
    assert.isAtLeast(hosts.moved, 1, told)
    assert.isAtLeast(still.micros / hosts.micros, 0.5, told)
  })
})

describe("a receiver that may send no more to an address", () => {
  /**
   * The inbox is slow, so that a sender out of credit only asks, from a new address and with packets of 47 B, a third of
   * what an answer with hundreds of ranges takes; and the first answers to that address are lost as well.
   */
  const waits = (seed: number, lost: number, isNew: boolean): Micros => {
    const { world, hub, device } = worldOf(seed, { streamBytes: 100_000 })
    if (!isNew) {
      world.network.configureBoth("device", "hub", { loss: 0.3 })
      hub.commitMicros = 5 * second
      device.append(alike(150, 1_013))
      world.pass(4 * second + seed * 53 * millisecond)
    } else {
      device.append(alike(1 + (seed % 3), 61))
      world.pass((seed * 37 * millisecond) % (90 * millisecond))
    }
    const outside: Address = { host: "elsewhere", port: 5_000 }
    world.network.rebind(device.port.local, outside)
    let left = lost
    world.network.sieve = (_, from, to) => from.host === "hub" && to.host === outside.host && left-- > 0
    const movedAt = world.now
    const n = device.stored.n
    world.until("STORED", () => device.stored.n > n, 60 * second)
    return device.stored.at - movedAt
  }

  it.for([0, 1, 2, 4, 8])("is not waited for by a sender that waits itself (%i answers lost)", (lost) => {
    const most = { new: 0, live: 0 }
    for (let seed = 1; seed <= 4; seed++) {
      most.live = Math.max(most.live, waits(seed, lost, false))
      most.new = Math.max(most.new, waits(seed, lost, true))
    }
    const told =
      `${lost} answers to a new address lost: STORED after at most ${(most.live / second).toFixed(2)} s for a live run ` +
      `out of credit, ${(most.new / second).toFixed(2)} s for a new one`
    console.log(told)
    assert.isAtMost(most.live, (2 + 5 + 2.8 * lost) * second, told)
    assert.isAtMost(most.new, (2 + 2.8 * lost) * second, told)
  })
})

/** Which packets an attacker races. */
interface Attack {
  readonly from: Micros
  readonly until: Micros
  readonly packets?: number
}

describe("a spoofed source address", () => {
  /** An attacker nearer to the hub copies packets and sends them first, from an address that answers nothing. */
  const race = (
    seed: number,
    { from, packets = Infinity, until }: Attack,
    spoofedOf: (n: number) => Address,
    faults: ReceiverFaults = {}
  ) => {
    const { world, hub, device } = worldOf(seed, { faults })
    const traffic = new Map<string, { from: number; to: number }>()
    const of = (address: Address) => {
      const key = formatAddress(address)
      if (!traffic.has(key)) traffic.set(key, { from: 0, to: 0 })
      return traffic.get(key)!
    }
    let raced = 0
    let worst = 0
    const records = 1_200
    world.network.tap(({ at, bytes, fate, from: source, to }) => {
      if (fate === "sent" && source.host === "device" && at >= from && at < until && raced < packets) {
        const spoofed = spoofedOf(++raced)
        world.network.configure(spoofed.host, "hub", { delayMicros: 5 * millisecond })
        world.network.inject(bytes, spoofed, hubAddress)
      }
      if (fate === "arrived" && source.host.startsWith("spoofed")) of(source).from += bytes.length
      if (fate === "sent" && to.host.startsWith("spoofed")) {
        const known = of(to)
        known.to += bytes.length
        worst = Math.max(worst, known.to / known.from)
      }
    })
    device.append(alike(records, 1_013))
    world.until("the transfer", () => device.stored.n === records, 120 * second)
    const { pathsValidated, pathsChallenged } = hub.machine.counters
    const bytes = [...traffic.values()].reduce((sum, { to }) => sum + to, 0)
    return { micros: device.stored.at, raced, worst, bytes, pathsValidated, pathsChallenged }
  }

  const one = () => ({ host: "spoofed", port: 1 })
  const still = race(31, { from: 0, until: 0 }, one)
  const each = (n: number) => ({ host: "spoofed", port: n })
  const attacks: ReadonlyArray<readonly [string, Attack, (n: number) => Address]> = [
    ["one packet", { from: 0.6 * second, until: Infinity, packets: 1 }, one],
    ["every packet of a second, from one address", { from: 0.6 * second, until: 1.6 * second }, one],
    ["every packet, each from another address", { from: 0.6 * second, until: Infinity }, each],
    ["every packet of the first two seconds of a run", { from: 0, until: 2 * second }, one]
  ]

  it.for(attacks)(
    "gets at most 3 times what it sent, and the true one its answers: %s",
    ([name, attack, spoofedOf]) => {
      const figures = race(31, attack, spoofedOf)
      const told =
        `spoofed source, ${name}: ${figures.raced} packets raced, ${figures.bytes} B went there, at most ` +
        `${figures.worst.toFixed(2)} of what came; ${figures.pathsChallenged} challenges, ${figures.pathsValidated} ` +
        `validated; the transfer took ${(figures.micros / second).toFixed(2)} s, ${(still.micros / second).toFixed(2)} s without`
      console.log(told)
      assert.isAtLeast(figures.raced, 1, told)
      assert.isAtMost(figures.worst, amplificationLimit, told)
      assert.isAtMost(figures.micros, still.micros + 5 * second, told)
    }
  )

  it("gets more when that fault is on, which these tests would notice", () => {
    const { worst } = race(31, attacks[0]![1], one, { answerWithoutLimit: true })
    assert.isAbove(worst, amplificationLimit)
  })
})

/**
 * A receiver that is killed and started again at RTT 100, with its memo and without (spec §12): how long from the first
 * packet that reaches the new process to the first answer that leaves it with a raised n, and what it costs.
 */
import { assert, describe, it } from "@effect/vitest"
import { makeMemoMemory } from "@pure-link/store"
import type { Micros, RecordNumber } from "@pure-link/wire"
import { Chance } from "../world/chance.ts"
import { CountingSuite, Device, Hub, keysOf, MachineWorld, millisecond, second } from "./machines.ts"

const oneWay: Micros = 50 * millisecond
const roundTrip: Micros = 2 * oneWay
/** What the issue grants beyond the round trips. */
const grace: Micros = 2 * millisecond
const hour: Micros = 3_600 * second

const deviceKeys = keysOf(201)
const hubKeys = keysOf(202)
const hubAddress = { host: "hub", port: 4_600 }
const peers = [{ publicKey: deviceKeys.publicKey, sources: "any" as const }]

class RestartWorld extends MachineWorld {
  readonly chance: Chance
  readonly suite = new CountingSuite()
  memo = makeMemoMemory()
  readonly hub: Hub
  readonly devices: ReadonlyArray<Device>

  constructor(seed: number, outputs: number, streamBytes?: number) {
    super(seed, { delayMicros: oneWay })
    this.chance = new Chance(seed)
    const { suite } = this
    this.hub = new Hub(this, {
      identity: hubKeys,
      address: hubAddress,
      peers,
      suite,
      ...(streamBytes === undefined ? {} : { streamBytes })
    })
    this.hub.start(this.memo.memo)
    this.devices = Array.from(
      { length: outputs },
      (_, i) =>
        new Device(this, {
          identity: deviceKeys,
          hub: { publicKey: hubKeys.publicKey, address: hubAddress },
          source: `device-${i}`,
          address: { host: "device", port: 4_000 + i }
        })
    )
  }

  /** The process dies and is started again after a while, with its memo or with none; nobody else computes meanwhile. */
  restart(withMemo: boolean): void {
    this.hub.die()
    this.pass(this.chance.between(0, 400 * millisecond))
    this.memo = withMemo ? this.memo.copy() : makeMemoMemory()
    this.hub.start(this.memo.memo)
  }
}

interface Figures {
  /** From the first packet that reaches the new process to the first answer with a raised n that leaves it. */
  readonly micros: Micros
  readonly lost: number
  readonly agreements: number
}

/** Waits until every output heard of records that were not stored when the new process began. */
const recover = (world: RestartWorld): Figures => {
  const { devices, hub } = world
  const raised = new Map<Device, Micros>()
  for (const device of devices) {
    const before: RecordNumber = hub.inbox.cursor({ source: device.options.source, input: "" })?.n ?? 0
    device.onStored = (n, at) => {
      if (n > before && !raised.has(device)) raised.set(device, at - oneWay)
    }
  }
  world.until("recovery", () => raised.size === devices.length, 30 * second)
  const first = devices.map((device) => raised.get(device)! - hub.firstHeardBy.get(device.options.address.port)!)
  const { keyAgreements, lostSent } = hub.machine.counters
  return { micros: Math.max(...first), lost: lostSent, agreements: keyAgreements }
}

/** When the process dies, told by what its sender is doing. */
const moments: Record<string, (seed: number, withMemo: boolean) => Figures> = {
  "an idle sender that sleeps, then wakes": (seed, withMemo) => {
    const world = new RestartWorld(seed, 1)
    const device = world.devices[0]!
    device.append(sizesOf(world, 50))
    world.until("idle", () => device.stored.n === 50, 10 * second)
    world.pass(world.chance.between(0, 20 * second))
    world.restart(withMemo)
    world.pass(world.chance.between(0, 30 * second))
    device.append(sizesOf(world, world.chance.between(1, 30)))
    return recover(world)
  },
  "a full window": (seed, withMemo) => {
    const world = new RestartWorld(seed, 1)
    world.devices[0]!.append(sizesOf(world, 2_500))
    world.pass(duringTransfer(world))
    world.restart(withMemo)
    return recover(world)
  },
  "a sender blocked by credit": (seed, withMemo) => {
    const world = new RestartWorld(seed, 1, 65_536)
    const device = world.devices[0]!
    world.hub.commitMicros = Infinity
    device.append(sizesOf(world, 1_000))
    world.pass(2 * second + world.chance.between(0, 3 * second))
    assert.isAtMost(device.link.status.inFlight, 47, "the sender waits for credit, and asks")
    world.hub.commitMicros = undefined
    world.restart(withMemo)
    return recover(world)
  },
  "a sender of small records": (seed, withMemo) => {
    const world = new RestartWorld(seed, 1)
    const device = world.devices[0]!
    const every = world.chance.between(1, 40)
    const append = () => {
      device.append([61])
      world.network.at(world.now + every * millisecond, append)
    }
    append()
    world.pass(second + world.chance.between(0, second))
    world.restart(withMemo)
    return recover(world)
  }
}

/** Windows are full and double each round trip. */
const duringTransfer = (world: RestartWorld): Micros => 250 * millisecond + world.chance.between(0, 300 * millisecond)

const sizesOf = (world: RestartWorld, count: number): ReadonlyArray<number> =>
  Array.from({ length: count }, () => world.chance.pick([61, 300, 1_013]))

const seeds = Array.from({ length: 20 }, (_, i) => i + 1)
const inMillis = (micros: Micros): string => `${(micros / millisecond).toFixed(1)} ms`

describe("a receiver that was killed", () => {
  for (const [moment, play] of Object.entries(moments)) {
    for (const withMemo of [true, false]) {
      it(`goes on after ${withMemo ? "one round trip with" : "two round trips without"} its memo: ${moment}`, () => {
        const bar = (withMemo ? 1 : 2) * roundTrip + grace
        const all = seeds.map((seed) => {
          const figures = play(seed, withMemo)
          const told = `seed ${seed}: ${JSON.stringify(figures)}`
          assert.isAtMost(figures.micros, bar, told)
          if (withMemo) assert.deepInclude(figures, { lost: 0, agreements: 0 }, told)
          return figures
        })
        const most = (of: (figures: Figures) => number) => Math.max(...all.map(of))
        console.log(
          `restart ${withMemo ? "with" : "without"} memo, ${moment}, ${seeds.length} seeds: at most ` +
            `${inMillis(most(({ micros }) => micros))} (bar ${inMillis(bar)}), ${most(({ lost }) => lost)} LOST, ` +
            `${most(({ agreements }) => agreements)} X25519`
        )
      })
    }
  }

  it("serves three outputs of one node at once with its memo", () => {
    const few = seeds.slice(0, 5)
    const all = few.map((seed) => {
      const world = new RestartWorld(seed, 3)
      for (const device of world.devices) device.append(sizesOf(world, 1_500))
      world.pass(duringTransfer(world))
      const { agreements } = world.suite
      world.restart(true)
      const figures = recover(world)
      const told = `seed ${seed}: ${JSON.stringify(figures)}`
      assert.isAtMost(figures.micros, roundTrip + grace, told)
      assert.deepInclude(figures, { lost: 0, agreements: 0 }, told)
      assert.strictEqual(world.suite.agreements, agreements, told)
      return figures
    })
    const micros = Math.max(...all.map(({ micros }) => micros))
    console.log(`restart with memo, three outputs, ${few.length} seeds: at most ${inMillis(micros)}, 0 LOST, 0 X25519`)
  })
})

describe("a device that sleeps", () => {
  const sleeps = [20 / 60, 3, 30].map((hours) => hours * hour)
  it.for([
    ["both processes alive", false],
    ["the receiver restarted with its memo meanwhile", true]
  ] as const)("wakes in one round trip: %s", ([name, isRestarted]) => {
    const all = sleeps.flatMap((sleep) =>
      seeds.slice(0, 5).map((seed) => {
        const world = new RestartWorld(seed, 1)
        const device = world.devices[0]!
        device.append(sizesOf(world, 50))
        world.until("idle", () => device.stored.n === 50, 10 * second)
        const nap = world.chance.between(0, hour)
        world.pass(sleep - nap)
        if (isRestarted) world.restart(true)
        world.pass(nap)
        const wokeAt = world.now
        device.append(sizesOf(world, 3))
        world.until("STORED", () => device.stored.n === 53, 10 * second)
        const micros = device.stored.at - wokeAt
        assert.isAtMost(micros, roundTrip + 2 * grace, `seed ${seed}, after ${sleep / hour} h`)
        return micros
      })
    )
    const hours = sleeps.map((sleep) => (sleep / hour).toFixed(1)).join(", ")
    console.log(`woken after ${hours} h, ${name}: STORED after at most ${inMillis(Math.max(...all))}`)
  })
})

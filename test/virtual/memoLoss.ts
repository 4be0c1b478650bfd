/**
 * A receiver that lost its memo meets all its peers at once: live runs, each of which appends a record just after the
 * receiver was started with nothing (spec §12.2, §12.3, §12.5).
 */
import { keyPair, type KeyPair, type Pair, seededEntropy, staticSecret } from "@pure-link/keys"
import { makeMemoMemory } from "@pure-link/store"
import type { Micros } from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import { Chance } from "../world/chance.ts"
import { Device, Hub, MachineWorld, millisecond, second } from "./machines.ts"
import { quickSuite } from "../world/quickSuite.ts"

const roundTrip: Micros = 40 * millisecond
const keysOf = (seed: number): KeyPair => keyPair(quickSuite, seededEntropy(seed))
const hubKeys = keysOf(302)
const hubAddress = { host: "hub", port: 4_600 }

export interface MemoLoss {
  readonly peers: number
  /** How many of them had their record stored again, and after how long the last and the median one. */
  readonly stored: number
  readonly lastMicros: Micros
  readonly medianMicros: Micros
  /** LOST sent in each second after the restart, and causes that drew none. */
  readonly lostPerSecond: ReadonlyArray<number>
  readonly lostLimited: number
  readonly keyAgreements: number
  /** Packets dropped for want of tokens. */
  readonly keyDerivationsLimited: number
  /** Seconds of wall time: until all were live, and from the restart on. */
  readonly setUpSeconds: number
  readonly seconds: number
}

/** A world in which every device has stored its first record. */
const liveWorld = (count: number, seed: number) => {
  const world = new MachineWorld(seed, { delayMicros: roundTrip / 2 })
  const chance = new Chance(seed)
  const identities: ReadonlyArray<KeyPair> = Array.from({ length: count }, (_, i) => keysOf(10_000 + i))
  const hub = new Hub(world, {
    identity: hubKeys,
    address: hubAddress,
    suite: quickSuite,
    peers: identities.map(({ publicKey }) => ({ publicKey, sources: "any" as const }))
  })
  hub.start(makeMemoMemory().memo)
  const devices = identities.map((identity, i) => {
    const pair: Pair = { sender: identity.publicKey, receiver: hubKeys.publicKey }
    return new Device(world, {
      identity,
      suite: quickSuite,
      staticSecret: staticSecret(quickSuite, identity.privateKey, hubKeys.publicKey, pair)!,
      hub: { publicKey: hubKeys.publicKey, address: hubAddress },
      source: `device-${i}`,
      address: { host: "devices", port: i + 1 },
      flights: 256
    })
  })
  for (const device of devices) world.network.at(chance.between(0, 4 * second), () => device.append([61]))
  world.until("first records", () => hub.inbox.recordsStored === count, 60 * second)
  world.pass(second)
  assert(devices.every((device) => device.stored.n === 1))
  return { world, chance, hub, devices }
}

export const memoLoss = (count: number, seed: number, wallClock: () => number): MemoLoss => {
  const startedAt = wallClock()
  const { world, chance, hub, devices } = liveWorld(count, seed)
  const liveAt = wallClock()
  hub.die()
  hub.start(makeMemoMemory().memo)
  const restartedAt = world.now
  const storedAt: Array<Micros> = []
  const lostPerSecond: Array<number> = []
  for (const device of devices) {
    device.onStored = (_, at) => storedAt.push(at - restartedAt)
    world.network.at(restartedAt + chance.between(0, 100 * millisecond), () => device.append([61]))
  }
  while (storedAt.length < count && world.now < restartedAt + 30 * second) {
    const before = hub.machine.counters.lostSent
    world.pass(second)
    lostPerSecond.push(hub.machine.counters.lostSent - before)
  }
  storedAt.sort((a, b) => a - b)
  const { keyAgreements, lostLimited, keyDerivationsLimited } = hub.machine.counters
  return {
    peers: count,
    stored: storedAt.length,
    lastMicros: storedAt.at(-1) ?? 0,
    medianMicros: storedAt[Math.floor(count / 2)] ?? 0,
    lostPerSecond,
    lostLimited,
    keyAgreements,
    keyDerivationsLimited,
    setUpSeconds: (liveAt - startedAt) / 1_000,
    seconds: (wallClock() - liveAt) / 1_000
  }
}

export const describeMemoLoss = (loss: MemoLoss): string =>
  `memo loss, ${loss.peers} peers: ${loss.stored} stored again after ${(loss.lastMicros / second).toFixed(3)} s (half ` +
  `after ${(loss.medianMicros / second).toFixed(3)} s); LOST per second ${loss.lostPerSecond.join(", ")}, ` +
  `${loss.lostLimited} withheld; ${loss.keyAgreements} X25519, ${loss.keyDerivationsLimited} packets dropped for want ` +
  `of tokens; wall time ${loss.setUpSeconds.toFixed(1)} s to set up, ${loss.seconds.toFixed(1)} s for the rest; ` +
  `${(process.memoryUsage().heapUsed / 2 ** 20).toFixed(0)} MiB of heap, ` +
  `${(process.memoryUsage().arrayBuffers / 2 ** 20).toFixed(0)} MiB of buffers`

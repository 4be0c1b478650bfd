/**
 * Epochs that change all the time (spec §7): no honest packet fails to open, nothing is lost by it, and what was erased
 * is gone.
 */
import { assert, describe, it } from "@effect/vitest"
import { dataKey, epochSecret, type EpochLimits, nodeSuite, type Pair, staticSecret } from "@pure-link/keys"
import { makeMemoMemory } from "@pure-link/store"
import { type Epoch, epochBitsOf, Kind, type Micros, PacketHeader } from "@pure-link/wire"
import { Device, Hub, keysOf, MachineWorld, millisecond, second } from "./machines.ts"
import { SpySuite } from "../world/spySuite.ts"
import { alike } from "../world/record.ts"

const deviceKeys = keysOf(401)
const hubKeys = keysOf(402)
const hubAddress = { host: "hub", port: 4_600 }
const hour: Micros = 3_600 * second

interface Options {
  readonly epochLimits?: Partial<EpochLimits>
  readonly delay: Micros
  readonly suite?: SpySuite
}

const worldOf = (seed: number, { delay, epochLimits, suite }: Options) => {
  const world = new MachineWorld(seed, { delayMicros: delay })
  const common = { ...(epochLimits && { epochLimits }), ...(suite && { suite }) }
  const { memo } = makeMemoMemory()
  const hub = new Hub(world, {
    identity: hubKeys,
    address: hubAddress,
    peers: [{ publicKey: deviceKeys.publicKey, sources: "any" }],
    ...common
  })
  hub.start(memo)
  const device = new Device(world, {
    identity: deviceKeys,
    hub: { publicKey: hubKeys.publicKey, address: hubAddress },
    source: "device",
    address: { host: "device", port: 4_000 },
    ...common
  })
  return { world, hub, device, memo }
}

describe("epochs that change every 100 packets", () => {
  /** A long transfer while a quarter of all datagrams, both ways, is overtaken by what was sent up to 20 ms later. */
  const transfer = (seed: number, epochLimits: Partial<EpochLimits>) => {
    const { world, hub, device } = worldOf(seed, { delay: 10 * millisecond, epochLimits })
    world.network.bottleneck("line", { rateBitsPerSecond: 3e6, queueBytes: 16_000 })
    world.network.configureBoth("device", "hub", { reorder: 0.25, reorderMicros: 20 * millisecond })
    world.network.configure("device", "hub", { bottleneck: "line" })
    const records = 4_000
    device.append(alike(records, 1_013))
    world.until("the transfer", () => device.stored.n === records, 120 * second)
    const reordered = world.network.counters("device", "hub")
    return {
      micros: device.stored.at,
      epochs: device.link.status.epoch,
      reordered: reordered.reordered / reordered.sent,
      packets: device.link.counters.packetsSent,
      dropped: hub.machine.counters.dropped,
      forged: hub.machine.counters.forgedPackets,
      unopened: device.link.counters.unopened,
      silentRecoveries: device.link.counters.silentRecoveries
    }
  }

  it.for([1, 2])("fail no honest packet while a quarter is reordered, and cost no goodput (seed %i)", (seed) => {
    const rotating = transfer(seed, { packets: 100 })
    const still = transfer(seed, {})
    const ratio = still.micros / rotating.micros
    const failures =
      rotating.dropped["not authentic"] + rotating.dropped["unknown run"] + rotating.dropped["expired epoch"]
    const figures =
      `epochs, seed ${seed}: ${rotating.epochs} epochs in ${rotating.packets} packets, ` +
      `${(100 * rotating.reordered).toFixed(1)} % reordered, ${failures} data packets and ${rotating.unopened} answers ` +
      `that did not open; goodput ${ratio.toFixed(3)} of that without rotation`
    console.log(figures)
    assert.strictEqual(failures + rotating.forged + rotating.unopened + rotating.silentRecoveries, 0, figures)
    assert.isAtLeast(rotating.epochs, rotating.packets / 150, figures)
    assert.isAtLeast(rotating.reordered, 0.2, figures)
    assert.isAtLeast(ratio, 0.97, figures)
  })
})

describe("an epoch that is over", () => {
  it("is closed to whoever recorded everything and then steals every key that is left", () => {
    const suite = new SpySuite()
    const { world, device, hub, memo } = worldOf(1, { delay: 10 * millisecond, epochLimits: { packets: 20 }, suite })
    const recorded: Array<Uint8Array> = []
    world.network.tap(({ bytes, fate, from }) => {
      if (fate === "sent" && from.host === "device") recorded.push(bytes.slice())
    })
    while (device.link.status.epoch < 4) {
      device.append(alike(10, 500))
      world.pass(50 * millisecond)
      assert.isBelow(world.now, 60 * second)
    }
    world.pass(12 * second)
    const { epoch: last } = device.link.status
    const pair: Pair = { sender: deviceKeys.publicKey, receiver: hubKeys.publicKey }
    const { run } = device.link
    const header = new PacketHeader()

    /** How many of the recorded packets of an epoch open under a secret. */
    const opened = (secret: Uint8Array, epoch: Epoch): number => {
      const key = dataKey(nodeSuite, secret, pair, run, epoch)
      return recorded.filter((packet) => {
        const bytes = packet.slice()
        header.read(bytes, 0, bytes.length)
        const number = recorded.indexOf(packet)
        if (header.epochBits !== epochBitsOf(epoch)) return false
        if (header.kind === Kind.longData) assert.strictEqual(header.number, number)
        return key.open(bytes, 0, header.length, bytes.length, number)
      }).length
    }

    const zero = staticSecret(nodeSuite, deviceKeys.privateKey, hubKeys.publicKey, pair)!
    const remembered = memo.recall(deviceKeys.publicKey)!.runs.find((known) => known.run === run)!
    assert.strictEqual(remembered.current!.epoch, last)
    const stolen = [zero, remembered.current!.secret, ...(remembered.candidate ? [remembered.candidate.secret] : [])]
    assert.isAbove(opened(remembered.current!.secret, last), 0, "the present epoch is open to a thief")
    assert.isAbove(opened(zero, 0), 0, "and so is epoch 0")

    // With the keys that were thrown away the same would work: the attack is a real one.
    const truth = suite.secretsOf("expand")
    const former = Array.from({ length: last - 1 }, (_, i) => i + 1)
    for (const epoch of former) {
      assert.isAbove(Math.max(...truth.map(({ copy }) => opened(copy, epoch))), 0, `epoch ${epoch}`)
    }

    // What is left opens nothing: as it is, and put through the key schedule with every public key that ever travelled.
    let tried = 0
    const publicKeys = suite.publicKeys
    for (const epoch of former) {
      for (const secret of stolen) assert.strictEqual(opened(secret, epoch), 0)
      for (const own of [deviceKeys, hubKeys]) {
        for (const peerPublic of publicKeys) {
          for (const other of publicKeys) {
            for (const carrierSecret of stolen) {
              for (const [offerKey, acceptKey] of [
                [peerPublic, other],
                [other, peerPublic]
              ] as const) {
                const from = {
                  ownPrivate: own.privateKey,
                  peerPublic,
                  carrierSecret,
                  pair,
                  run,
                  epoch,
                  offerKey,
                  acceptKey
                }
                const derived = epochSecret(nodeSuite, from)
                if (derived === undefined) continue
                tried++
                assert.isFalse(truth.some(({ copy }) => Buffer.from(copy).equals(derived)))
              }
            }
          }
        }
      }
    }

    // And the buffers that held the former secrets and all private keys are zeros.
    const kept = truth.filter(({ buffer }) => buffer.some((byte) => byte !== 0)).map(({ copy }) => copy)
    const allowed = [zero, remembered.current!.secret, ...(remembered.candidate ? [remembered.candidate.secret] : [])]
    for (const copy of kept) {
      assert.isTrue(
        allowed.some((secret) => Buffer.from(secret).equals(copy)) ||
          former.every((epoch) => opened(copy, epoch) === 0),
        "the secret of a former epoch is still in memory"
      )
    }
    const privateKeys = suite.secretsOf("private")
    const alive = privateKeys.filter(({ buffer }) => buffer.some((byte) => byte !== 0)).length
    console.log(
      `erased epochs: ${last} epochs, ${recorded.length} packets recorded, ${tried} derivations with stolen keys open ` +
        `none of a former epoch; ${privateKeys.length - alive} of ${privateKeys.length} ephemeral private keys are zeros`
    )
    assert.isAtMost(alive, 1, "at most an outstanding OFFER's key is alive")
    assert.isAbove(hub.machine.counters.packetsOpened, 0)
  })
})

describe("a device that sleeps longer than an epoch lives", () => {
  it.for([90 / 60, 3, 48])("wakes in one round trip with an OFFER, after %d h", (hours) => {
    const { world, device, hub } = worldOf(Math.ceil(hours), { delay: 50 * millisecond })
    device.append([61])
    world.until("the first record", () => device.stored.n === 1, 10 * second)
    world.pass(hours * hour)
    const { epoch } = device.link.status
    const at = world.now
    device.append([61])
    world.until("STORED", () => device.stored.n === 2, 10 * second)
    const stored = device.stored.at - at
    world.pass(300 * millisecond)
    const now = device.link.status.epoch
    const figures = `woken after ${hours} h: STORED after ${stored / millisecond} ms; epoch ${epoch}, then ${now}`
    console.log(figures)
    assert.isAtMost(stored, 102 * millisecond, figures)
    assert.isAbove(now, epoch, figures)
    assert.strictEqual(hub.machine.counters.lostSent, 0, figures)
  })
})

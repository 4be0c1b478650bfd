import { type Address, Kind, PacketHeader } from "@pure-link/wire"
import { replayer, type Sent } from "./network.ts"
import type { World } from "./world.ts"

/**
 * Someone on the path who sees every packet, holds no key, and injects what he likes from any address (spec §15.1):
 * damaged copies, copies that overtake the original from another place, late copies, packets with a live run's id and
 * made-up epochs, and LOST that was or was not sent.
 */
export class Attacker {
  #left: number
  readonly #world: World
  readonly #header = new PacketHeader()

  constructor(world: World) {
    this.#world = world
    this.#left = world.plan.attacks
    world.network.eavesdropper = (sent) => this.#see(sent)
  }

  /**
   * The receiver has just started: packets that look like those of its runs may draw LOST, and what came long ago may
   * look new.
   */
  greet(): void {
    const { chance, network, outputs, receiver, timeline } = this.#world
    if (this.#left <= 0) return
    for (const { link, node } of outputs) {
      const sent = network.runs.get(link.run) ?? []
      const last = sent.at(-1)
      if (last === undefined) continue
      for (const one of sent.slice(0, chance.between(0, 4)))
        this.#repeat(one, timeline.now + 1, replayer, receiver.address)
      for (let i = chance.between(0, 2); i > 0; i--) {
        const from = chance.pick([node.address, node.address, replayer])
        this.#forge(this.#makeUp(last), timeline.now + chance.between(1, 40_000), from, receiver.address)
      }
    }
  }

  #see(sent: Sent): void {
    const { chance, network, timeline } = this.#world
    const isLost = sent.bytes[0]! >> 6 === Kind.lost
    if (this.#left <= 0 || !(isLost || chance.happens(0.08))) return
    const soon = timeline.now + chance.between(1, 2 * this.#world.plan.weather.delay)
    const from = chance.pick([sent.from, sent.from, replayer, { host: replayer.host, port: chance.between(1, 9) }])
    const trick = chance.between(0, 9)
    if (trick < 3) this.#forge(this.#damage(sent), soon, from, sent.to)
    else if (trick < 6) this.#forge(this.#makeUp(sent), soon, from, sent.to)
    else if (trick < 8) this.#repeat(sent, timeline.now + 1, from)
    else this.#repeat(sent, timeline.now + chance.between(1, 3_000_000), from)
    const { lost } = network
    if (lost.length > 0 && chance.happens(0.1)) this.#repeat(chance.pick(lost), soon, from)
  }

  #repeat(sent: Sent, at: number, from: Address, to: Address = sent.to): void {
    const { network, tally } = this.#world
    this.#left -= 1
    tally.add(sent.bytes[0]! >> 6 === Kind.lost ? "world LOST repeated" : "world packets repeated")
    network.repeat(sent, at, from, to)
  }

  #forge(bytes: Uint8Array, at: number, from: Address, to: Address): void {
    const { network, tally } = this.#world
    this.#left -= 1
    tally.add(bytes[0]! >> 6 === Kind.lost ? "world LOST forged" : "world packets forged")
    network.forge(bytes, at, from, to)
  }

  /** A copy with some bytes changed, cut off, or added. */
  #damage(sent: Sent): Uint8Array {
    const { chance } = this.#world
    const length = chance.pick([0, 0, 0, -1, -7, 1, 20]) + sent.bytes.length
    const bytes = new Uint8Array(length)
    chance.fill(bytes)
    bytes.set(sent.bytes.subarray(0, length))
    bytes[chance.between(0, Math.min(length, chance.pick([30, 2_000])) - 1)]! ^= chance.between(1, 255)
    return bytes
  }

  /** A packet that looks like one of the same run, in an epoch and with a number made up, around anything. */
  #makeUp(sent: Sent): Uint8Array {
    const { chance } = this.#world
    const header = this.#header
    header.read(sent.bytes, 0, sent.bytes.length)
    const length = header.kind === Kind.lost ? sent.bytes.length : header.length + chance.between(16, 200)
    const bytes = new Uint8Array(length)
    chance.fill(bytes)
    bytes.set(sent.bytes.subarray(0, header.length))
    if (header.kind !== Kind.lost) bytes[0] = (bytes[0]! & 0xf0) | chance.between(0, 15)
    if (header.kind !== Kind.lost && chance.happens(0.5)) bytes[header.length - 1]! += chance.between(0, 255)
    return bytes
  }
}

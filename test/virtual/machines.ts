/**
 * Machines in virtual time without nodes around them: senders and a receiver at raw addresses of the virtual network,
 * with disks that outlive them. What takes an hour, or ten thousand peers, is a matter of seconds here.
 */
import { type CryptoSuite, type EpochLimits, type KeyPair, keyPair, nodeSuite, seededEntropy } from "@pure-link/keys"
import { Receiver, type ReceiverFaults } from "@pure-link/receiver"
import { type SenderEvent, SenderLink } from "@pure-link/sender"
import type { Trace } from "@pure-link/trace"
import { type LinkOptions, Network, Sim, type Station, type StationPort } from "@pure-link/virtual-net"
import {
  type Address,
  type Bytes,
  type Id64,
  largestDatagram,
  type Micros,
  type ReceiverMemo,
  type RecordNumber
} from "@pure-link/wire"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { InboxDisk, OutboxDisk } from "./disks.ts"

export const input = "readings"
export const shape: Id64 = 0x5245_4144_494e_4753n
export const millisecond: Micros = 1_000
export const second: Micros = 1_000_000

export class MachineWorld {
  readonly seed: number
  readonly network: Network
  readonly #sim = new Sim()
  #entropies = 0

  constructor(seed: number, link: Partial<LinkOptions> = {}) {
    this.seed = seed
    this.network = new Network({ seed, link }, this.#sim, Context.empty())
  }

  get now(): Micros {
    return this.#sim.now
  }

  /** Entropy that nobody else of this world draws from. */
  entropy() {
    return seededEntropy(this.seed * 1_000_003 + ++this.#entropies)
  }

  /** Lets this much time pass. */
  pass(micros: Micros): void {
    const exit = this.#sim.run(Effect.sleep(micros / 1_000), { micros: micros + 1 })
    if (Exit.isFailure(exit)) throw new Error(`world of seed ${this.seed}: ${String(exit.cause)}`)
  }

  /** Lets time pass until something holds, to the millisecond; it must hold within `most`. */
  until(what: string, holds: () => boolean, most: Micros): Micros {
    const start = this.now
    while (!holds()) {
      if (this.now - start > most) throw new Error(`world of seed ${this.seed}: no ${what} within ${most} µs`)
      this.pass(1_000)
    }
    return this.now - start
  }
}

export interface HubOptions {
  readonly identity: KeyPair
  readonly address: Address
  readonly peers: ReadonlyArray<{ readonly publicKey: Uint8Array; readonly sources: ReadonlyArray<string> | "any" }>
  readonly streamBytes?: Bytes
  readonly suite?: CryptoSuite
  readonly epochLimits?: Partial<EpochLimits>
  readonly faults?: ReceiverFaults
}

/** A receiving process on its machine; it may die and be started again, the inbox stays. */
export class Hub implements Station {
  readonly inbox = new InboxDisk()
  readonly options: HubOptions
  machine!: Receiver
  /** From handing a batch to the inbox until it is durable; the same instant if undefined. */
  commitMicros: Micros | undefined
  /** When the first datagram from each port reached the present process. */
  readonly firstHeardBy = new Map<number, Micros>()
  readonly #world: MachineWorld
  readonly #datagram = new Uint8Array(largestDatagram)
  #port: StationPort | undefined

  constructor(world: MachineWorld, options: HubOptions) {
    this.#world = world
    this.options = options
  }

  start(memo?: ReceiverMemo, trace?: Trace): void {
    const { address, epochLimits, faults, identity, peers, streamBytes, suite = nodeSuite } = this.options
    this.#port = this.#world.network.station(address, this)
    this.firstHeardBy.clear()
    this.machine = new Receiver({
      suite,
      entropy: this.#world.entropy(),
      identity,
      cursors: this.inbox,
      ...(memo && { memo }),
      ...(trace && { trace }),
      ...(streamBytes && { streamBytes }),
      ...(epochLimits && { epochLimits }),
      ...(faults && { faults })
    })
    for (const peer of peers) this.machine.allow(peer)
    this.machine.addInput(input, shape)
  }

  /** The process is gone with all it held; what comes meanwhile finds nobody. */
  die(): void {
    this.#port!.close()
    this.#port = undefined
  }

  arrive(now: Micros, bytes: Uint8Array, from: Address): void {
    if (!this.firstHeardBy.has(from.port)) this.firstHeardBy.set(from.port, now)
    this.machine.handleDatagram(now, bytes, 0, bytes.length, from)
    this.machine.endBatch(now)
    this.turn(now)
  }

  wake(now: Micros): void {
    this.machine.handleTimeout(now)
    this.turn(now)
  }

  turn(now: Micros): void {
    const { machine } = this
    const port = this.#port!
    while (machine.pollEvent() !== undefined);
    for (let intent = machine.pollStore(); intent !== undefined; intent = machine.pollStore()) {
      const stored = intent
      this.#world.network.at(now + (this.commitMicros ?? 0), () => {
        if (this.#port !== port) return
        const at = this.#world.now
        machine.handleStored(at, stored, this.inbox.commit(stored))
        this.turn(at)
      })
    }
    for (let length; (length = machine.pollTransmit(now, this.#datagram, 0)) > 0;) {
      port.send(this.#datagram.subarray(0, length), machine.target)
    }
    port.wakeAt(machine.deadline())
  }
}

export interface DeviceOptions {
  readonly identity: KeyPair
  readonly hub: { readonly publicKey: Uint8Array; readonly address: Address }
  readonly source: string
  readonly address: Address
  readonly staticSecret?: Uint8Array
  readonly suite?: CryptoSuite
  readonly epochLimits?: Partial<EpochLimits>
  readonly flights?: number
  readonly trace?: Trace
}

/** Where every device builds its datagrams: the network copies them. */
const datagram = new Uint8Array(largestDatagram)

/** A sending process with one output. */
export class Device implements Station {
  readonly link: SenderLink
  readonly port: StationPort
  readonly outbox: OutboxDisk
  readonly options: DeviceOptions
  destination: Address
  /** What it heard to be stored last, and when. */
  stored: { readonly n: RecordNumber; readonly at: Micros } = { n: 0, at: 0 }
  onStored: ((n: RecordNumber, at: Micros) => void) | undefined
  readonly events: Array<SenderEvent> = []
  readonly #world: MachineWorld

  constructor(world: MachineWorld, options: DeviceOptions, outbox = new OutboxDisk(world.entropy())) {
    const { address, epochLimits, flights, hub, identity, source, staticSecret, suite = nodeSuite, trace } = options
    this.#world = world
    this.options = options
    this.outbox = outbox
    this.destination = hub.address
    outbox.reopen()
    this.link = new SenderLink({
      suite,
      entropy: world.entropy(),
      identity,
      peerPublicKey: hub.publicKey,
      stream: { source, input, shape },
      outbox: outbox.state(),
      ...(staticSecret && { staticSecret }),
      ...(epochLimits && { epochLimits }),
      ...(flights && { flights }),
      ...(trace && { trace })
    })
    this.port = world.network.station(address, this)
  }

  append(sizes: ReadonlyArray<number>): void {
    this.outbox.append(sizes)
    const { last, lives } = this.outbox.state()
    this.link.handleAppended(this.#world.now, last, lives)
    this.turn(this.#world.now)
  }

  arrive(now: Micros, bytes: Uint8Array): void {
    this.link.handleDatagram(now, bytes, 0, bytes.length)
    this.turn(now)
  }

  wake(now: Micros): void {
    this.link.handleTimeout(now)
    this.turn(now)
  }

  turn(now: Micros): void {
    const { link, outbox, port } = this
    for (let wanted = link.wanted(); wanted !== undefined; wanted = link.wanted()) {
      link.supply(now, outbox.read(wanted.from, wanted))
    }
    for (let length; (length = link.pollTransmit(now, datagram, 0)) > 0;) {
      port.send(datagram.subarray(0, length), this.destination)
    }
    for (let event = link.pollEvent(); event !== undefined; event = link.pollEvent()) this.#hear(event)
    port.wakeAt(link.deadline())
  }

  #hear(event: SenderEvent): void {
    this.events.push(event)
    if (event._tag !== "Stored") return
    this.stored = event
    this.outbox.removeThrough(event.n)
    this.onStored?.(event.n, event.at)
  }
}

export const keysOf = (seed: number): KeyPair => keyPair(nodeSuite, seededEntropy(seed))

/** A suite that counts its X25519 computations, whoever makes them. */
export class CountingSuite implements CryptoSuite {
  readonly name = "counting"
  readonly derivation = nodeSuite.derivation
  readonly packetKey = nodeSuite.packetKey
  agreements = 0
  readonly agreement = {
    publicKey: (privateKey: Uint8Array) => {
      this.agreements++
      return nodeSuite.agreement.publicKey(privateKey)
    },
    shared: (privateKey: Uint8Array, publicKey: Uint8Array) => {
      this.agreements++
      return nodeSuite.agreement.shared(privateKey, publicKey)
    }
  }
}

/**
 * Nodes in virtual time: the production node with its driver and machines, stores in memory that outlive them, and a
 * network on which every datagram is seen. One seed is one course of events; whatever fails in a world names its seed.
 */
import { type KeyPair, keyPair, nodeSuite, seededEntropy } from "@pure-link/keys"
import { Inputs, type InputsOptions, LinkNode, type NodeOptions, type Output, StreamType } from "@pure-link/link"
import { Cryptography, Entropy, type Outbox, type StoreError } from "@pure-link/ports"
import { Policies } from "@pure-link/recovery"
import { InboxMemory, type MemoInMemory, MemoMemory, OutboxMemory } from "@pure-link/store"
import type { Trace, TraceEvent } from "@pure-link/trace"
import { type LinkOptions, type Network, Sim, VirtualNetwork } from "@pure-link/virtual-net"
import type { Address, Bytes, Micros } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import type { Process } from "./process.ts"
import { recordOf } from "../world/record.ts"

export const second: Micros = 1_000_000
export const millisecond: Micros = 1_000

export const deviceKeys: KeyPair = keyPair(nodeSuite, seededEntropy(101))
export const hubKeys: KeyPair = keyPair(nodeSuite, seededEntropy(102))
export const hubAddress: Address = { host: "hub", port: 4_600 }
export const deviceAddress: Address = { host: "device", port: 4_000 }

/** What all records here are: bytes, for one input. */
export const readings = StreamType.bytes("readings", "raw")
export const toHub = { publicKey: hubKeys.publicKey, address: hubAddress }

const machinery = Layer.mergeAll(Cryptography.layerNode, Policies.layerDefault)

/** A node on a host, in a process if one is given; every life of it needs other entropy. */
export const node = (
  identity: KeyPair,
  listen: Address,
  entropySeed: number,
  { process, ...options }: Partial<NodeOptions> & { readonly process?: Process } = {}
) =>
  LinkNode.layer({ identity, listen, ...options }).pipe(
    Layer.provide(process?.sockets(listen.host) ?? VirtualNetwork.host(listen.host)),
    Layer.provide(machinery),
    Layer.provide(Entropy.layerSeeded(entropySeed))
  )

export const device = (seed: number, options: Parameters<typeof node>[3] = {}) =>
  node(deviceKeys, deviceAddress, 7_919 * seed + 1, options)

export interface HubOptions extends Partial<InputsOptions> {
  readonly node?: Parameters<typeof node>[3]
  readonly address?: Address
  /** A memo that outlives the process. */
  readonly memo?: MemoInMemory
}

export const hub = (seed: number, inbox: InboxMemory.Options = {}, options: HubOptions = {}) => {
  const { address = hubAddress, memo, node: nodeOptions, ...rest } = options
  const peers = [{ publicKey: deviceKeys.publicKey, sources: "any" as const }]
  const inputs = Inputs.layer({ peers, ...rest }).pipe(
    Layer.provide(InboxMemory.layer(inbox)),
    Layer.provideMerge(node(hubKeys, address, 7_919 * seed + 2, nodeOptions))
  )
  return memo === undefined ? inputs : Layer.provide(inputs, MemoMemory.layer({ memory: memo }))
}

export const outbox = (
  seed: number,
  source: string,
  options: Omit<OutboxMemory.Options, "stream"> & { readonly type?: StreamType<Uint8Array> } = {}
): Layer.Layer<Outbox, StoreError> => {
  const { type = readings, ...rest } = options
  const stream = { source, input: type.input, shape: type.shape }
  return OutboxMemory.layer({ ...rest, stream }).pipe(Layer.provide(Entropy.layerSeeded(7_919 * seed + 3)))
}

/** Appends records of given sizes, in one transaction. */
export const appendSizes = (output: Output<Uint8Array>, first: number, sizes: ReadonlyArray<number>) =>
  output.appendAll(sizes.map((size, i) => recordOf(first + i, size)))

/** Every PacketSent of a node. */
export class SentPackets implements Trace {
  readonly packets = true
  readonly events: Array<Extract<TraceEvent, { _tag: "PacketSent" }>> = []

  emit(event: TraceEvent): void {
    if (event._tag === "PacketSent") this.events.push(event)
  }
}

/** The congestion windows that a sender had. */
export class Windows implements Trace {
  readonly packets = true
  latest: Bytes = 0
  readonly #all: Array<{ readonly at: Micros; readonly window: Bytes }> = []

  emit(event: TraceEvent): void {
    if (event._tag !== "AnswerTaken" && event._tag !== "WindowReduced") return
    this.latest = event.window
    this.#all.push({ at: event.at, window: event.window })
  }

  largestBetween(from: Micros, to: Micros): Bytes {
    return Math.max(0, ...this.#all.filter(({ at }) => at >= from && at <= to).map(({ window }) => window))
  }
}

/** Every datagram that leaves an address, by time and length. */
export const watchLeaving = (network: Network, from: string): Array<{ readonly at: Micros; readonly bytes: Bytes }> => {
  const seen: Array<{ readonly at: Micros; readonly bytes: Bytes }> = []
  network.tap((passage) => {
    if (passage.fate === "sent" && passage.from.host === from) {
      seen.push({ at: passage.at, bytes: passage.bytes.length })
    }
  })
  return seen
}

export interface WorldOptions {
  readonly seed: number
  readonly link?: Partial<LinkOptions>
  readonly limit?: Micros
}

/** Plays a program in virtual time; what fails in it fails the test, with the seed. */
export const play = <A, E>(
  { seed, link = {}, limit = 24 * 3_600 * second }: WorldOptions,
  program: Effect.Effect<A, E, VirtualNetwork | Scope.Scope>
): A => {
  const quiet = Effect.provideService(program, References.MinimumLogLevel, "None")
  const exit = new Sim().run(Effect.scoped(Effect.provide(quiet, VirtualNetwork.layer({ seed, link }))), {
    micros: limit
  })
  if (Exit.isSuccess(exit)) return exit.value
  throw new Error(`world of seed ${seed}: ${String(exit.cause)}`, { cause: exit.cause })
}

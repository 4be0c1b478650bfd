/**
 * Nodes on a virtual network, with stores in memory that outlive them: what the tests of this folder are played in.
 */
import { assert } from "@effect/vitest"
import { type KeyPair, keyPair, nodeSuite, seededEntropy } from "@pure-link/keys"
import { type Chunk, Input, Inputs, type InputsOptions, LinkNode, type NodeOptions, StreamType } from "@pure-link/link"
import { Cryptography, Entropy, Memo, type Outbox, type StoreError } from "@pure-link/ports"
import { Policies } from "@pure-link/recovery"
import { InboxMemory, OutboxMemory } from "@pure-link/store"
import { type LinkOptions, Sim, type SimLimits, VirtualNetwork } from "@pure-link/virtual-net"
import type { Address } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"

export const identities: { readonly device: KeyPair; readonly hub: KeyPair; readonly stranger: KeyPair } = {
  device: keyPair(nodeSuite, seededEntropy(1)),
  hub: keyPair(nodeSuite, seededEntropy(2)),
  stranger: keyPair(nodeSuite, seededEntropy(3))
}
export const hubAddress: Address = { host: "hub", port: 4600 }
export const hubPeer = { publicKey: identities.hub.publicKey, address: hubAddress }

/** Raw records. */
export const blobs = StreamType.bytes("blobs", "raw")

/** Ten per cent of everything that can befall a datagram, and jitter far above its spacing. */
export const badLink: Partial<LinkOptions> = {
  delayMicros: 10_000,
  jitterMicros: 5_000,
  loss: 0.05,
  duplicate: 0.05,
  reorder: 0.03,
  reorderMicros: 30_000
}

let lives = 0
/** Every life of a node draws other random bytes, as it does from the system's generator. */
const freshEntropy = Layer.unwrap(Effect.sync(() => Entropy.layerSeeded(1_000 + ++lives)))

const machinery = Layer.mergeAll(Cryptography.layerNode, Policies.layerDefault)

/** A node on a host of the network. */
export const node = (host: string, identity: KeyPair, options: Partial<NodeOptions> = {}) =>
  LinkNode.layer({ identity, listen: { host, port: 0 }, ...options }).pipe(
    Layer.provide(VirtualNetwork.host(host)),
    Layer.provide(machinery),
    Layer.provide(freshEntropy)
  )

export const hubNode = (options: Partial<NodeOptions> = {}) =>
  node("hub", identities.hub, { listen: hubAddress, ...options })
export const deviceNode = (options: Partial<NodeOptions> = {}) => node("device", identities.device, options)

export const outbox = <A>(
  type: StreamType<A>,
  options: Omit<OutboxMemory.Options, "stream"> & { readonly source?: string } = {}
): Layer.Layer<Outbox, StoreError> => {
  const { source = "device", ...rest } = options
  const stream = { source, input: type.input, shape: type.shape }
  return OutboxMemory.layer({ ...rest, stream }).pipe(Layer.provide(freshEntropy))
}

export const inputs = (
  options: InboxMemory.Options & Partial<InputsOptions> & { readonly memo?: Memo["Service"] | undefined } = {}
) => {
  const everyone = [{ publicKey: identities.device.publicKey, sources: "any" as const }]
  const { memo, peers = everyone, streamBytes, totalBytes, ...inbox } = options
  const layer = Inputs.layer({
    peers,
    ...(streamBytes === undefined ? {} : { streamBytes }),
    ...(totalBytes === undefined ? {} : { totalBytes })
  }).pipe(Layer.provide(InboxMemory.layer(inbox)))
  return memo ? Layer.provide(layer, Layer.succeed(Memo, memo)) : layer
}

/** A hub that is up as long as the scope is open, and what it gives. */
export const hub = (options: Parameters<typeof inputs>[0] & { readonly node?: Partial<NodeOptions> } = {}) =>
  inputs(options).pipe(Layer.provideMerge(hubNode(options.node)))

/** All records of an input from a position on, up to a count, as they are. */
export const take = <A>(
  type: StreamType<A>,
  count: number,
  from = 0
): Effect.Effect<ReadonlyArray<Chunk<A>["records"][number]>, unknown, Inputs | Scope.Scope> =>
  Effect.gen(function* () {
    const input = yield* Input.open(type)
    return yield* input.from(from).pipe(
      Stream.flatMap((chunk) => Stream.fromIterable(chunk.records)),
      Stream.take(count),
      Stream.runCollect
    )
  })

/** Runs a program in simulated time on a network; its failure is the test's. */
export const play = <A, E>(
  program: Effect.Effect<A, E, VirtualNetwork | Scope.Scope>,
  options: { readonly seed?: number; readonly link?: Partial<LinkOptions>; readonly limits?: SimLimits } = {}
): A => {
  const { limits = { micros: 600_000_000 }, link = {}, seed = 1 } = options
  const quiet = Effect.provideService(program, References.MinimumLogLevel, "None")
  const exit = new Sim().run(Effect.scoped(Effect.provide(quiet, VirtualNetwork.layer({ seed, link }))), limits)
  if (Exit.isSuccess(exit)) return exit.value
  throw new Error(`${String(exit.cause)}`, { cause: exit.cause })
}

/** A repeatable source of choices for tests. */
export class Dice {
  #state: number
  constructor(seed: number) {
    this.#state = 1 + (Math.abs(seed) % 2_147_483_646)
  }
  below(limit: number): number {
    this.#state = (this.#state * 48_271) % 2_147_483_647
    return this.#state % limit
  }
  bytes(length: number): Uint8Array {
    const bytes = new Uint8Array(length)
    for (let i = 0; i < length; i++) bytes[i] = this.below(256)
    return bytes
  }
}

/** The device's way to the hub. */
export const device = { source: "device", peer: hubPeer }
export const numbers = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, index) => index + 1)

/** Records of many sizes: empty, small, just around a datagram, and a few long ones. */
export const manySizes = (dice: Dice, count: number): ReadonlyArray<Uint8Array> =>
  numbers(count).map(() => dice.bytes([0, 1, 60, 255, 256, 1_100, 1_200, 5_000, 40_000][dice.below(9)]!))

/** Fails unless records arrived as they were sent, numbered from 1. */
export const sameRecords = (
  records: ReadonlyArray<{ readonly number: number; readonly value: Uint8Array }>,
  sent: ReadonlyArray<Uint8Array>
): void => {
  assert.deepStrictEqual(
    records.map(({ number }) => number),
    numbers(sent.length)
  )
  for (const [index, { value }] of records.entries()) {
    assert.isTrue(Buffer.from(value).equals(sent[index]!), `record ${index + 1}`)
  }
}

import { type KeyPair, keyPair, nodeSuite, seededEntropy } from "@pure-link/keys"
import { Input, Inputs, LinkNode, Output, StreamType } from "@pure-link/link"
import { Cryptography, Entropy } from "@pure-link/ports"
import { OutboxMemory } from "@pure-link/store"
import type { Trace } from "@pure-link/trace"
import { VirtualNetwork } from "@pure-link/virtual-net"
import type { Bytes } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { outboxBytes } from "./feeder.ts"
import type { SimOptions } from "./options.ts"
import { receiverAddress, senderHost } from "./path.ts"
import { policiesOf } from "./policies.ts"
import type { StoreWatch } from "./storeWatch.ts"

/**
 * The two ends: one receiving node, and a sending node for each flow, as an application builds them, with the real
 * cryptography, stores in memory and entropy from the seed.
 */

const stream = StreamType.bytes("records", "raw")

/** Every node draws from its own generator. */
const entropyOf = (seed: number, node: number): number => seed * 1_009 + node * 2 + 1

export const sourceOf = (flow: number): string => `flow-${flow + 1}`

export class Endpoints {
  readonly #options: SimOptions
  readonly #receiver: KeyPair
  readonly #senders: ReadonlyArray<KeyPair>

  constructor(options: SimOptions) {
    this.#options = options
    const identity = (node: number) => keyPair(nodeSuite, seededEntropy(entropyOf(options.seed, node) + 1))
    this.#receiver = identity(0)
    this.#senders = Array.from({ length: options.flows }, (_, flow) => identity(flow + 1))
  }

  /** The receiving node with its input open, until the scope closes, and what it holds that cannot be stored yet. */
  openReceiver(trace: Trace, store: StoreWatch) {
    const peers = this.#senders.map(({ publicKey }) => ({ publicKey, sources: "any" as const }))
    const node = this.#node(receiverAddress.host, this.#receiver, receiverAddress.port, 0, trace)
    return Effect.gen(function* () {
      const context = yield* Layer.build(
        Inputs.layer({ peers }).pipe(Layer.provide(store.layer), Layer.provideMerge(node))
      )
      yield* Effect.provide(Input.open(stream), context)
      const { machine } = (yield* Effect.provide(Inputs, context)).seam
      return { node: yield* Effect.provide(LinkNode, context), heldBytes: (): Bytes => machine.heldBytes }
    })
  }

  /** A flow's sending node with its output open, until the scope closes. */
  openSender(flow: number, trace: Trace) {
    const node = this.#node(senderHost(flow), this.#senders[flow]!, 4_600, flow + 1, trace)
    const source = sourceOf(flow)
    const outbox = OutboxMemory.layer({
      stream: { source, input: stream.input, shape: stream.shape },
      limitBytes: outboxBytes(this.#options)
    }).pipe(Layer.provide(Entropy.layerSeeded(entropyOf(this.#options.seed, flow + 1) + 1_000_003)))
    const peer = { publicKey: this.#receiver.publicKey, address: receiverAddress }
    return Effect.gen(function* () {
      const context = yield* Layer.build(Layer.merge(outbox, node))
      const output = yield* Effect.provide(Output.open(stream, { source, peer }), context)
      return { output, node: yield* Effect.provide(LinkNode, context) }
    })
  }

  #node(host: string, identity: KeyPair, port: number, number: number, trace: Trace) {
    return LinkNode.layer({ identity, listen: { host, port }, trace }).pipe(
      Layer.provide(VirtualNetwork.host(host)),
      Layer.provide(Cryptography.layerNode),
      Layer.provide(policiesOf(this.#options)),
      Layer.provide(Entropy.layerSeeded(entropyOf(this.#options.seed, number)))
    )
  }
}

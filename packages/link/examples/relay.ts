import type { KeyPair } from "@pure-link/keys"
import { Input, Inputs, LinkNode, Output, StreamType } from "@pure-link/link"
import { Entropy } from "@pure-link/ports"
import { Policies } from "@pure-link/recovery"
import { InboxSqlite, OutboxSqlite } from "@pure-link/store"
import { CryptographySystem, DatagramSocketSystem, resolveHost } from "@pure-link/udp"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { readings } from "./readings.ts"

export const alarms = StreamType.make("alarms", Schema.Struct({ sensor: Schema.String, celsius: Schema.Finite }))

export interface RelayOptions {
  readonly identity: KeyPair
  readonly folder: string
  readonly port: number
  /** The public key of the node that sends readings. */
  readonly greenhouse: Uint8Array
  readonly station: { readonly publicKey: Uint8Array; readonly host: string; readonly port: number }
}

/**
 * Receives readings and sends those above 40 °C on as alarms, exactly once, from the same socket. Runs until
 * interrupted.
 */
export const relay = (options: RelayOptions) => {
  const { folder, greenhouse, identity, port, station } = options

  const outbox = OutboxSqlite.layer({
    file: `${folder}/alarms.db`,
    stream: { source: "relay", input: alarms.input, shape: alarms.shape }
  })
  const inputs = Inputs.layer({ peers: [{ publicKey: greenhouse, sources: ["greenhouse-3"] }] }).pipe(
    Layer.provide(InboxSqlite.layer({ file: `${folder}/inbox.db` }))
  )
  const node = LinkNode.layer({ identity, listen: { host: "0.0.0.0", port } }).pipe(
    Layer.provide([DatagramSocketSystem.layer, Policies.layerDefault])
  )
  const system = Layer.mergeAll(CryptographySystem.layer, Entropy.layerSystem)

  return Effect.gen(function* () {
    const output = yield* Output.open(alarms, {
      source: "relay",
      peer: { publicKey: station.publicKey, address: resolveHost(station.host, station.port) }
    })
    const input = yield* Input.open(readings)
    const position = yield* output.producerPosition("readings")
    yield* input.from(position ?? 0).pipe(
      Stream.runForEach((chunk) =>
        output.appendAll(
          chunk.records.map(({ value }) => value).filter(({ celsius }) => celsius > 40),
          { producer: "readings", position: chunk.end } // on disk with the alarms, in one transaction
        )
      )
    )
  }).pipe(
    Effect.scoped,
    Effect.provide(Layer.mergeAll(outbox, inputs).pipe(Layer.provideMerge(node), Layer.provide(system)))
  )
}

/**
 * A whole receiver: shows every reading that one sender's node sends, until it is killed.
 *
 *     node receiver.ts hub.key pk<the sender's public key> 4433
 */
import { nodeSuite, parseKeyFile, parsePublicKey } from "@pure-link/keys"
import { Input, Inputs, LinkNode } from "@pure-link/link"
import { Entropy } from "@pure-link/ports"
import { Policies } from "@pure-link/recovery"
import { InboxSqlite } from "@pure-link/store"
import { CryptographySystem, DatagramSocketSystem } from "@pure-link/udp"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { readFileSync } from "node:fs"
import { readings } from "./readings.ts"

const [keyFile = "", senderKey = "", port = ""] = process.argv.slice(2)
const identity = parseKeyFile(nodeSuite, readFileSync(keyFile, "utf8"))
const publicKey = parsePublicKey(senderKey)
if (!identity || !publicKey) throw new Error("usage: node receiver.ts KEY-FILE PUBLIC-KEY PORT")

const program = Effect.gen(function* () {
  const input = yield* Input.open(readings)
  yield* input.chunks({ consumer: "screen" }).pipe(
    Stream.runForEach((chunk) =>
      Effect.gen(function* () {
        for (const { source, value } of chunk.records) {
          yield* Effect.log(`${source}: ${value.celsius} °C at sensor ${value.sensor}`)
        }
        yield* chunk.acknowledge
      })
    )
  )
})

const inbox = InboxSqlite.layer({ file: "hub.inbox" })
const node = LinkNode.layer({ identity, listen: { host: "0.0.0.0", port: Number(port) } })
const inputs = Inputs.layer({ peers: [{ publicKey, sources: ["greenhouse-3"] }] })
const system = Layer.mergeAll(
  CryptographySystem.layer,
  Entropy.layerSystem,
  DatagramSocketSystem.layer,
  Policies.layerDefault
)

await program.pipe(
  Effect.scoped,
  Effect.provide(inputs.pipe(Layer.provide([inbox, node]), Layer.provide(system))),
  Effect.runPromise
)

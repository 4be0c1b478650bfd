/**
 * A whole sender: appends one reading and waits until the hub has it on disk.
 *
 *     node sender.ts greenhouse.key pk<the hub's public key> hub.example.org 4433
 */
import { nodeSuite, parseKeyFile, parsePublicKey } from "@pure-link/keys"
import { LinkNode, Output } from "@pure-link/link"
import { Entropy } from "@pure-link/ports"
import { Policies } from "@pure-link/recovery"
import { OutboxSqlite } from "@pure-link/store"
import { CryptographySystem, DatagramSocketSystem, resolveHost } from "@pure-link/udp"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { readFileSync } from "node:fs"
import { readings } from "./readings.ts"

const [keyFile = "", hubKey = "", host = "", port = ""] = process.argv.slice(2)
const identity = parseKeyFile(nodeSuite, readFileSync(keyFile, "utf8"))
const publicKey = parsePublicKey(hubKey)
if (!identity || !publicKey) throw new Error("usage: node sender.ts KEY-FILE PUBLIC-KEY HOST PORT")

const source = "greenhouse-3"

const program = Effect.gen(function* () {
  const output = yield* Output.open(readings, { source, peer: { publicKey, address: resolveHost(host, Number(port)) } })
  const receipt = yield* output.append({ sensor: "north", celsius: 21.5, takenAt: yield* DateTime.now })
  const stored = yield* receipt.stored
  yield* Effect.log(`the hub holds everything up to ${stored.through}`)
})

const outbox = OutboxSqlite.layer({
  file: "readings.outbox",
  stream: { source, input: readings.input, shape: readings.shape }
})
const node = LinkNode.layer({ identity, listen: { host: "0.0.0.0", port: 0 } })
const system = Layer.mergeAll(
  CryptographySystem.layer,
  Entropy.layerSystem,
  DatagramSocketSystem.layer,
  Policies.layerDefault
)

await program.pipe(
  Effect.scoped,
  Effect.provide(Layer.mergeAll(outbox, node).pipe(Layer.provide(system))),
  Effect.runPromise
)

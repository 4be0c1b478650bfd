import { Entropy, Outbox } from "@pure-link/ports"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { OutboxSqlite } from "../../src/index.ts"
import { chunkLength, chunkOf, writerStream } from "./written.ts"

/**
 * A process that owns an outbox and appends to it until it is killed. It says `open`, then the last number of every
 * burst that was confirmed. Each chunk carries its last number as the producer's position, and old records are removed
 * on the way.
 */
const [file = "", mode] = process.argv.slice(2)

const write = Effect.gen(function* () {
  const outbox = yield* Outbox
  console.log("open")
  if (mode === "hold") return yield* Effect.never
  for (;;) {
    const next = outbox.state().last + 1
    const chunks = [0, 1, 2, 3].map((i) => chunkOf(next + i * chunkLength))
    yield* Effect.all(
      chunks.map((chunk) => outbox.append(chunk)),
      { concurrency: "unbounded" }
    )
    const { last } = outbox.state()
    if (last > 400) yield* outbox.removeThrough(last - 400)
    console.log(last)
  }
})

const layer = Layer.provide(OutboxSqlite.layer({ file, stream: writerStream }), Entropy.layerSystem)
await Effect.runPromise(Effect.provide(write, layer))

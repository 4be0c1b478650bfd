import { Inbox } from "@pure-link/ports"
import * as Effect from "effect/Effect"
import { InboxSqlite } from "../../src/index.ts"
import { batchOf, writerLife } from "./written.ts"

/**
 * A process that owns an inbox and commits batches of two sources to it until it is killed. It says `open`, then the
 * number up to which both are confirmed. A consumer acknowledges everything, and old records are pruned on the way.
 */
const [file = "", mode] = process.argv.slice(2)

const write = Effect.gen(function* () {
  const inbox = yield* Inbox
  console.log("open")
  if (mode === "hold") return yield* Effect.never
  for (;;) {
    const commits = ["a", "b"].map((source) => {
      const first = (inbox.cursor({ source, input: "orders" })?.n ?? 0) + 1
      return inbox.commit([
        { source, input: "orders", generation: 7n, lives: [{ life: writerLife, first: 1 }], batch: batchOf(first) }
      ])
    })
    yield* Effect.all(commits, { concurrency: "unbounded" })
    const last = inbox.lastPosition("orders")
    yield* inbox.acknowledge("orders", "consumer", last)
    if (last > 400) yield* inbox.prune("orders", last - 400)
    console.log(inbox.cursor({ source: "b", input: "orders" })!.n)
  }
})

await Effect.runPromise(Effect.provide(write, InboxSqlite.layer({ file })))

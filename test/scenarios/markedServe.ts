/**
 * A test build of `pure-link serve` with the same layers and three windows: it prints when a commit begins and ends;
 * before the first answer with a raised n it makes a system call that a trace can see (an access to a path that does not
 * exist); and it prints when its socket was bound and when the first answer leaves with an n that it has raised itself.
 * With `standby` as its first argument it only loads, says so, and begins with the first line of its standard input.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { load } from "@pure-link/native"
import { Inbox } from "@pure-link/ports"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Socket } from "node:dgram"
import { once } from "node:events"
import { accessSync, writeSync } from "node:fs"
import { makeServe, type ServeSeams } from "../../apps/pure-link/src/commands/serve.ts"
import { layerLog } from "../../apps/pure-link/src/output.ts"
import { runMain } from "../../apps/pure-link/src/shutdown.ts"
import { monotonicMicros } from "./relay.ts"

const print = (event: object): void => {
  writeSync(1, `${JSON.stringify(event)}\n`)
}

const bind = Reflect.get(Socket.prototype, "bind") as (...args: Array<unknown>) => Socket
Reflect.set(Socket.prototype, "bind", function (this: Socket, ...args: Array<unknown>) {
  this.once("listening", () => print({ event: "bound", at: monotonicMicros() }))
  return bind.apply(this, args)
})

/** The native socket that serves, not those that only find out whether native sockets work. */
const { addon } = load()
if (addon?.Socket !== undefined) {
  const told = process.argv.join(" ")
  class MarkedSocket extends addon.Socket {
    override open(at: Uint8Array): number {
      const result = super.open(at)
      if (result >= 0 && told.includes(`:${this.local()!.port}`)) print({ event: "bound", at: monotonicMicros() })
      return result
    }
  }
  Object.defineProperty(addon, "Socket", { value: MarkedSocket })
}

/** Written at once, past all buffers: the process may be killed in the next instant. */
const tell = (event: string, n: number) =>
  Effect.sync(() => {
    print({ event, n, at: monotonicMicros() })
  })

/** The first n that this process committed. */
let firstCommitted: number | undefined
let hasToldRaised = false

const tellRaised = (n: number): void => {
  if (hasToldRaised || firstCommitted === undefined || n < firstCommitted) return
  hasToldRaised = true
  print({ event: "raised", n, at: monotonicMicros() })
}

const aroundInbox: ServeSeams["aroundInbox"] = (layer) =>
  Layer.effect(
    Inbox,
    Effect.map(Inbox, (inbox) =>
      Inbox.of({
        ...inbox,
        commit: (intents) => {
          const last = intents.at(-1)!.batch
          const n = last.first + last.sizes.length - 1
          return Effect.andThen(
            tell("commitBegins", n),
            Effect.tap(inbox.commit(intents), () => {
              firstCommitted ??= n
              return tell("commitEnded", n)
            })
          )
        }
      })
    )
  ).pipe(Layer.provide(layer))

let marked = 0
const mark = (n: number): void => {
  if (n <= marked) return
  marked = n
  try {
    accessSync(`/answer-with-raised-n/${n}`)
  } catch {
    /* that it does not exist is the point */
  }
}

const trace = {
  packets: false,
  emit: (event: { readonly _tag: string; readonly n?: number }) => {
    if (event._tag !== "Stored") return
    tellRaised(event.n!)
    mark(event.n!)
  }
}

/** For the test of the test: STORED before the commit. */
const faults = { storedBeforeCommit: process.env["PURE_LINK_FAULT"] === "storedBeforeCommit" }

if (process.argv[2] === "standby") {
  process.argv.splice(2, 1)
  print({ event: "standsBy" })
  await once(process.stdin, "data")
}

Command.make("marked").pipe(
  Command.withSubcommands([makeServe({ aroundInbox, node: { trace, faults } })]),
  Command.run({ version: "test" }),
  Effect.provide(layerLog),
  Effect.provide(NodeServices.layer),
  runMain
)

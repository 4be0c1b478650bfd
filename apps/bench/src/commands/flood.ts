import { DatagramSocket } from "@pure-link/ports"
import { resolveHost } from "@pure-link/udp"
import type { Address } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import { type Command, ExitCode, printLine } from "../command.ts"
import type { GivenFlags } from "../flags.ts"
import { begunWord, Garbage, garbageKinds, type GarbageKind, garbagePerTrain, garbageStride } from "../garbage.ts"
import { Interrupts } from "../interrupts.ts"
import { systemLayer } from "../platform.ts"
import { jsonFlag, portBounds, rateBounds, secondsBounds } from "../sharedFlags.ts"
import { UsageError } from "../usageError.ts"
import { rounded } from "../verdict.ts"

/** Garbage at the rate that the line takes. */

const flags = {
  host: { value: "HOST", help: "where to (127.0.0.1)" },
  port: { value: "P", help: "UDP port" },
  seconds: { value: "S", help: "how long (5)" },
  kinds: { value: "LIST", help: `of ${garbageKinds.join(",")} (all), train by train` },
  mbit: { value: "MBIT/S", help: "of UDP payload at most (as fast as it can)" },
  run: { value: "PREFIX", help: "run prefix for live-run, a number" },
  fallback: { help: "through node:dgram" },
  ...jsonFlag
}

interface FloodOptions {
  readonly host: string
  readonly port: number
  readonly seconds: number
  readonly kinds: ReadonlyArray<GarbageKind>
  readonly mbit: number
  readonly run: number | undefined
  readonly fallback: boolean
}

const read = (given: GivenFlags): FloodOptions => ({
  host: given.text("host") ?? "127.0.0.1",
  port: given.requiredNumber("port", portBounds),
  seconds: given.number("seconds", secondsBounds) ?? 5,
  kinds: readKinds(given.text("kinds")),
  mbit: given.number("mbit", rateBounds) ?? Number.POSITIVE_INFINITY,
  run: given.number("run", { least: 0, most: 0xffff_ffff, whole: true }),
  fallback: given.has("fallback")
})

const readKinds = (text: string | undefined): ReadonlyArray<GarbageKind> => {
  if (text === undefined) return garbageKinds
  return text.split(",").map((name) => {
    const kind = garbageKinds.find((one) => one === name)
    if (kind === undefined) throw new UsageError(`--kinds takes ${garbageKinds.join(",")}, not "${name}"`)
    return kind
  })
}

export const flood: Command = {
  summary: "garbage datagrams at line rate",
  flags,
  prepare: (given) => {
    const options = read(given)
    return () => run(options)
  }
}

const run = async (options: FloodOptions): Promise<number> => {
  const interrupts = new Interrupts()
  const to = await Effect.runPromise(resolveHost(options.host, options.port))
  const platform = { fallback: options.fallback, store: "memory", folder: "" } as const
  const result = await Effect.runPromise(
    flooding(options, to, () => interrupts.count > 0).pipe(Effect.scoped, Effect.provide(systemLayer(platform)))
  )
  interrupts.close()
  printLine({ event: "flood", ...result })
  return ExitCode.done
}

/** Trains between two looks at the clock and at what else waits. */
const trainsAtOnce = 4

const flooding = Effect.fnUntraced(function* (options: FloodOptions, to: Address, isAsked: () => boolean) {
  const sockets = yield* DatagramSocket
  const socket = yield* sockets.open({ host: to.host.includes(":") ? "::" : "0.0.0.0", port: 0 })
  const garbage = new Garbage(options.run)
  process.stderr.write(`bench flood: ${begunWord}\n`)
  const begun = performance.now()
  const until = begun + options.seconds * 1_000
  let trains = 0
  let bytes = 0
  while (performance.now() < until && !isAsked()) {
    for (let i = 0; i < trainsAtOnce; i++) {
      garbage.fill(options.kinds[trains++ % options.kinds.length]!)
      socket.send(garbage.slab, garbageStride, garbage.lengths, garbagePerTrain, to)
      for (const length of garbage.lengths) bytes += length
    }
    const due = begun + (bytes * 8) / (options.mbit * 1_000)
    yield* Effect.sleep(Math.max(0, due - performance.now()))
  }
  const seconds = (performance.now() - begun) / 1_000
  const { sendErrors, sent } = socket.counters
  return {
    seconds: rounded(seconds, 3),
    sent,
    refused: sendErrors,
    per_s: Math.round(sent / seconds),
    mbit_s: Math.round((bytes * 8) / seconds / 1e6)
  }
})

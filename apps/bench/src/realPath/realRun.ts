import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { join } from "node:path"
import type { ReceiveReport } from "../ends/receiveEnd.ts"
import type { SendReport } from "../ends/sendEnd.ts"
import type { EndFailed } from "../ends/endProcess.ts"
import { type Child, start } from "./child.ts"
import { type EmulatedPath, openPath, type PathCounters } from "./emulator.ts"
import { packetsSentBy } from "./namespace.ts"
import { outboxMib, recordBytes, type Row } from "./rows.ts"
import type { Tools } from "./tools.ts"

/**
 * One run on real sockets: a fresh path, both ends of ours as a person would start them by hand, and for a share a TCP
 * flow that starts when our first datagram leaves.
 */

export interface RealRun {
  /** Mbit/s of record bytes, second by second from the first record on. */
  readonly ours: ReadonlyArray<number>
  /** Mbit/s of TCP's payload, likewise; undefined without TCP. */
  readonly theirs: ReadonlyArray<number> | undefined
  readonly path: PathCounters
  readonly send: SendReport
  readonly receive: ReceiveReport
}

export interface RealRunOptions {
  readonly tools: Tools
  readonly row: Row
  readonly seed: number
  readonly fallback: boolean
}

type Running<A> = Effect.Effect<A, EndFailed, Scope.Scope>

const port = 4_600
const tcpPort = 5_001
/** The second after the last one that counts has to have begun. */
const afterSeconds = 1.3
/** Ends end by themselves so long after they should have been ended. */
const mostOverSeconds = 60

export const realRun = (options: RealRunOptions): Effect.Effect<RealRun, EndFailed> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { row, seed, tools } = options
      const path = yield* openPath(tools, row.path, seed)
      const receiver = yield* startReceiver(path, options)
      const tcp = row.name === "share" ? yield* waitingTcp(path, options) : undefined
      const sender = yield* startSender(path, options)
      yield* sender.until(() => packetsSentBy(path.senderDevice, sender.pid) > 0, 20, "sends nothing")
      tcp?.begin()
      yield* Effect.sleep((row.endSeconds + afterSeconds) * 1_000)
      receiver.signal("SIGINT")
      sender.signal("SIGINT")
      const receive = yield* reportOf<ReceiveReport & Series>(receiver)
      const send = yield* reportOf<SendReport>(sender)
      const theirs = tcp === undefined ? undefined : yield* tcp.series
      const ours = receive.series.map(({ mbit_s }) => mbit_s)
      return { ours, theirs, path: yield* path.finish, send, receive }
    })
  )

interface Series {
  readonly series: ReadonlyArray<{ readonly mbit_s: number }>
}

const bench = join(import.meta.dirname, "../../bin/bench.js")

const startReceiver = (path: EmulatedPath, options: RealRunOptions): Running<Child> =>
  Effect.gen(function* () {
    const given = ["recv", "--port", `${port}`, "--series", ...lengthOf(options)]
    const receiver = yield* start("bench recv", [...path.atReceiver, process.execPath, bench, ...given])
    yield* receiver.heard("listening", 20)
    return receiver
  })

const startSender = (path: EmulatedPath, options: RealRunOptions): Running<Child> => {
  const to = ["--host", path.receiverHost, "--port", `${port}`]
  const given = [
    "send",
    ...to,
    "--size",
    `${recordBytes}`,
    "--outbox",
    `${outboxMib(options.row.path)}`,
    "--drain",
    "1"
  ]
  return start("bench send", [...path.atSender, process.execPath, bench, ...given, ...lengthOf(options)])
}

const lengthOf = ({ fallback, row }: RealRunOptions): ReadonlyArray<string> => [
  "--seconds",
  `${row.endSeconds + mostOverSeconds}`,
  ...(fallback ? ["--fallback"] : [])
]

/** An end that was asked to end by a signal may say so by its exit code. */
const endedBySignal = [0, 1, 130]

const reportOf = <Report>(end: Child): Effect.Effect<Report, EndFailed> =>
  Effect.flatMap(end.outputAfter(30, endedBySignal), (output) => {
    const last = output.trim().split("\n").at(-1)
    return last ? Effect.succeed(JSON.parse(last) as Report) : Effect.fail(end.failure("reports nothing"))
  })

/** A TCP flow that is ready to start at once. */
const waitingTcp = ({ atReceiver, atSender, receiverHost }: EmulatedPath, { row, tools: { peer } }: RealRunOptions) =>
  Effect.gen(function* () {
    const at = ["--port", `${tcpPort}`]
    const receiver = yield* start("nettool tcp-recv", [...atReceiver, peer, "tcp-recv", ...at, "--bin", "1000"])
    const seconds = `${row.endSeconds + afterSeconds}`
    const command = [peer, "tcp-send", "--host", receiverHost, ...at, "--seconds", seconds, "--cc", "cubic"]
    const gate = ["sh", "-c", 'read line; exec "$@"', "gate", ...command]
    const sender = yield* start("nettool tcp-send", [...atSender, ...gate])
    const series = Effect.gen(function* () {
      const { cc } = JSON.parse(yield* sender.outputAfter(10)) as { readonly cc: string }
      if (cc !== "cubic") return yield* Effect.fail(sender.failure(`used ${cc}`))
      return (JSON.parse(yield* receiver.outputAfter(10)) as { readonly bins_mbps: ReadonlyArray<number> }).bins_mbps
    })
    return { begin: () => sender.write("\n"), series }
  })

import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { existsSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { EndFailed } from "../ends/endProcess.ts"
import { start } from "./child.ts"
import type { PathSettings } from "./rows.ts"
import type { Tools } from "./tools.ts"

/**
 * A path between two network namespaces. It lives as long as the emulator, which lives as long as a shell that reads from
 * our pipe: were this process killed, the pipe's end would remove it all the same.
 */

/** What the emulator counted in one direction. */
export interface DirectionCounters {
  readonly in_pkts: number
  readonly queue_drops: number
  readonly random_drops: number
  readonly reordered: number
  readonly max_queue_bytes: number
  readonly qdelay_mean_ms: number
  readonly max_ip_len: number
  readonly write_errors: number
  readonly tun_ring_drops: number
  readonly udp_rcvbuf_errors: number
  readonly late_us: { readonly p50: number; readonly p99: number; readonly max: number }
}

export interface PathCounters {
  readonly fwd: DirectionCounters
  readonly rev: DirectionCounters
}

export interface EmulatedPath {
  /** What runs a program in the sender's and in the receiver's namespace. */
  readonly atSender: Prefix
  readonly atReceiver: Prefix
  readonly receiverHost: string
  /** Of the sender's namespace, on the path. */
  readonly senderDevice: string
  /** Ends the path, with everything that happened on it. */
  readonly finish: Effect.Effect<PathCounters, EndFailed>
}

type Prefix = readonly [string, ...ReadonlyArray<string>]

const network = "10.77.0"

export const openPath = (
  { emulator, folder }: Tools,
  settings: PathSettings,
  seed: number
): Effect.Effect<EmulatedPath, EndFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const prefix = `r${process.pid}`
    const counters = join(folder, "counters.json")
    const ready = join(folder, "ready")
    rmSync(counters, { force: true })
    const files = ["--json", counters, "--ready", ready]
    const names = ["--prefix", prefix, "--net", network, "--seed", `${seed}`]
    const whileWeLive = ["--", "sh", "-c", "read line"]
    const child = yield* start(
      "the emulator",
      [emulator, ...names, ...pathArguments(settings), ...files, ...whileWeLive],
      (emulator) => emulator.signal("SIGTERM")
    )
    yield* child.until(() => existsSync(ready), 10, "does not come up")
    const finish = Effect.gen(function* () {
      child.closeInput()
      yield* child.outputAfter(10, [0, 1])
      return JSON.parse(readFileSync(counters, "utf8").trim().split("\n").at(-1)!) as PathCounters
    })
    return {
      atSender: ["ip", "netns", "exec", `${prefix}a`],
      atReceiver: ["ip", "netns", "exec", `${prefix}b`],
      receiverHost: `${network}.2`,
      senderDevice: `${prefix}a0`,
      finish
    }
  })

/** The queue is one round trip by itself. */
export const pathArguments = ({ jitterMillis, loss, rateMbit, rttMillis }: PathSettings): ReadonlyArray<string> => [
  "--rate",
  `${rateMbit}M`,
  "--rtt",
  `${rttMillis}`,
  "--jitter",
  `${jitterMillis}`,
  "--loss",
  `${loss}`
]

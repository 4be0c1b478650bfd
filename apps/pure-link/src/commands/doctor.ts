/**
 * `pure-link doctor`: whether a link can work on this machine, how fast its path is, and what would make it faster.
 */
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { type Diagnosis, diagnose, isMissing } from "../diagnosis.ts"
import { json, transport } from "../options.ts"
import { grouped, print, printJson } from "../output.ts"

/** The diagnosis as lines for a person: what, and how it stands. */
export const linesOf = (found: Diagnosis): ReadonlyArray<readonly [string, string]> => {
  const { addon, aead, buffers, limits, sockets } = found
  const limit = (value: number | undefined) => (value === undefined ? "no limit known" : `limit ${grouped(value)} B`)
  return [
    ["link", "works: a sealed datagram to this process came back and opened"],
    ["machine", `${found.kernel}, Node ${found.node}`],
    ["native path", isMissing(addon) ? `none: ${addon.reason}` : addon.path],
    ["encryption", isMissing(aead) ? `node:crypto` : `native, AES-128-GCM of ${aead.library}`],
    ["sockets", isMissing(sockets) ? "node:dgram" : `native: ${abilitiesOf(sockets).join(", ")}`],
    ["receive buffer", `${grouped(buffers.receive)} B (${limit(limits.receive)})`],
    ["send buffer", `${grouped(buffers.send)} B (${limit(limits.send)})`],
    ...found.remedies.map((remedy) => ["to do", remedy] as const)
  ]
}

const abilitiesOf = (sockets: Exclude<Diagnosis["sockets"], { readonly reason: string }>): ReadonlyArray<string> => [
  sockets.segments === 0 ? "no GSO" : `GSO of ${sockets.segments} datagrams`,
  ...[
    ["GRO", sockets.gro],
    ["don't fragment", sockets.dontFragment],
    ["ECN out", sockets.ecnSend],
    ["ECN in", sockets.ecnReceive],
    ["packet info", sockets.packetInfo],
    ["drop counter", sockets.dropCounter],
    ["timerfd", sockets.timer]
  ].map(([name, has]) => (has ? `${name}` : `no ${name}`))
]

export const doctor = Command.make(
  "doctor",
  { json },
  Effect.fnUntraced(
    function* (flags) {
      const found = yield* diagnose
      if (flags.json) return yield* printJson(found)
      for (const [what, how] of linesOf(found)) yield* print(`${what.padEnd(16)}${how}`)
    },
    Effect.provide(transport),
    Effect.provide(Logger.layer([])) // what the fallback would log stands in the diagnosis
  )
).pipe(Command.withDescription("Whether a link can work here, how fast its path is, and what would make it faster"))

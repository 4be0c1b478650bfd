/**
 * Flags that several commands share, and the layers under every command that opens a node.
 */
import { nodeSuite } from "@pure-link/keys"
import { LinkNode, StreamType } from "@pure-link/link"
import { Entropy } from "@pure-link/ports"
import { Policies } from "@pure-link/recovery"
import {
  CryptographySystem,
  DatagramSocketSystem,
  type Endpoint,
  type EndpointError,
  parseEndpoint,
  resolveHost
} from "@pure-link/udp"
import { type Address, longestName } from "@pure-link/wire"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { badInput, Failure } from "./failure.ts"
import { type Format, formats } from "./recordSource.ts"

export const json = Flag.Boolean("json").pipe(
  Flag.withDescription("Print JSON lines for a script"),
  Flag.withDefault(false)
)

export const keyFile = Flag.String("key").pipe(
  Flag.withDescription("This node's secret key file, made by `pure-link keygen` (default: pure-link.key)"),
  Flag.withDefault("pure-link.key")
)

export const format = Flag.Literals("format", formats).pipe(
  Flag.withDescription(
    "lines (default): a record per line; ndjson: the same, checked to be JSON; file: the whole file is one record"
  ),
  Flag.withDefault("lines")
)

/** How a `show` command is bounded and how its records look. */
export const showing = {
  json,
  count: Flag.Int("count").pipe(
    Flag.withDescription("At most this many records (default: 20; with --raw or --json all)"),
    Flag.optional
  ),
  raw: Flag.Boolean("raw").pipe(
    Flag.withDescription("Write the bytes of each record and a newline, nothing else"),
    Flag.withDefault(false)
  )
}

const shownToPeople = 20

/** How many records a `show` command writes. */
export const shownCount = (flags: {
  readonly count: Option.Option<number>
  readonly raw: boolean
  readonly json: boolean
}): Effect.Effect<number, Failure> => {
  if (flags.raw && flags.json) return Effect.fail(badInput("--raw and --json exclude each other; give one of them"))
  if (Option.isSome(flags.count)) return atLeastOne("--count", flags.count.value)
  return Effect.succeed(flags.raw || flags.json ? Number.MAX_SAFE_INTEGER : shownToPeople)
}

/** A whole number from 1 on, as a flag gives it. */
export const atLeastOne = (flag: string, value: number): Effect.Effect<number, Failure> =>
  value >= 1 ? Effect.succeed(value) : Effect.fail(badInput(`${flag} takes a number from 1 on, not ${value}`))

export const suite = nodeSuite

/** Sockets and cryptography of a production node: native where the machine has that, else Node's own. */
export const transport = Layer.mergeAll(DatagramSocketSystem.layer, CryptographySystem.layer)

/** And its entropy and congestion control. */
export const platform = Layer.mergeAll(transport, Entropy.layerSystem, Policies.layerDefault)

/** The stream type of raw records: both ends must name the same input and the same format. */
export const rawStream = (input: string, format: Format): Effect.Effect<StreamType<Uint8Array>, Failure> =>
  Effect.try({
    try: () => StreamType.bytes(input, format),
    catch: (error) => badInput((error as Error).message)
  })

/** `HOST:PORT` as a flag says it. */
const endpoint = (text: string): Effect.Effect<Endpoint, Failure> =>
  Effect.mapError(Effect.fromResult(parseEndpoint(text)), (error) => badInput(error.message))

/** Where a peer listens. */
export const destination = (text: string): Effect.Effect<Endpoint, Failure> =>
  Effect.filterOrFail(
    endpoint(text),
    ({ port }) => port !== 0,
    () => badInput(`${text}: nobody listens on port 0; give the port that \`serve\` printed`)
  )

/** A local address to bind, its name resolved. */
export const localAddress = (text: string): Effect.Effect<Address, EndpointError | Failure> =>
  Effect.flatMap(endpoint(text), ({ host, port }) => resolveHost(host, port))

/** A source's name, checked before any file is made for it. */
export const sourceName = (text: string): Effect.Effect<string, Failure> => {
  const bytes = Buffer.byteLength(text)
  return bytes >= 1 && bytes <= longestName
    ? Effect.succeed(text)
    : Effect.fail(badInput(`--source "${text}" has ${bytes} B; use 1 to ${longestName} B of UTF-8`))
}

/** Fails when the node dies of an error of its own: a command that would wait for ever ends instead. */
export const untilNodeFails: Effect.Effect<never, Failure, LinkNode> = Effect.gen(function* () {
  const { events } = yield* LinkNode
  yield* Stream.runForEach(events, (event) =>
    event._tag === "NodeFailed" ? Effect.fail(new Failure({ exit: 1, text: event.message })) : Effect.void
  )
  return yield* Effect.never
})

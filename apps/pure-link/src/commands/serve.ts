/**
 * `pure-link serve`: receives the streams of allowed peers into an inbox file until it is asked to end.
 */
import { formatPublicKey } from "@pure-link/keys"
import { Input, Inputs, LinkNode, type NodeOptions } from "@pure-link/link"
import { Inbox } from "@pure-link/ports"
import { InboxSqlite, MemoFile } from "@pure-link/store"
import { formatAddress } from "@pure-link/wire"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import type * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { badInput, type Failure, toFailure } from "../failure.ts"
import { readKeyFile } from "../keyFile.ts"
import { tellNotices } from "../notices.ts"
import { json, keyFile, localAddress, platform, rawStream, suite, untilNodeFails } from "../options.ts"
import { grouped, outputMayClose, print, printJson, say } from "../output.ts"
import { allPeers, parseAllow } from "../peers.ts"
import { followPeersFile, hangups, type PeersSources } from "../peersFile.ts"
import { type Format, formats } from "../recordSource.ts"
import { Shutdown } from "../shutdown.ts"

const flags = {
  key: keyFile,
  listen: Flag.String("listen").pipe(
    Flag.withDescription(
      "Address to listen on (default: 0.0.0.0:4600); port 0 takes a free one, [::]:PORT serves IPv6 and IPv4"
    ),
    Flag.withDefault("0.0.0.0:4600")
  ),
  store: Flag.String("store").pipe(
    Flag.withDescription("The inbox file, made when it does not exist (default: inbox.db)"),
    Flag.withDefault("inbox.db")
  ),
  input: Flag.String("input").pipe(
    Flag.withDescription("NAME or NAME:FORMAT (lines, ndjson, file) of an input (required; may be repeated)"),
    Flag.atLeast(1)
  ),
  allow: Flag.String("allow").pipe(
    Flag.withDescription("KEY or KEY=SOURCE,SOURCE: a peer who may send; may be repeated"),
    Flag.atLeast(0)
  ),
  peers: Flag.String("peers").pipe(
    Flag.withDescription("A file of allowed peers, one `KEY SOURCE,SOURCE` or `KEY *` a line; SIGHUP reads it again"),
    Flag.optional
  ),
  memo: Flag.String("memo").pipe(
    Flag.withDescription(
      "The memo file, which lets senders go on at once after a restart (default: the store's, with .memo)"
    ),
    Flag.optional
  ),
  noMemo: Flag.Boolean("no-memo").pipe(
    Flag.withDescription("Keep no memo: after a restart every sender needs a round trip more"),
    Flag.withDefault(false)
  ),
  json
}

interface NamedInput {
  readonly name: string
  readonly format: Format
}

const parseInput = (text: string): Effect.Effect<NamedInput, Failure> => {
  const at = text.lastIndexOf(":")
  const format = at < 0 ? "lines" : text.slice(at + 1)
  return (formats as ReadonlyArray<string>).includes(format)
    ? Effect.succeed({ name: at < 0 ? text : text.slice(0, at), format: format as Format })
    : Effect.fail(badInput(`--input ${text}: "${format}" is no format; write NAME or NAME:${formats.join("|")}`))
}

/** A peers file, and what says that it is to be read again. */
interface PeersFollowed extends PeersSources {
  readonly hangup: Latch.Latch
}

/** Says where it listens, opens the inputs, and tells how they grow until the process is asked to end. */
const run = (inputs: ReadonlyArray<NamedInput>, peers: PeersFollowed | undefined, asJson: boolean) =>
  Effect.gen(function* () {
    yield* outputMayClose
    const node = yield* LinkNode
    const inbox = yield* Inbox
    const shutdown = yield* Shutdown
    yield* tellNotices(asJson)
    for (const { format, name } of inputs) yield* Input.open(yield* rawStream(name, format))
    const address = formatAddress(node.address)
    const publicKey = formatPublicKey(node.publicKey)
    if (asJson) yield* printJson({ event: "listening", address, publicKey, inputs: inputs.map(({ name }) => name) })
    else yield* print(`listening on ${address} as ${publicKey}; inputs: ${inputs.map(({ name }) => name).join(", ")}`)
    for (const { name } of inputs) {
      const tell = (lastPosition: number) =>
        asJson
          ? printJson({ event: "stored", input: name, lastPosition })
          : say(`${name}: ${grouped(lastPosition)} stored in all`)
      // A slow reader of `grown` sees only the newest position: at most a line a second, and the last one always.
      yield* Stream.runForEach(
        Stream.filter(inbox.grown(name), (position) => position > 0),
        (position) => Effect.andThen(tell(position), Effect.sleep("1 second"))
      ).pipe(Effect.forkScoped)
    }
    if (peers !== undefined) yield* Effect.forkScoped(followPeersFile(peers.hangup, peers, asJson))
    yield* Effect.raceFirst(shutdown.requested, untilNodeFails)
    yield* say("closing")
  }).pipe(Effect.scoped)

/** The memo's file, unless there is to be none. */
const memoFile = (options: {
  readonly memo: Option.Option<string>
  readonly noMemo: boolean
  readonly store: string
}): Effect.Effect<string | undefined, Failure> => {
  if (options.noMemo && Option.isSome(options.memo)) {
    return Effect.fail(badInput("--memo and --no-memo exclude each other; give one of them"))
  }
  return Effect.succeed(options.noMemo ? undefined : Option.getOrElse(options.memo, () => `${options.store}.memo`))
}

/** Where a test build of `serve` looks in: around the inbox, and at the machines' events. */
export interface ServeSeams {
  readonly aroundInbox: <E>(inbox: Layer.Layer<Inbox, E>) => Layer.Layer<Inbox, E>
  readonly node?: Pick<NodeOptions, "trace" | "faults">
}

export const makeServe = (seams: ServeSeams) =>
  Command.make(
    "serve",
    flags,
    Effect.fnUntraced(
      function* (options) {
        const identity = yield* readKeyFile(suite, options.key)
        const inputs = yield* Effect.forEach(options.input, parseInput)
        const named = yield* Effect.forEach(options.allow, parseAllow)
        const file = Option.getOrUndefined(options.peers)
        // Before the file is read: a change of it that is told meanwhile is not missed, nor the end of the process.
        const hangup = file === undefined ? undefined : yield* hangups
        const peers = yield* allPeers(named, file)
        const memo = yield* memoFile(options)
        const listen = yield* localAddress(options.listen)
        const layers = Inputs.layer({ peers }).pipe(
          Layer.provideMerge(LinkNode.layer({ identity, listen, ...seams.node })),
          // What takes time is open before the socket is: a datagram that arrives is read at once.
          Layer.provideMerge(seams.aroundInbox(InboxSqlite.layer({ file: options.store }))),
          Layer.provideMerge(
            memo === undefined
              ? Layer.empty
              : MemoFile.layer({ file: memo, publicKey: identity.publicKey, movesAside: Option.isNone(options.memo) })
          ),
          Layer.provide(platform)
        )
        const followed =
          file === undefined || hangup === undefined ? undefined : { named, file, present: peers, hangup }
        yield* run(inputs, followed, options.json).pipe(Effect.provide(layers))
      },
      Effect.scoped,
      Effect.mapError(toFailure)
    )
  ).pipe(Command.withDescription("Receive the streams of allowed peers into an inbox file"))

export const serve = makeServe({ aroundInbox: (inbox) => inbox })

/**
 * `pure-link send`: puts the records of a source into an outbox file and moves them to a peer, until everything is
 * stored there.
 */
import { LinkNode, Output } from "@pure-link/link"
import { Outbox } from "@pure-link/ports"
import { OutboxSqlite } from "@pure-link/store"
import { resolveHost } from "@pure-link/udp"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { hostname } from "node:os"
import { badInput, ExitCode, Failure, toFailure } from "../failure.ts"
import { readPublicKey, readKeyFile } from "../keyFile.ts"
import { tellNotices } from "../notices.ts"
import {
  destination,
  format,
  json,
  keyFile,
  localAddress,
  platform,
  rawStream,
  sourceName,
  suite,
  untilNodeFails
} from "../options.ts"
import { grouped, outputMayClose, printJson, records, say } from "../output.ts"
import { type OpenSource, openSource } from "../recordFile.ts"
import { readRecords, type RecordChunk } from "../recordSource.ts"
import { refusalOf } from "../refusal.ts"
import { Shutdown } from "../shutdown.ts"

const flags = {
  file: Argument.String("file").pipe(
    Argument.withDescription("Where records come from; - or nothing for standard input"),
    Argument.withDefault("-")
  ),
  key: keyFile,
  to: Flag.String("to").pipe(Flag.withDescription("HOST:PORT of the receiving node (required)")),
  peer: Flag.String("peer").pipe(Flag.withDescription("The receiving node's public key (required)")),
  input: Flag.String("input").pipe(Flag.withDescription("The input to send into (required)")),
  source: Flag.String("source").pipe(
    Flag.withDescription("The name of this stream's source (default: this host's name)"),
    Flag.optional
  ),
  outbox: Flag.String("outbox").pipe(
    Flag.withDescription("The outbox file, made when it does not exist; one per source and input (default: outbox.db)"),
    Flag.withDefault("outbox.db")
  ),
  format,
  listen: Flag.String("listen").pipe(
    Flag.withDescription("Local address to send from (default: [::]:0, any)"),
    Flag.withDefault("[::]:0")
  ),
  again: Flag.Boolean("again").pipe(
    Flag.withDescription("Send the whole file, also what an earlier call put into the outbox"),
    Flag.withDefault(false)
  ),
  keepTrying: Flag.Boolean("keep-trying").pipe(
    Flag.withDescription("When the receiver refuses, wait until it accepts instead of ending"),
    Flag.withDefault(false)
  ),
  json
}

/** How long a process that was asked to end waits for what is under way. */
const drainTime = "2 seconds"

/** Fails when the output meets what does not end by waiting. */
const untilRefused = (output: Output<Uint8Array>, keepTrying: boolean): Effect.Effect<never, Failure> =>
  Stream.runForEach(output.changes, (state) => {
    const failure = refusalOf(state)
    return failure === undefined || (keepTrying && state._tag === "Refused") ? Effect.void : Effect.fail(failure)
  }).pipe(Effect.andThen(Effect.never))

/** A line a second while there is something to tell. */
const tellProgress = (output: Output<Uint8Array>, last: () => number, asJson: boolean): Effect.Effect<never> =>
  Effect.gen(function* () {
    let told = yield* output.storedThrough
    for (;;) {
      yield* Effect.sleep("1 second")
      const through = yield* output.storedThrough
      if (through === told) continue
      told = through
      yield* asJson
        ? printJson({ event: "stored", through, last: last() })
        : say(`${grouped(through)} stored of ${grouped(last())} read so far`)
    }
  })

/** Iterates, and when the consumer ends early closes the source first: a read that waits for it would not end. */
const closing = <A>(chunks: AsyncGenerator<A, void, void>, close: () => void): AsyncIterable<A> => ({
  [Symbol.asyncIterator]: () => ({
    next: () => chunks.next(),
    return: () => {
      close()
      return chunks.return()
    }
  })
})

export const send = Command.make(
  "send",
  flags,
  Effect.fnUntraced(function* (options) {
    const identity = yield* readKeyFile(suite, options.key)
    const publicKey = yield* readPublicKey(options.peer)
    const lookUp = yield* Effect.map(destination(options.to), ({ host, port }) => resolveHost(host, port))
    if (Buffer.compare(publicKey, identity.publicKey) === 0) {
      return yield* Effect.fail(
        badInput("--peer is this node's own key; give the key that `keygen` printed on the receiving node")
      )
    }
    yield* lookUp
    const listen = yield* localAddress(options.listen)
    const type = yield* rawStream(options.input, options.format)
    const source = yield* sourceName(Option.getOrElse(options.source, hostname))
    const stream = { source, input: type.input, shape: type.shape }
    const layers = LinkNode.layer({ identity, listen }).pipe(
      Layer.provideMerge(OutboxSqlite.layer({ file: options.outbox, stream })),
      Layer.provide(platform)
    )

    yield* Effect.gen(function* () {
      const outbox = yield* Outbox
      const shutdown = yield* Shutdown
      yield* outputMayClose
      yield* tellNotices(options.json)
      const started = yield* Clock.monotonicTimeNanos
      const output = yield* Output.open(type, { source, peer: { publicKey, address: lookUp } })
      if (options.json) yield* printJson({ event: "opened", held: outbox.state().last - outbox.state().lowestHeld + 1 })
      let appended = 0
      let isRead = false
      const append = (chunk: RecordChunk, { markAt, producer }: OpenSource) =>
        output.appendBatch(chunk, producer === undefined ? undefined : { producer, position: markAt(chunk.end) }).pipe(
          Effect.tap(() =>
            Effect.sync(() => {
              appended += chunk.sizes.length
            })
          )
        )

      const appendAll = Effect.gen(function* () {
        const from = yield* openSource(options.file, {
          format: options.format,
          noted: (producer) => (options.again ? undefined : outbox.producerPosition(producer))
        })
        if (from.note !== undefined) yield* say(from.note)
        // A process that was asked to end closes its source, which also wakes a read that waits for standard input.
        yield* Effect.forkScoped(Effect.andThen(shutdown.requested, Effect.sync(from.close)))
        const chunks = async function* () {
          try {
            const { bytes, name, offset } = from
            const skipEmpty = from.producer === undefined
            if (bytes !== undefined) yield* readRecords(bytes, { format: options.format, name, offset, skipEmpty })
            isRead = !shutdown.isRequested()
          } catch (error) {
            if (error instanceof Failure || !shutdown.isRequested()) throw error
          }
        }
        yield* Stream.fromAsyncIterable(closing(chunks(), from.close), (error) =>
          error instanceof Failure ? error : from.failed(error)
        ).pipe(Stream.runForEach((chunk) => append(chunk, from)))
      })

      const drained = output.drained.pipe(Effect.asVoid)
      const interrupted = new Failure({
        exit: ExitCode.interrupted,
        text: "interrupted before everything was stored; the rest waits in the outbox: start the same command again"
      })
      const giveUp = shutdown.requested.pipe(
        Effect.andThen(Effect.sleep(drainTime)),
        Effect.andThen(Effect.fail(interrupted))
      )
      yield* Effect.forkScoped(tellProgress(output, () => outbox.state().last, options.json))
      yield* appendAll.pipe(
        Effect.andThen(drained),
        Effect.andThen(Effect.suspend(() => (isRead ? Effect.void : Effect.fail(interrupted)))),
        Effect.raceFirst(untilRefused(output, options.keepTrying)),
        Effect.raceFirst(giveUp),
        Effect.raceFirst(untilNodeFails)
      )
      const stored = yield* output.storedThrough
      const seconds = Number(((yield* Clock.monotonicTimeNanos) - started) / 1_000_000n) / 1_000
      if (options.json) yield* printJson({ event: "done", appended, stored, seconds })
      else
        yield* say(
          `${records(appended)} appended, ${grouped(stored)} stored at ${options.to} in all, ${seconds.toFixed(2)} s`
        )
    }).pipe(Effect.scoped, Effect.provide(layers))
  }, Effect.mapError(toFailure))
).pipe(
  Command.withDescription("Put records into an outbox file and move them to a peer, until everything is stored there")
)

import { Input, Inputs, LinkNode } from "@pure-link/link"
import type { Address } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { Consumer } from "../consumer.ts"
import type { Arrivals, Goodput } from "../goodput.ts"
import { receiverIdentity, senderIdentity } from "../identities.ts"
import type { Strictness } from "../pattern.ts"
import { inboxLayer, nodeLayer, type Platform, source, storeFiles, stream, systemLayer } from "../platform.ts"
import { ProcessWatch, type ProcessUsage } from "../processWatch.ts"
import { type Work, workOf } from "../sample.ts"

/**
 * The receiving end: a node with one input, whose consumer takes batches, looks at every record and prunes what it has
 * read.
 */

export interface ReceiveOptions extends Platform {
  readonly listen: Address
  /** Ends once so many records were read; else when `until` succeeds. */
  readonly count?: number | undefined
  readonly strictness: Strictness
  /** Left out of `after_skip`. */
  readonly skipSeconds: number
}

export interface ReceiveHooks {
  /** The socket is bound: from now on `work` tells what has been done. */
  readonly listening: (port: number, work: () => Work, watch: ProcessWatch) => void
  /** After every batch. */
  readonly progress: (messages: number) => void
  /** Succeeds when it is to end. */
  readonly until: Effect.Effect<void>
}

export interface ReceiveReport extends Goodput, ProcessUsage {
  readonly role: "recv"
  readonly bad: number
  readonly packets: number
  readonly answers: number
  readonly after_skip: Goodput | null
  readonly p50_ms?: number
  readonly p99_ms?: number
  readonly max_ms?: number
}

export interface Received {
  readonly report: ReceiveReport
  readonly arrivals: Arrivals
  readonly memorySeries: ReadonlyArray<number>
}

/** Nothing came for so long: the peer has learnt that all is STORED. */
const quietMillis = 400
const longestLingerMillis = 5_000

export const receive = (options: ReceiveOptions, hooks: ReceiveHooks) => {
  const node = nodeLayer({ identity: receiverIdentity, listen: options.listen })
  const inputs = Inputs.layer({ peers: [{ publicKey: senderIdentity.publicKey, sources: [source] }] })
  const layers = inputs.pipe(
    Layer.provide(inboxLayer(options)),
    Layer.provideMerge(node),
    Layer.provide(systemLayer(options))
  )
  return receiving(options, hooks).pipe(Effect.scoped, Effect.provide(layers))
}

const receiving = Effect.fnUntraced(function* (options: ReceiveOptions, hooks: ReceiveHooks) {
  const node = yield* LinkNode
  const input = yield* Input.open(stream)
  const consumer = new Consumer(options)
  const watch = yield* watching(options, "recv")
  const work = () => workOf(Effect.runSync(node.counters), consumer.records, consumer.bytes)
  hooks.listening(node.address.port, work, watch)
  const prune = yield* pruning(input)
  const reading = input.batchesFrom(0).pipe(
    Stream.map((batch) => {
      if (!consumer.arrivals.hasBegun) watch.begin()
      consumer.take(batch)
      prune(batch.end)
      hooks.progress(consumer.records)
      return consumer.records
    }),
    Stream.takeUntil((records) => options.count !== undefined && records >= options.count),
    Stream.runDrain
  )
  yield* Effect.raceFirst(reading, hooks.until)
  const { usage } = watch
  yield* untilQuiet(work)
  return receivedOf(consumer, watch, usage, work())
})

/** Gives what prunes an input, beside what else goes on: one transaction at a time, up to the newest position. */
const pruning = Effect.fnUntraced(function* (input: Input<Uint8Array>) {
  const asked = Latch.makeUnsafe(false)
  let through = 0
  yield* Effect.suspend(() => {
    asked.closeUnsafe()
    return input.prune(through)
  }).pipe(Effect.andThen(asked.await), Effect.forever, Effect.forkScoped)
  return (position: number): void => {
    through = position
    asked.openUnsafe()
  }
})

/** Watches the process until the scope closes. */
export const watching = (platform: Platform, end: "send" | "recv") =>
  Effect.acquireRelease(
    Effect.sync(() => new ProcessWatch(storeFiles(platform, end))),
    (watch) => Effect.sync(() => watch.close())
  )

const untilQuiet = Effect.fnUntraced(function* (work: () => Work) {
  for (let waited = 0; waited < longestLingerMillis; waited += quietMillis) {
    const before = work().datagramsReceived
    yield* Effect.sleep(quietMillis)
    if (work().datagramsReceived === before) return
  }
})

const receivedOf = (consumer: Consumer, watch: ProcessWatch, usage: ProcessUsage, work: Work): Received => ({
  report: {
    role: "recv",
    ...consumer.arrivals.whole,
    ...usage,
    bad: consumer.check.bad,
    packets: work.datagramsReceived,
    answers: work.answers,
    after_skip: consumer.arrivals.afterSkip ?? null,
    ...consumer.latencies.summary
  },
  arrivals: consumer.arrivals,
  memorySeries: watch.memorySeries
})

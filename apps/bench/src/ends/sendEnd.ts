import { LinkNode, Output } from "@pure-link/link"
import type { Address } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Goodput } from "../goodput.ts"
import { receiverIdentity, senderIdentity } from "../identities.ts"
import { outboxLayer, nodeLayer, type Platform, source, stream, systemLayer } from "../platform.ts"
import type { ProcessUsage, ProcessWatch } from "../processWatch.ts"
import { type Feed, steadyFeed, ratedFeed } from "../feed.ts"
import { type Work, workOf } from "../sample.ts"
import { rounded } from "../verdict.ts"
import { watching } from "./receiveEnd.ts"

/**
 * The sending end: a node with one output that is fed as fast as its outbox takes records, or at a rate, and then waits
 * until all is STORED.
 */

export interface SendOptions extends Platform {
  readonly to: Address
  readonly size: number
  readonly count?: number | undefined
  readonly seconds?: number | undefined
  /** Records a second, each appended alone with its send time; as fast as possible without. */
  readonly rate?: number | undefined
  /** Bytes of records that the outbox holds at most. */
  readonly limitBytes: number
  /** When it is asked to end early, what was appended gets so long to be STORED. */
  readonly drainSeconds: number
}

export interface SendHooks {
  readonly opened: (node: LinkNode["Service"], work: () => Work, watch: ProcessWatch) => void
  /** After every append, with the records appended and those STORED so far. */
  readonly progress: (appended: number, stored: number) => void
  /** Succeeds when it is to stop appending. */
  readonly until: Effect.Effect<void>
}

export interface SendReport extends Goodput, ProcessUsage {
  readonly role: "send"
  readonly appended: number
  /** Appended and not STORED when it ended. */
  readonly bad: number
  readonly packets: number
  readonly answers: number
}

export interface Sent {
  readonly report: SendReport
  readonly memorySeries: ReadonlyArray<number>
}

export const send = (options: SendOptions, hooks: SendHooks) => {
  const layers = Layer.merge(
    outboxLayer(options, options.limitBytes),
    nodeLayer({ identity: senderIdentity, listen: { host: anyHost(options.to.host), port: 0 } })
  ).pipe(Layer.provide(systemLayer(options)))
  return sending(options, hooks).pipe(Effect.scoped, Effect.provide(layers))
}

const anyHost = (host: string): string => (host.includes(":") ? "::" : "0.0.0.0")

const sending = Effect.fnUntraced(function* (options: SendOptions, hooks: SendHooks) {
  const node = yield* LinkNode
  const output = yield* Output.open(stream, {
    source,
    peer: { publicKey: receiverIdentity.publicKey, address: options.to }
  })
  const stored = () => Effect.runSync(output.storedThrough)
  const work = () => workOf(Effect.runSync(node.counters), stored(), stored() * options.size)
  const watch = yield* watching(options, "send")
  hooks.opened(node, work, watch)
  const feed: Feed =
    options.rate === undefined ? steadyFeed(output, options) : ratedFeed(output, { ...options, rate: options.rate })
  const begun = performance.now()
  watch.begin()
  const interrupted = yield* Effect.raceFirst(
    Effect.as(
      feed.run((appended) => hooks.progress(appended, stored())),
      false
    ),
    Effect.as(hooks.until, true)
  )
  const patience = interrupted ? Effect.sleep(options.drainSeconds * 1_000) : hooks.until
  yield* Effect.raceFirst(Effect.asVoid(output.drained), patience)
  return sentOf(feed.appended(), stored(), options.size, (performance.now() - begun) / 1_000, watch, work())
})

const sentOf = (
  appended: number,
  stored: number,
  size: number,
  seconds: number,
  watch: ProcessWatch,
  work: Work
): Sent => ({
  report: {
    role: "send",
    messages: stored,
    bytes: stored * size,
    seconds: rounded(seconds, 4),
    mbit_s: rounded((stored * size * 8) / seconds / 1e6, 4),
    ...watch.usage,
    appended,
    bad: appended - stored,
    packets: work.datagramsSent,
    answers: work.answers
  },
  memorySeries: watch.memorySeries
})

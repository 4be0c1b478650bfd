/**
 * The receiving half of a node: one receiver machine on the node's socket, one inbox, and the peers who may send.
 */
import { Inbox, type InputSummary, Memo, type StoreError } from "@pure-link/ports"
import { type AllowedPeer, Receiver } from "@pure-link/receiver"
import type { Bytes, StreamName } from "@pure-link/wire"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { Intake } from "./Intake.ts"
import { LinkNode } from "./LinkNode.ts"

export interface InputsOptions {
  /** Who may send, and as which sources. Anybody else is met with silence. */
  readonly peers: ReadonlyArray<AllowedPeer>
  /** Memory for records of one stream that wait to be complete or stored: 16 MiB by default (spec §10.7). */
  readonly streamBytes?: Bytes
  /** The same for all streams together: 256 MiB by default. */
  readonly totalBytes?: Bytes
  /** Live runs of all peers together, about 8 KiB each; one beyond is refused (spec §12.4). 32,768 by default. */
  readonly mostLiveRuns?: number
}

/** A peer could not be allowed. */
export class UnusablePeer extends Data.TaggedError("UnusablePeer")<{ readonly detail: string }> {
  override get message(): string {
    return `a peer cannot be allowed: ${this.detail}; correct its public key, or generate another key pair for it`
  }
}

/** The node has a receiver already. */
export class ReceiverPresent extends Data.TaggedError("ReceiverPresent")<{}> {
  override get message(): string {
    return "the node already receives; provide one Inputs layer and share it"
  }
}

/** What receives on a node. Use `Input.open` to declare inputs. */
export class Inputs extends Context.Service<
  Inputs,
  {
    /** Allows a peer, or changes which sources it may send as; effective with its next packet. */
    readonly allow: (peer: AllowedPeer) => Effect.Effect<void, UnusablePeer>
    /** Disallows a peer: from now on it is met with silence. What it stored stays. */
    readonly revoke: (publicKey: Uint8Array) => Effect.Effect<void>
    /** What the inbox holds, by input. */
    readonly summaries: Effect.Effect<ReadonlyArray<InputSummary>, StoreError>
    /** Looks at the inbox's cursors again, after somebody else changed them. */
    readonly revise: Effect.Effect<void>
    /**
     * Forgets the retired generations of a stream, and succeeds with their number: the way on when a new outbox is
     * refused with reason 6 because 64 were replaced already (spec §8.3). Old outboxes that still run count as new then.
     */
    readonly forgetRetired: (name: StreamName) => Effect.Effect<number, StoreError>
    /** What `Input.open` works on; applications have no use for it. */
    readonly seam: Intake
  }
>()("@pure-link/link/Inputs") {
  /**
   * Attaches a receiver to the node, with the inbox in the context, until the scope closes. Refuses all inputs until
   * they are opened. With a `Memo` in the context too, a restarted receiver goes on with its peers' runs at once;
   * without one they begin fresh runs (spec §12).
   */
  static readonly layer = (
    options: InputsOptions
  ): Layer.Layer<Inputs, UnusablePeer | ReceiverPresent, LinkNode | Inbox> => Layer.effect(Inputs, attach(options))
}

const attach = Effect.fnUntraced(function* (options: InputsOptions) {
  const { seam } = yield* LinkNode
  const inbox = yield* Inbox
  const remembered = Option.getOrUndefined(yield* Effect.serviceOption(Memo))
  if (seam.driver.receiver) return yield* new ReceiverPresent()
  const { epochLimits, faults } = seam.options
  const machine = new Receiver({
    suite: seam.suite,
    entropy: seam.entropy,
    identity: seam.options.identity,
    cursors: inbox,
    trace: seam.trace,
    ...(remembered && { memo: remembered.memo }),
    ...(epochLimits && { epochLimits }),
    ...(faults && { faults }),
    ...(options.streamBytes === undefined ? {} : { streamBytes: options.streamBytes }),
    ...(options.totalBytes === undefined ? {} : { totalBytes: options.totalBytes }),
    ...(options.mostLiveRuns === undefined ? {} : { mostLiveRuns: options.mostLiveRuns })
  })
  const intake = new Intake(seam, machine, inbox)
  const allow = (peer: AllowedPeer) =>
    Effect.try({
      try: () => intake.change((machine) => machine.allow(peer)),
      catch: (error) => new UnusablePeer({ detail: error instanceof Error ? error.message : String(error) })
    })
  for (const peer of options.peers) yield* allow(peer)
  if (remembered?.rebuilt !== undefined) intake.reportRebuilt(remembered.rebuilt)
  yield* intake.start
  const revise = Effect.sync(() => intake.change((machine, now) => machine.revise(now)))
  return Inputs.of({
    allow,
    revoke: (publicKey) => Effect.sync(() => intake.change((machine) => machine.revoke(publicKey))),
    summaries: inbox.summaries,
    revise,
    forgetRetired: (name) => Effect.tap(inbox.forgetRetired(name), () => revise),
    seam: intake
  })
})

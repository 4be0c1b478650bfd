/**
 * The receiving half of a node: one receiver machine on the node's socket, one inbox, and the peers who may send.
 */
import { Inbox, type InputSummary, type StoreError } from "@pure-link/ports"
import { type AllowedPeer, Receiver } from "@pure-link/receiver"
import type { Bytes } from "@pure-link/wire"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Intake } from "./Intake.ts"
import { LinkNode } from "./LinkNode.ts"

export interface InputsOptions {
  /** Who may send, and as which sources. Anybody else is met with silence. */
  readonly peers: ReadonlyArray<AllowedPeer>
  /** Memory for records of one stream that wait to be complete or stored: 16 MiB by default (spec §10.7). */
  readonly streamBytes?: Bytes
  /** The same for all streams together: 256 MiB by default. */
  readonly totalBytes?: Bytes
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
    /** What `Input.open` works on; applications have no use for it. */
    readonly seam: Intake
  }
>()("@pure-link/link/Inputs") {
  /**
   * Attaches a receiver to the node, with the inbox in the context, until the scope closes. Refuses all inputs until
   * they are opened.
   */
  static readonly layer = (
    options: InputsOptions
  ): Layer.Layer<Inputs, UnusablePeer | ReceiverPresent, LinkNode | Inbox> => Layer.effect(Inputs, attach(options))
}

const attach = Effect.fnUntraced(function* (options: InputsOptions) {
  const { seam } = yield* LinkNode
  const inbox = yield* Inbox
  if (seam.driver.receiver) return yield* new ReceiverPresent()
  const machine = new Receiver({
    suite: seam.suite,
    entropy: seam.entropy,
    identity: seam.options.identity,
    cursors: inbox,
    trace: seam.trace,
    ...(seam.options.faults && { faults: seam.options.faults }),
    ...(options.streamBytes === undefined ? {} : { streamBytes: options.streamBytes }),
    ...(options.totalBytes === undefined ? {} : { totalBytes: options.totalBytes })
  })
  const intake = new Intake(seam, machine, inbox)
  const allow = (peer: AllowedPeer) =>
    Effect.try({
      try: () => intake.change((machine) => machine.allow(peer)),
      catch: (error) => new UnusablePeer({ detail: error instanceof Error ? error.message : String(error) })
    })
  for (const peer of options.peers) yield* allow(peer)
  yield* intake.start
  return Inputs.of({
    allow,
    revoke: (publicKey) => Effect.sync(() => intake.change((machine) => machine.revoke(publicKey))),
    summaries: inbox.summaries,
    revise: Effect.sync(() => intake.change((machine, now) => machine.revise(now))),
    seam: intake
  })
})

/**
 * What an output is doing, as its application sees it, and the reasons with their remedies.
 */
import { type Address, formatAddress, type Id64, type Micros, type RecordNumber, RefusalReason } from "@pure-link/wire"
import type { StoreError } from "@pure-link/ports"
import * as Data from "effect/Data"

/**
 * The state of an output.
 * - `Idle`: everything appended is STORED.
 * - `Sending`: records wait to be sent or to be STORED, and nothing is known to be in the way.
 * - `Resolving`: the peer's address could not be found yet; it is looked up again and again.
 * - `Refused`: the receiver refuses the stream; everything is kept and tried again by itself (spec §9.10).
 * - `Silent`: no answer for 10 s or more while waiting for one (spec §9.9).
 * - `InboxBehind`: the receiver's inbox lacks records that this outbox no longer holds (spec §8.7).
 * - `Failed`: the outbox lacks a record or has ended; this output stops for good, once what it could read is STORED.
 * - `Forked`: another life of this outbox wrote to the same stream; this output has stopped for good (spec §8.5).
 */
export type OutputState =
  | { readonly _tag: "Idle" }
  | { readonly _tag: "Sending" }
  | { readonly _tag: "Resolving"; readonly detail: string }
  | { readonly _tag: "Refused"; readonly reason: RefusalReason; readonly remedy: string }
  | { readonly _tag: "Silent"; readonly since: Micros; readonly remedy: string }
  | { readonly _tag: "InboxBehind"; readonly n: RecordNumber; readonly remedy: string }
  | { readonly _tag: "Failed"; readonly error: StoreError; readonly remedy: string }
  | { readonly _tag: "Forked"; readonly error: ForkedOutbox }

/**
 * The outbox is a copy (a restored backup, a cloned disk): the receiver holds records under its name that it did not
 * write. The output has stopped for good and removed nothing (spec §8.5).
 */
export class ForkedOutbox extends Data.TaggedError("ForkedOutbox")<{
  readonly source: string
  readonly input: string
  /** The receiver's last stored number. */
  readonly n: RecordNumber
  readonly detail: string
}> {
  override get message(): string {
    return (
      `the outbox of "${this.source}" for "${this.input}" is a copy of another (${this.detail}, n = ${this.n}); ` +
      "make a new outbox and append what is missing to it: the old one keeps all that it holds"
    )
  }
}

/** The output or its node was closed first. What was appended stays in the outbox and goes out with the next life. */
export class OutputClosed extends Data.TaggedError("OutputClosed")<{
  readonly source: string
  readonly input: string
}> {
  override get message(): string {
    return (
      `the output of "${this.source}" for "${this.input}" was closed first; ` +
      "the records are safe in the outbox, open it again to go on"
    )
  }
}

/** The outbox was made for another stream than the one it was opened for. */
export class WrongOutbox extends Data.TaggedError("WrongOutbox")<{
  readonly expected: { readonly source: string; readonly input: string; readonly shape: Id64 }
  readonly found: { readonly source: string; readonly input: string; readonly shape: Id64 }
}> {
  override get message(): string {
    const say = (name: { readonly source: string; readonly input: string; readonly shape: Id64 }) =>
      `"${name.source}" → "${name.input}", shape ${formatShape(name.shape)}`
    return (
      `the outbox is of ${say(this.found)}, not of ${say(this.expected)}; ` +
      "drain it with the stream type it was made for, or open another outbox file"
    )
  }
}

/** A public key that no X25519 key pair has, or that agrees on nothing (spec §6.1). */
export class InvalidPeerKey extends Data.TaggedError("InvalidPeerKey")<{ readonly detail: string }> {
  override get message(): string {
    return `the peer's public key is unusable: ${this.detail}; copy the 32 B public key that the peer's keygen printed`
  }
}

/** Sixteen hexadecimal digits. */
export const formatShape = (shape: Id64): string => shape.toString(16).padStart(16, "0")

/** What a refusal means and what to do about it (spec §11.1). */
export const refusalRemedy = (reason: RefusalReason): string => {
  switch (reason) {
    case RefusalReason.noSuchInput:
      return "the receiver has no such input; open it there, or correct the input's name here"
    case RefusalReason.otherShape:
      return (
        "the receiver's input has another record type; deploy the same stream type on both nodes; " +
        "on the command line, `send --format` and `serve --input NAME:FORMAT` need the same format"
      )
    case RefusalReason.sourceNotAllowed:
      return "this key may not send as that source; add the source to this key's entry in the receiver's peers"
    case RefusalReason.forkedOutbox:
      return "the receiver holds records of this stream that another copy of the outbox wrote; make a new outbox"
    case RefusalReason.recordsGone:
      return (
        "the receiver's inbox lacks records that this outbox no longer holds; restore a newer copy of the inbox, " +
        "stop a second receiver that runs on a copy of it, or send from a new outbox, which starts anew there"
      )
    case RefusalReason.retiredGeneration:
      return (
        "another outbox file sends as this source now and has replaced this one; its records are kept in its file: " +
        "look at them with `pure-link outbox show`, and append what is missing to the new outbox, " +
        "or send under another source name; if this one is new, 64 others were replaced before it: " +
        "let the receiver forget those with `pure-link inbox forget-retired`"
      )
    case RefusalReason.tooManyRuns:
      return "the receiver serves its most runs for this key; close outputs, or wait for old ones to end"
  }
}

/** What to check when nobody answers: the sender's side has to say it by itself (spec §9.9). */
export const silenceRemedy = (peerKey: string, address: Address | undefined, ownKey: string): string =>
  `no answer from ${address ? formatAddress(address) : "an unresolved address"}: check that the node runs there, ` +
  `that its public key is ${peerKey}, that its peers list ${ownKey}, and that firewalls let UDP through`

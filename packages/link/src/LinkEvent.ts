/**
 * What happens on a node that an operator may want to know: one event, one log line (spec §9.9, §11.3).
 */
import type { Address, Epoch, Micros, RefusalReason } from "@pure-link/wire"

interface Told {
  /** When, on the node's monotonic clock. */
  readonly at: Micros
  readonly level: "debug" | "info" | "warning" | "error"
  /** One line for a person, with what to do where there is something to do. */
  readonly message: string
}

/** A stream by name, as both ends call it. */
interface Named {
  readonly source: string
  readonly input: string
}

/** Everything a node reports. Ended conditions are reported too. */
export type LinkEvent =
  /** `link_refused`: the receiver began to refuse one of our outputs. */
  | (Told & Named & { readonly _tag: "OutputRefused"; readonly reason: RefusalReason })
  | (Told & Named & { readonly _tag: "OutputAccepted" })
  | (Told & Named & { readonly _tag: "OutputSilent" })
  | (Told & Named & { readonly _tag: "OutputAnswered" })
  | (Told & Named & { readonly _tag: "OutputForked" })
  | (Told & Named & { readonly _tag: "InboxBehind" })
  /** Answers come from two receivers in turn: a key or an inbox was copied (spec §9.5). */
  | (Told & Named & { readonly _tag: "TwoReceivers" })
  /** The receiver said that it has lost the run: a fresh one began, and what was not STORED is sent again (spec §12.3). */
  | (Told & Named & { readonly _tag: "RunLost" })
  /** The path to the peer is another one: window, round trip time and path MTU start again (spec §13.3). */
  | (Told & Named & { readonly _tag: "PathChanged" })
  | (Told & Named & { readonly _tag: "EpochAdvanced"; readonly epoch: Epoch })
  /** The receiver forgot the run; records wait for a new epoch (spec §9.8). */
  | (Told & Named & { readonly _tag: "SilentRecovery" })
  | (Told & Named & { readonly _tag: "AddressUnknown" })
  | (Told & Named & { readonly _tag: "AddressFound"; readonly address: Address })
  /** The application moved the output to another address. */
  | (Told & Named & { readonly _tag: "OutputRedirected"; readonly address: Address })
  /** `listener_refused`: our receiver began to refuse a peer's stream. */
  | (Told & Named & { readonly _tag: "InputRefused"; readonly reason: RefusalReason })
  | (Told & Named & { readonly _tag: "InputAccepted" })
  /** Anything else that the receiver machine reports, under its own name. */
  | (Told & Named & { readonly _tag: "ReceiverNotice"; readonly notice: string })
  /** The memo on disk could not be used, or not all of it: peers that it held begin fresh runs (spec §12.1). */
  | (Told & { readonly _tag: "MemoRebuilt" })
  /** The memo cannot be written, or is full: peers begin fresh runs after a restart, and lose nothing. */
  | (Told & { readonly _tag: "MemoTrouble" })
  | (Told & { readonly _tag: "MemoWorks" })
  | (Told & { readonly _tag: "StoreTrouble"; readonly store: "outbox" | "inbox" })
  | (Told & { readonly _tag: "StoreWorks"; readonly store: "outbox" | "inbox" })
  /** The output has stopped for good: its outbox lacks a record or has ended. */
  | (Told & Named & { readonly _tag: "OutputFailed" })
  /** A defect ended a fiber of the node, or its inbox has ended: all its outputs are closed, readers of inputs fail. */
  | (Told & { readonly _tag: "NodeFailed" })
  | (Told & { readonly _tag: "SocketFailed"; readonly address: Address })
  | (Told & { readonly _tag: "SocketReopened"; readonly address: Address })

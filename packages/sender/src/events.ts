import type { Epoch, Micros, RecordNumber, RefusalReason } from "@pure-link/wire"

/** What a sender link tells its driver; polled, in order. */
export type SenderEvent =
  /** Records up to n are in the inbox: the outbox may remove them. Of several in a row only the last is kept. */
  | { readonly _tag: "Stored"; readonly n: RecordNumber; readonly at: Micros }
  /** The receiver refuses the stream, or for another reason than before (spec §9.10). */
  | { readonly _tag: "Refused"; readonly reason: RefusalReason }
  | { readonly _tag: "RefusalEnded" }
  /** No answer for 10 s, waiting since this time (spec §9.9). */
  | { readonly _tag: "Silent"; readonly sinceMicros: Micros }
  | { readonly _tag: "SilenceEnded" }
  /** The outbox is not the one that the inbox knows: the link has stopped for good (spec §8.5). */
  | { readonly _tag: "Forked"; readonly n: RecordNumber; readonly detail: string }
  /** More than 8 switches of reply run in 10 s: two receivers answer (spec §9.5). */
  | { readonly _tag: "ReplyRunsFlapping" }
  | { readonly _tag: "EpochAdvanced"; readonly epoch: Epoch }
  /** Nothing was answered for long enough that a new epoch is offered in epoch 0 (spec §9.8). */
  | { readonly _tag: "SilentRecovery" }
  /** The receiver had lost the run, and a fresh one began: with records at once, or with an offer only (spec §12.3). */
  | { readonly _tag: "RunLost"; readonly withRecords: boolean }
  /** The path is another one: window, round trip and path MTU started again (spec §13.3). */
  | { readonly _tag: "PathChanged" }
  /** The inbox lacks records that were STORED and removed (spec §8.7); n is what it has. */
  | { readonly _tag: "InboxBehind"; readonly n: RecordNumber }

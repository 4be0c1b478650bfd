import { silentTrace, type Trace } from "@pure-link/trace"
import type { Address, Id64, Micros, RefusalReason, StreamCursor } from "@pure-link/wire"
import type { ReceiverRun } from "./run.ts"

/** What a receiver tells its driver; polled, in order. Names are "" where the run has not told its stream. */

interface OfStream {
  readonly at: Micros
  readonly source: string
  readonly input: string
}
interface OfRun extends OfStream {
  /** The peer's static public key. */
  readonly peer: Uint8Array
  readonly run: Id64
}

export type ReceiverEvent =
  /** One per refusal that begins (spec §11.3): a log line and `listener_refused`. */
  | (OfRun & { readonly _tag: "RefusalBegan"; readonly reason: RefusalReason })
  /** The run is accepted, refused for another reason from now on, or gone. */
  | (OfRun & { readonly _tag: "RefusalEnded"; readonly reason: RefusalReason })
  /** A packet opened in epoch ≥ 1 (spec §7.5). */
  | (OfRun & { readonly _tag: "RunLive" })
  /** A run goes on from the memo: its first packet in this life of the receiver opened (spec §12.1). */
  | (OfRun & { readonly _tag: "RunRestored" })
  /** A peer's packets meet no secret, and it is told so; one event in 10 s for each peer (spec §12.2). */
  | (OfStream & { readonly _tag: "LostSent"; readonly peer: Uint8Array })
  /** Answers go to a new address from now on (spec §13). */
  | (OfRun & { readonly _tag: "PathValidated"; readonly address: Address })
  /** The memo takes nothing any more, or is full; or it does again. */
  | (OfStream & { readonly _tag: "MemoFailed" | "MemoWorks" })
  /**
   * A run ended: another run of its stream went live, there are too many newer provisional ones, or the peer was revoked.
   */
  | (OfRun & { readonly _tag: "RunEnded"; readonly cause: "replaced" | "evicted" | "revoked" })
  /** A new generation replaced the known one, which is refused from now on (spec §8.3). */
  | (OfStream & { readonly _tag: "GenerationReplaced"; readonly former: Id64; readonly generation: Id64 })
  /** The inbox refused a batch (spec §8.6), or stands elsewhere than known: what was held is dropped. */
  | (OfStream & { readonly _tag: "CursorChanged"; readonly cursor: StreamCursor | undefined })
  /** A commit failed; its batch is tried again, without credit meanwhile (spec §10.5). */
  | (OfStream & { readonly _tag: "StoreFailed" })
  /** Commits work again. */
  | (OfStream & { readonly _tag: "StoreRecovered" })
  /**
   * An authenticated peer broke a rule, without effect (spec §15.3); the first of each run, the counter has them all.
   */
  | (OfRun & { readonly _tag: "Violation"; readonly detail: string })

/** Events that wait to be polled; of more, the oldest are dropped and counted. */
const mostWaiting = 1_024

/** The queue of events, and the trace beside it. */
export class Notices {
  readonly trace: Trace
  dropped = 0
  private waiting: Array<ReceiverEvent> = []

  constructor(trace: Trace = silentTrace) {
    this.trace = trace
  }

  tell(event: ReceiverEvent): void {
    if (this.waiting.length >= mostWaiting) {
      this.waiting.shift()
      this.dropped += 1
    }
    this.waiting.push(event)
  }

  poll(): ReceiverEvent | undefined {
    return this.waiting.shift()
  }
}

/** The fields that say which run an event is about. */
export const ofRun = (at: Micros, run: ReceiverRun): OfRun => ({
  at,
  peer: run.peer.publicKey,
  run: run.run,
  source: run.stream?.source ?? "",
  input: run.stream?.input ?? ""
})

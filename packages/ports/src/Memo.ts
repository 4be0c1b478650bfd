import type { ReceiverMemo } from "@pure-link/wire"
import * as Context from "effect/Context"

/**
 * A receiver's memo (spec §12.1): what lets it open its peers' next packets at once after a restart. It is a cache of
 * secrets: losing it costs every peer one LOST and a fresh run, and never a record. A receiver without one works too.
 */

/** What a memo holds and did since it was opened. */
export interface MemoCounters {
  /** Peers remembered now. */
  peers: number
  /** Runs remembered now. */
  runs: number
  /** Peers and provisional runs that were forgotten to make room for others. */
  evicted: number
  /** Slots written, cleared ones among them. */
  writes: number
  /** Slots that could not be written or read: what was in them is forgotten. */
  failures: number
}

/** The default of `peers` of every memo: how many peers it has room for (spec §12.1). */
export const memoPeers = 65_536
/** Room for runs beside the first of each peer, in every memo (spec §12.1). */
export const memoSideRuns = 1_024

/**
 * What an implementation promises of the calls of `memo`, beside what `ReceiverMemo` says. A peer's first run takes no
 * room beyond the peer's; each further one takes one of the `memoSideRuns` places that all peers share.
 *
 * - No room for a further run: the oldest provisional run of those places gives way; if there is none, a live run takes
 *   the place of a provisional first run of its own peer; else `keepRun` is false and nothing changes.
 * - No room for a peer: the one kept longest ago that has no live run gives way; if there is none, `keepPeer` is false.
 * - A write that failed: the call is false, and the run is forgotten, or its whole peer if it was the peer's first.
 * - A stream of more than `livesInMemo` lives is not kept; its run is.
 * - The calls throw for nothing that a disk can do.
 */
export class Memo extends Context.Service<
  Memo,
  {
    /** What the receiver machine works with. */
    readonly memo: ReceiverMemo
    /** Why what was there could not be used, or not all of it: one sentence for the log. */
    readonly rebuilt: string | undefined
    readonly counters: Readonly<MemoCounters>
  }
>()("@pure-link/ports/Memo") {}

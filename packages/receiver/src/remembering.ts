import { livesInMemo, type MemoRun, type Micros, never, type ReceiverMemo } from "@pure-link/wire"
import type { ReceiverCounters } from "./counters.ts"
import type { Notices } from "./event.ts"
import type { ReceiverFaults } from "./faults.ts"
import type { Peer } from "./peers.ts"
import type { ReceiverRun } from "./run.ts"

/**
 * What the receiver writes into its memo and reads from it (spec §12.1): a peer's E0 with its first run; a run when a
 * candidate is accepted, before the ACCEPT leaves, when it is confirmed, and whenever its largest number grew by 2^14. A
 * memo that cannot be written costs a LOST after a restart and nothing else.
 */

/** The remembered bound is written again after this many numbers, well within the reach of short headers (spec §17). */
const boundStep = 2 ** 14
/** A memo that failed works again when nothing failed for so long. */
const failurePause: Micros = 10_000_000

export class Remembering {
  private readonly memo: ReceiverMemo | undefined
  private readonly notices: Notices
  private readonly counters: ReceiverCounters
  private readonly faults: ReceiverFaults
  private failedAt: Micros = never

  constructor(memo: ReceiverMemo | undefined, notices: Notices, counters: ReceiverCounters, faults: ReceiverFaults) {
    this.memo = memo
    this.notices = notices
    this.counters = counters
    this.faults = faults
  }

  /** Before anything is computed for a peer: what the memo holds of it. */
  recall(peer: Peer): void {
    peer.isRecalled = true
    const known = this.memo?.recall(peer.publicKey)
    if (known === undefined) return
    peer.takeSecret(known.staticSecret)
    peer.remembered = known.runs.slice()
  }

  /** The run's present secrets, stream and largest number. Only runs with a secret of their own are remembered. */
  keep(now: Micros, run: ReceiverRun): void {
    const { memo } = this
    const { peer } = run
    const secrets = run.epochs.toRemember
    if (memo === undefined || (secrets.current === undefined && secrets.candidate === undefined)) return
    // The fault `staleMemo`: a run is remembered once and never again. Tests only.
    if (this.faults.staleMemo === true && run.isRemembered) return
    if (!peer.isKept) peer.isKept = memo.keepPeer(peer.publicKey, peer.staticSecret()!)
    const bound = run.replay.largest
    const isKept =
      peer.isKept &&
      memo.keepRun(peer.publicKey, { ...secrets, run: run.run, isLive: run.isLive, bound, stream: streamOf(run) })
    run.keptBound = bound
    run.isRemembered ||= isKept
    // It may have made room for others by forgetting this one.
    if (!isKept) peer.isKept = false
    this.tellIfChanged(now, !isKept)
  }

  /** A packet was opened: its run's bound may be due to be written again. */
  handleOpened(now: Micros, run: ReceiverRun): void {
    if (run.isRemembered && run.replay.largest >= run.keptBound + boundStep) this.keep(now, run)
  }

  /** The run ended. */
  forgetRun(run: ReceiverRun): void {
    if (!run.isRemembered) return
    run.isRemembered = false
    this.memo?.forgetRun(run.peer.publicKey, run.run)
  }

  /** A run that the memo holds, and that no packet has called for in this life, was replaced. */
  forgetRemembered(peer: Peer, remembered: MemoRun): void {
    peer.remembered = peer.remembered.filter((other) => other !== remembered)
    this.memo?.forgetRun(peer.publicKey, remembered.run)
  }

  forgetPeer(peer: Peer): void {
    peer.remembered = []
    this.memo?.forgetPeer(peer.publicKey)
  }

  /** One that is full takes some and others not: it works again when nothing failed for a while. */
  private tellIfChanged(now: Micros, isFailing: boolean): void {
    const { failedAt } = this
    if (isFailing) {
      this.counters.memoFailures += 1
      this.failedAt = now
    } else if (failedAt !== never && now - failedAt >= failurePause) this.failedAt = never
    if ((failedAt === never) === (this.failedAt === never)) return
    this.notices.tell({ _tag: isFailing ? "MemoFailed" : "MemoWorks", at: now, source: "", input: "" })
  }
}

/** What the memo is to hold of the run's stream; undefined when it has too many lives for it. */
const streamOf = (run: ReceiverRun): MemoRun["stream"] =>
  run.stream !== undefined && run.lives.length <= livesInMemo && !run.contradicts
    ? { ...run.stream, lowestHeld: run.lowestHeld, lives: run.lives }
    : undefined

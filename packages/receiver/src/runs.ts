import { dataKey, id64, type PacketKey } from "@pure-link/keys"
import { type Id64, type Micros, RefusalReason, runPrefixOf, type StreamName } from "@pure-link/wire"
import type { ReceiverCounters } from "./counters.ts"
import { type Notices, ofRun } from "./event.ts"
import type { Peer } from "./peers.ts"
import type { Remembering } from "./remembering.ts"
import { ReceiverRun, type RunOptions } from "./run.ts"
import type { ReceiverStream } from "./stream.ts"
import type { Streams } from "./streams.ts"

/**
 * How runs begin or go on from the memo, go live, are refused and end (spec §12.4): 64 live and 64 provisional ones per
 * peer, a bound of each for all peers together, and one live run per stream and generation, the newest.
 */

const mostLive = 64
const mostProvisional = 64
/** Provisional runs of all peers together; replayed first packets could make 64 for each (spec §15.2). */
const mostProvisionalOfAll = 4_096
/** A live run that was not heard for so long may be ended for another. */
const idleTime: Micros = 3_600_000_000
/** Order of runs that the memo knows, before any that begins in this life: live ones first. */
const orderOfLive = -2
const orderOfProvisional = -1
/** Runs of equal prefix that are tried (spec §3.4). */
const mostEqualPrefixes = 4

export class Runs {
  private readonly options: RunOptions
  private readonly streams: Streams
  private readonly remembering: Remembering
  private readonly notices: Notices
  private readonly counters: ReceiverCounters
  private readonly mostLiveOfAll: number
  private begun = 0
  private live = 0
  /** The provisional runs of all peers, oldest first. */
  private readonly provisional = new Set<ReceiverRun>()

  constructor(
    options: RunOptions & { readonly mostLiveRuns: number },
    streams: Streams,
    remembering: Remembering,
    notices: Notices,
    counters: ReceiverCounters
  ) {
    this.options = options
    this.mostLiveOfAll = options.mostLiveRuns
    this.streams = streams
    this.remembering = remembering
    this.notices = notices
    this.counters = counters
  }

  /** The key that opens epoch 0 of a run that is not known yet; undefined for a peer whose key agrees on nothing. */
  firstKey(peer: Peer, run: Id64): PacketKey | undefined {
    const secret = peer.staticSecret()
    this.counters.keyDerivations += 1
    return secret === undefined ? undefined : dataKey(this.options.suite, secret, peer.pair, run, 0)
  }

  /** A provisional run; of too many of the peer one is evicted for it. Undefined when 4 live runs have its prefix. */
  begin(now: Micros, peer: Peer, run: Id64): ReceiverRun | undefined {
    const prefix = runPrefixOf(run)
    const equals = peer.runs.filter((known) => known.prefix === prefix)
    if (equals.length >= mostEqualPrefixes && !this.evict(now, equals)) return undefined
    const provisional = peer.runs.filter((known) => !known.isLive)
    if (provisional.length >= mostProvisional) this.evict(now, provisional)
    if (this.provisional.size >= mostProvisionalOfAll) this.evict(now, [this.provisional.values().next().value!])
    const begun = new ReceiverRun(this.options, peer, peer.staticSecret()!, run, this.begun++)
    peer.runs.push(begun)
    this.provisional.add(begun)
    this.counters.runsBegun += 1
    return begun
  }

  /** The run that a packet may be of, as the memo holds it; it counts for nothing before a packet opens in it. */
  recalled(peer: Peer, runPrefix: number, run: Id64 | undefined): ReceiverRun | undefined {
    const remembered = peer.remembered.find(
      (known) => runPrefixOf(known.run) === runPrefix && (run === undefined || known.run === run)
    )
    if (remembered === undefined) return undefined
    const order = remembered.isLive ? orderOfLive : orderOfProvisional
    const recalled = new ReceiverRun(this.options, peer, peer.staticSecret()!, remembered.run, order, remembered)
    this.counters.keyDerivations += 1
    return recalled
  }

  /** The first packet of a recalled run opened: it is where it stood (spec §12.1). */
  handleRecalled(now: Micros, run: ReceiverRun): void {
    const { peer } = run
    peer.remembered = peer.remembered.filter((known) => known.run !== run.run)
    peer.runs.push(run)
    this.provisional.add(run)
    peer.wasLive ||= run.epochs.live
    this.counters.runsRestored += 1
    this.notices.tell({ _tag: "RunRestored", ...ofRun(now, run) })
    this.judge(now, run)
    if (!this.endIfStale(now, run) && run.epochs.live) this.goLive(now, run)
  }

  /**
   * A run of the memo never replaces the generation that its stream has: nobody knows any more which came later, and its
   * packets may be old ones of an abandoned outbox (spec §8.3). It ends, and its sender, if there is one, begins anew.
   */
  endIfStale(now: Micros, run: ReceiverRun): boolean {
    const { assembledIn, stream } = run
    const isStale =
      run.isFromMemo &&
      assembledIn !== undefined &&
      assembledIn.isAdopted &&
      assembledIn.generation !== stream!.generation
    if (isStale) this.end(now, run, "replaced")
    return isStale
  }

  /** A packet opened in epoch ≥ 1: the run takes a place for good, or is refused for want of one (reason 7). */
  goLive(now: Micros, run: ReceiverRun): void {
    if (run.isLive || run.isGone) return
    run.peer.wasLive = true
    if (run.path.validated !== undefined) run.peer.allowance.host = run.path.validated.host
    this.replaceOlder(now, run)
    if (run.isGone) return
    run.isSurplus = !this.hasPlace(run.peer) && !this.makePlace(now, run.peer)
    if (!run.isSurplus) {
      run.isLive = true
      this.live += 1
      this.provisional.delete(run)
      this.counters.runsLive += 1
      if (run.order !== orderOfLive) this.notices.tell({ _tag: "RunLive", ...ofRun(now, run) })
    }
    this.judge(now, run)
  }

  private hasPlace({ runs }: Peer): boolean {
    return this.live < this.mostLiveOfAll && runs.filter((known) => known.isLive).length < mostLive
  }

  /**
   * A live run whose generation is refused for ever, or that was not heard for an hour and waits for nothing, makes room: a
   * peer whose outputs come and go would else be refused for ever.
   */
  private makePlace(now: Micros, { runs }: Peer): boolean {
    const isOver = (run: ReceiverRun) =>
      run.refusal === RefusalReason.retiredGeneration || (now - run.openedAt >= idleTime && !run.hasUnstored)
    const over = runs.find((run) => run.isLive && isOver(run))
    if (over === undefined) return false
    this.counters.runsEvicted += 1
    this.end(now, over, "evicted")
    return true
  }

  /**
   * The run opened packets in epoch ≥ 1 and has told its stream: of its stream and generation only the newest such run
   * stays.
   */
  replaceOlder(now: Micros, run: ReceiverRun): void {
    const { stream } = run
    if (stream === undefined || !run.epochs.live) return
    for (const other of run.peer.runs.slice()) {
      const theirs = other.stream
      if (other === run || theirs === undefined || theirs.generation !== stream.generation) continue
      if (theirs.source !== stream.source || theirs.input !== stream.input) continue
      if (other.order < run.order) this.end(now, other, "replaced")
      else if (other.isLive) return this.end(now, run, "replaced")
    }
    for (const known of run.peer.remembered) {
      const isSame = known.stream?.generation === stream.generation && isSameName(known.stream, stream)
      if (run.order > orderOfLive && isSame) this.remembering.forgetRemembered(run.peer, known)
    }
  }

  /** Judges which refusal holds; true when that changed. One event per beginning and end (spec §11.3). */
  judge(now: Micros, run: ReceiverRun): boolean {
    return this.setRefusal(now, run, this.streams.judge(run))
  }

  /** Something acknowledged to the run was dropped (spec §10.8). */
  renewReplyRun(now: Micros, run: ReceiverRun): void {
    run.renewReplyRun()
    this.notices.trace.emit({ _tag: "ReplyRunSwitched", at: now, replyRun: run.replyRun })
  }

  /**
   * Held parts of a fork became next and were dropped: what the stream's runs had acknowledged is gone (spec §8.6,
   * §10.8).
   */
  renewAfterDrop(now: Micros, stream: ReceiverStream): boolean {
    if (!stream.assembly.droppedHeld) return false
    stream.assembly.droppedHeld = false
    for (const run of stream.runs) this.renewReplyRun(now, run)
    return true
  }

  end(now: Micros, run: ReceiverRun, cause: "replaced" | "evicted" | "revoked"): void {
    this.setRefusal(now, run, undefined)
    const stream = run.assembledIn
    this.streams.leave(run)
    if (stream !== undefined && this.streams.dropOrphans(stream, run)) {
      for (const other of stream.runs) this.renewReplyRun(now, other)
    }
    run.isGone = true
    run.peer.runs.splice(run.peer.runs.indexOf(run), 1)
    // One that gave its place away may draw LOST: its sender, if there is one, begins anew.
    if (!run.isFromMemo && !(run.isLive && cause === "evicted")) run.peer.noteEnded(run.prefix)
    if (run.isLive) this.live -= 1
    this.provisional.delete(run)
    this.remembering.forgetRun(run)
    run.epochs.close()
    this.notices.tell({ _tag: "RunEnded", cause, ...ofRun(now, run) })
  }

  /** Answers go to another address from now on (spec §13). */
  tellValidated(now: Micros, run: ReceiverRun): void {
    this.counters.pathsValidated += 1
    run.peer.allowance.host = run.path.validated!.host
    this.notices.tell({ _tag: "PathValidated", address: run.path.validated!, ...ofRun(now, run) })
  }

  /** A broken rule: counted, without effect (spec §15.3). */
  violate(now: Micros, run: ReceiverRun, detail: string): void {
    this.counters.violations += 1
    if (run.hasViolated) return
    run.hasViolated = true
    this.notices.trace.emit({ _tag: "Violation", at: now, detail })
    this.notices.tell({ _tag: "Violation", detail, ...ofRun(now, run) })
  }

  /**
   * Ends one of some runs that is not live: one that is not at its peer's host, if there is one, and which of them is left to
   * chance, so that whoever replays first packets of old runs cannot push out one that is about to go live.
   */
  private evict(now: Micros, runs: ReadonlyArray<ReceiverRun>): boolean {
    const provisional = runs.filter((run) => !run.isLive)
    if (provisional.length === 0) return false
    const away = provisional.filter(({ path, peer }) => path.candidate?.host !== peer.allowance.host)
    const candidates = away.length > 0 ? away : provisional
    const chosen = candidates[Number(id64(this.options.entropy) % BigInt(candidates.length))]!
    this.counters.runsEvicted += 1
    this.end(now, chosen, "evicted")
    return true
  }

  private setRefusal(now: Micros, run: ReceiverRun, reason: RefusalReason | undefined): boolean {
    const former = run.refusal
    if (former === reason) return false
    run.refusal = reason
    if (former !== undefined) {
      this.notices.tell({ _tag: "RefusalEnded", reason: former, ...ofRun(now, run) })
      if (reason === undefined) this.notices.trace.emit({ _tag: "RefusalEnded", at: now })
    }
    if (reason !== undefined) {
      this.counters.refusals += 1
      this.notices.tell({ _tag: "RefusalBegan", reason, ...ofRun(now, run) })
      this.notices.trace.emit({ _tag: "Refused", at: now, reason })
    }
    return true
  }
}

const isSameName = (a: StreamName, b: StreamName): boolean => a.source === b.source && a.input === b.input

import { type CryptoSuite, type Entropy, type EpochLimits, id64, ReceiverEpochs, ReplayWindow } from "@pure-link/keys"
import {
  acknowledgementReach,
  type Id64,
  type Life,
  type MemoRun,
  type Micros,
  never,
  type PacketNumber,
  type RecordNumber,
  type RefusalReason,
  runPrefixOf,
  type StreamFrame
} from "@pure-link/wire"
import { Acknowledgements } from "./acknowledgements.ts"
import { AnswerPath } from "./answerPath.ts"
import { livesRemembered, mergeLives } from "./lives.ts"
import type { Peer } from "./peers.ts"
import type { ReceiverStream } from "./stream.ts"

/**
 * One life of a sending link as its receiver sees it (spec §7, §10, §12.4): its epochs and replay window, what it said
 * of its stream, the reply run that answers it, and the path that the answers take. A run that the memo knows goes on
 * where it stood, in a fresh reply run (spec §12.1).
 */

export interface RunOptions {
  readonly suite: CryptoSuite
  readonly entropy: Entropy
  readonly limits: EpochLimits
  /** A deliberate fault, see ReceiverFaults. */
  readonly ignoreMemoBound: boolean
}

export class ReceiverRun {
  readonly peer: Peer
  readonly run: Id64
  readonly prefix: number
  /** Runs that came later have a higher one. */
  readonly order: number
  readonly epochs: ReceiverEpochs
  readonly replay: ReplayWindow
  /** Packets up to here may be replays of what the memo's life of the run opened; −1 without a memo (spec §12.1). */
  readonly bound: PacketNumber
  readonly path: AnswerPath
  /** What the present reply run has to report. */
  acknowledgements = new Acknowledgements()
  replyRun: Id64
  replyNumber: PacketNumber = 0
  /** The n of the last answer, and whether that answer raised it: for the trace (spec §10.6). */
  toldStored: RecordNumber = 0
  raisesStored = false
  /** The STREAM that told the run's stream, or what the memo holds of it; undefined until then (spec §8.1). */
  stream: StreamFrame | undefined
  /**
   * The lives of records are known for packets up to the latest that carried STREAM, and for those that were sent since
   * the sender knows this life's reply run. What a run of the memo sent in between may be of a life that nobody listed
   * here (spec §12.1).
   */
  private livesKnownThrough: PacketNumber = -1
  private livesKnownFrom: PacketNumber
  lowestHeld: RecordNumber = 1
  /** The lives of its records, merged from all lists (spec §8.2). */
  lives: ReadonlyArray<Life> = []
  /** Its lists contradicted one another (spec §8.2, reason 4): no honest run comes back from that. */
  contradicts = false
  /** A record that was of a fork (spec §8.4, reason 4); 0 when none was. */
  forkedAt: RecordNumber = 0
  /** Where its records are assembled; undefined while reasons 1 to 3 keep it out, or before STREAM. */
  assembledIn: ReceiverStream | undefined
  refusal: RefusalReason | undefined
  /** Holds one of the peer's places for live runs (spec §12.4). */
  isLive = false
  /** Opened in epoch ≥ 1, but the peer has its 64 live runs (reason 7). */
  isSurplus = false
  /** Removed: whoever still holds it lets it go. */
  isGone = false
  /** An answer is due at the end of the batch, or now. */
  isPending = false
  isDue = false
  /** The validated address has its answer; that of the address that is not validated is due still. */
  owesCandidate = false
  /** When the latest packet was opened, and how long after the one before. */
  openedAt: Micros = Number.NEGATIVE_INFINITY
  gap: Micros = Number.POSITIVE_INFINITY
  /** Until when a raised n waits for the next packet's answer; never while none waits. */
  lingersUntil: Micros = never
  /** Something that it sent was held and not stored yet, when it came. */
  hasHeld = false
  /** An OFFER was accepted in this life of the receiver. */
  acceptsHere = false
  /** A packet opened in this life of the receiver: the run draws no LOST (spec §12.2). */
  hasOpened = false
  /** It began in an earlier life of the receiver. */
  isFromMemo = false
  /** The memo holds it, with this bound. */
  isRemembered = false
  keptBound: PacketNumber = -1
  /** A violation was reported; further ones only count. */
  hasViolated = false
  private readonly entropy: Entropy

  constructor(
    options: RunOptions,
    peer: Peer,
    staticSecret: Uint8Array,
    run: Id64,
    order: number,
    remembered?: MemoRun
  ) {
    const { suite, entropy, limits, ignoreMemoBound } = options
    this.peer = peer
    this.run = run
    this.prefix = runPrefixOf(run)
    this.order = order
    this.replay = new ReplayWindow(acknowledgementReach, remembered?.bound)
    this.livesKnownFrom = remembered === undefined ? 0 : Number.POSITIVE_INFINITY
    this.bound = ignoreMemoBound ? -1 : (remembered?.bound ?? -1)
    const known = remembered && { remembered: { ...remembered, bound: this.bound } }
    this.epochs = new ReceiverEpochs({ suite, entropy, pair: peer.pair, run, staticSecret, limits, ...known })
    this.path = new AnswerPath(this.bound)
    this.entropy = entropy
    this.replyRun = id64(entropy)
    if (remembered !== undefined) this.restore(remembered)
  }

  private restore(remembered: MemoRun): void {
    const { bound, stream } = remembered
    this.isFromMemo = true
    this.isRemembered = true
    this.keptBound = bound
    if (stream === undefined) return
    this.stream = stream
    this.lowestHeld = stream.lowestHeld
    this.lives = stream.lives
  }

  /** A packet was opened. */
  handleOpened(now: Micros): void {
    this.hasOpened = true
    this.gap = now - this.openedAt
    this.openedAt = now
  }

  /** Whether its stream holds something that is not stored. */
  get hasUnstored(): boolean {
    return this.assembledIn !== undefined && (this.assembledIn.assembly.isHolding || this.assembledIn.isCommitting)
  }

  /** Whether the list of lives is as new as this packet. */
  knowsLivesOf(number: PacketNumber): boolean {
    return number <= this.livesKnownThrough || number >= this.livesKnownFrom
  }

  /** The same for this packet and all later ones. */
  knowsLivesFrom(number: PacketNumber): boolean {
    return number >= this.livesKnownFrom
  }

  /** The sender proved, in this packet, that it heard an answer of this life: it repeats STREAM until that is answered. */
  handleReplyRunKnown(number: PacketNumber): void {
    this.livesKnownFrom = Math.min(this.livesKnownFrom, number)
  }

  /** The address that is not validated is challenged from now on, unless it is already (spec §13.1). True: it was not. */
  challenge(now: Micros): boolean {
    if (this.path.token !== 0n) return false
    this.path.challenge(now, id64(this.entropy))
    return true
  }

  /** Takes a STREAM; false when it is of another stream than the run's, which is a violation (spec §4.3, §8.1). */
  handleStream(number: PacketNumber, frame: StreamFrame, n: RecordNumber): boolean {
    const known = this.stream
    if (known !== undefined && !isSameStream(known, frame)) return false
    const lives = mergeLives(this.lives, frame.lives, n)
    if (lives !== undefined && lives.length > livesRemembered) return false
    this.stream ??= frame
    this.livesKnownThrough = Math.max(this.livesKnownThrough, number)
    this.lowestHeld = Math.max(this.lowestHeld, frame.lowestHeld)
    this.contradicts ||= lives === undefined
    if (lives !== undefined) this.lives = lives
    return true
  }

  /**
   * Something acknowledged was dropped: answers go on in a fresh reply run, which reports only what opens from now on.
   */
  renewReplyRun(): void {
    if (this.acknowledgements.largest < 0) return
    this.replyRun = id64(this.entropy)
    this.replyNumber = 0
    this.acknowledgements = new Acknowledgements()
  }
}

const isSameStream = (a: StreamFrame, b: StreamFrame): boolean =>
  a.source === b.source &&
  a.input === b.input &&
  a.generation === b.generation &&
  a.shape === b.shape &&
  a.base === b.base

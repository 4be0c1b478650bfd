import {
  type Epoch,
  epochBitsOf,
  type Id64,
  type MemoCandidate,
  type MemoRun,
  type Micros,
  never,
  type PacketNumber
} from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import type { CryptoSuite, PacketKey } from "./cryptoSuite.ts"
import { keyPair } from "./entropy.ts"
import { echoOf, EpochKeys, formerEpochLife } from "./epochKeys.ts"
import type { Entropy } from "./entropy.ts"
import { defaultEpochLimits, type EpochLimits } from "./epochLimits.ts"
import { epochSecret, type Pair } from "./schedule.ts"

/**
 * The epochs of a run at its receiver (spec §7): answers an OFFER that counts with an ACCEPT, which makes a candidate;
 * the first packet that opens under the candidate makes it current; the former epoch then opens late packets, at most
 * 10 s. Epoch 0 always opens, because silent recovery speaks in it (spec §9.8). A restarted receiver goes on from its
 * memo (spec §12.1), where packets up to the remembered bound change nothing here.
 *
 * For each packet that opened, call `handleOpened` before `handleOffer`.
 */

export interface ReceiverEpochsOptions {
  readonly suite: CryptoSuite
  readonly entropy: Entropy
  readonly pair: Pair
  readonly run: Id64
  /** E0 of the pair (spec §6.3). It stays the caller's and is never erased here. */
  readonly staticSecret: Uint8Array
  readonly limits?: EpochLimits
  /** What the memo holds of the run. */
  readonly remembered?: Pick<MemoRun, "bound" | "lastOffer" | "current" | "candidate">
}

/** What an ACCEPT frame says. */
export interface Accept {
  readonly epoch: Epoch
  /** The first 4 B of the OFFER's key. */
  readonly echo: number
  readonly publicKey: Uint8Array
}

/** A candidate: an epoch that was accepted and under which no packet has opened yet. */
interface Candidate {
  readonly keys: EpochKeys
  readonly offerKey: Uint8Array
  readonly accept: Accept
}

/**
 * What became of an OFFER. `accepted`: a new candidate. `same`: the candidate's own OFFER again. `ignored`: it does not
 * count (spec §7.2). `refused`: its key is one that spec §6.1 refuses, a violation.
 */
export type OfferVerdict = "accepted" | "same" | "ignored" | "refused"

export class ReceiverEpochs {
  private readonly options: ReceiverEpochsOptions
  private readonly zero: EpochKeys
  private current: EpochKeys
  private candidate: Candidate | undefined
  private former: EpochKeys | undefined
  private formerUntil: Micros = never
  /** Packets up to the memo's bound change nothing here: they may be replays. */
  private readonly bound: PacketNumber
  private largestOpened: PacketNumber
  private lastOfferNumber: PacketNumber
  private readonly limits: EpochLimits
  /** The epoch of the packet with the largest number opened: answers go under it. */
  private answering: EpochKeys
  private answerReplyRun: Id64 | undefined
  private cachedAnswerKey: PacketKey | undefined
  private readonly lists: Array<ReadonlyArray<PacketKey> | undefined> = []

  constructor(options: ReceiverEpochsOptions) {
    const { suite, pair, run, staticSecret, remembered, limits = defaultEpochLimits } = options
    this.options = options
    this.limits = limits
    this.zero = new EpochKeys(suite, pair, run, 0, staticSecret)
    this.bound = this.largestOpened = remembered?.bound ?? -1
    this.lastOfferNumber = Math.max(this.bound, remembered?.lastOffer ?? -1)
    const { current, candidate } = remembered ?? {}
    this.current =
      current === undefined ? this.zero : new EpochKeys(suite, pair, run, current.epoch, current.secret.slice())
    this.candidate = candidate && this.recalled(candidate)
    this.answering = this.current
  }

  /** Whether a packet opened in epoch ≥ 1 (spec §7.5). */
  get live(): boolean {
    return this.current.epoch !== 0
  }

  /** The ACCEPT that goes into every answer while it is defined. */
  get accept(): Accept | undefined {
    return this.candidate?.accept
  }

  /** The epoch that answers go under: that of the packet with the largest number opened (spec §7.3). */
  get answerEpoch(): Epoch {
    return this.answering.epoch
  }

  /** The key of answers in `answerEpoch` and a reply run; the last one asked for is cached. */
  answerKey(replyRun: Id64): PacketKey {
    if (this.cachedAnswerKey !== undefined && this.answerReplyRun === replyRun) return this.cachedAnswerKey
    this.dropAnswerKey()
    this.answerReplyRun = replyRun
    return (this.cachedAnswerKey = this.answering.answerKey(replyRun))
  }

  /**
   * The keys that may open a data packet with these epoch bits, most likely first; empty when the bits match no secret
   * (spec §7.9). The array is cached: it is valid until the next call of any method.
   */
  openingKeys(now: Micros, epochBits: number): ReadonlyArray<PacketKey> {
    this.expire(now)
    return (this.lists[epochBits] ??= this.opening()
      .filter((keys) => epochBitsOf(keys.epoch) === epochBits)
      .map((keys) => keys.dataKey))
  }

  /** The epoch of a key that `openingKeys` returned. */
  epochOf(key: PacketKey): Epoch {
    if (key === this.current.dataKey) return this.current.epoch
    const keys = this.opening().find((known) => known.dataKey === key)
    if (keys === undefined) throw new Error("not a data key of this run")
    return keys.epoch
  }

  /** A packet of this number opened under this epoch. `confirmed`: the candidate became current (spec §7.3). */
  handleOpened(now: Micros, number: PacketNumber, epoch: Epoch): "same" | "confirmed" {
    this.keysOf(epoch).use.opened += 1
    if (number <= this.bound) return "same"
    const confirmed = this.candidate !== undefined && this.candidate.keys.epoch === epoch
    if (confirmed) this.confirm(now, this.candidate!)
    if (number > this.largestOpened) {
      this.largestOpened = number
      this.answerUnder(this.keysOf(epoch))
    }
    return confirmed ? "confirmed" : "same"
  }

  /**
   * Whether `count` more packets after this one, the newest, would change nothing but counts: it opened under the epoch that
   * answers go under, and the limits are not near (spec §7.3, §7.6).
   */
  isSettled(number: PacketNumber, epoch: Epoch, count: number): boolean {
    if (number !== this.largestOpened || epoch !== this.current.epoch || this.answering !== this.current) return false
    return this.current.use.opened + count <= this.limits.mostPackets && !this.isSpent(epoch)
  }

  /** `count` packets opened under the current epoch, which `isSettled` said yes to; `last` is the newest. */
  handleMoreOpened(last: PacketNumber, epoch: Epoch, count: number): void {
    assert(epoch === this.current.epoch)
    this.current.use.opened += count
    this.largestOpened = last
  }

  /**
   * Whether an OFFER from a packet of this number and epoch (`carrier`) that opened counts, so that `handleOffer` would
   * compute keys for it (spec §7.2).
   */
  offerCounts(number: PacketNumber, carrier: Epoch, epoch: Epoch, publicKey: Uint8Array): boolean {
    return this.judgeOffer(number, carrier, epoch, publicKey) === "accepted"
  }

  /** An OFFER from a packet of this number and epoch (`carrier`) that opened (spec §7.2). */
  handleOffer(now: Micros, number: PacketNumber, carrier: Epoch, epoch: Epoch, publicKey: Uint8Array): OfferVerdict {
    this.expire(now)
    const verdict = this.judgeOffer(number, carrier, epoch, publicKey)
    if (verdict !== "accepted") return verdict
    const next = this.derive(carrier, epoch, publicKey)
    if (next === undefined) return "refused"
    this.candidate?.keys.erase()
    this.lastOfferNumber = number
    this.candidate = next
    this.lists.length = 0
    return "accepted"
  }

  /** A packet with these epoch bits opened under none of the keys that it claimed (spec §7.6). */
  countForged(epochBits: number): void {
    for (const keys of this.opening()) if (epochBitsOf(keys.epoch) === epochBits) keys.use.forged += 1
  }

  /** An answer was sealed under `answerEpoch`. */
  countAnswer(): void {
    this.answering.use.sealed += 1
  }

  /**
   * Whether an epoch is past its limits, so that it serves nothing but a packet that carries an OFFER (spec §7.6). Its age
   * is the sender's matter: the clock of a device that slept may not have moved.
   */
  isSpent(epoch: Epoch): boolean {
    const { opened, sealed, forged } = this.keysOf(epoch).use
    const { mostForged, mostPackets } = this.limits
    return opened > mostPackets || sealed > mostPackets || forged >= mostForged
  }

  /** What the memo is to hold; the secrets are not copied. */
  get toRemember(): Pick<MemoRun, "lastOffer" | "current" | "candidate"> {
    const { current, candidate, lastOfferNumber: lastOffer } = this
    return {
      lastOffer,
      current: current === this.zero ? undefined : { epoch: current.epoch, secret: current.secret },
      candidate: candidate && {
        epoch: candidate.keys.epoch,
        secret: candidate.keys.secret,
        offerKey: candidate.offerKey,
        acceptKey: candidate.accept.publicKey
      }
    }
  }

  /** When the former epoch's secret is due to be erased; `never` if there is none. */
  get expiresAt(): Micros {
    return this.formerUntil
  }

  /** Erases what can open nothing any more (spec §7.7). Also done by every call that opens or offers. */
  expire(now: Micros): void {
    if (now >= this.formerUntil) this.dropFormer()
  }

  /** Erases everything: the run is over. */
  close(): void {
    this.dropFormer()
    this.candidate?.keys.erase()
    this.candidate = undefined
    this.current.erase()
    this.zero.erase()
    this.dropAnswerKey()
    this.lists.length = 0
  }

  private judgeOffer(number: PacketNumber, carrier: Epoch, epoch: Epoch, publicKey: Uint8Array): OfferVerdict {
    const { candidate } = this
    if (candidate?.keys.epoch === epoch && sameBytes(candidate.offerKey, publicKey)) return "same"
    const highest = candidate?.keys.epoch ?? this.current.epoch
    if (number <= this.lastOfferNumber || epoch <= highest) return "ignored"
    // An honest sender offers under epoch 0 or its newest epoch only; a late OFFER of a former epoch was superseded.
    return carrier === 0 || carrier === this.current.epoch ? "accepted" : "ignored"
  }

  private recalled(candidate: MemoCandidate): Candidate {
    const { suite, pair, run } = this.options
    const { acceptKey, epoch, offerKey, secret } = candidate
    return {
      keys: new EpochKeys(suite, pair, run, epoch, secret.slice()),
      offerKey: offerKey.slice(),
      accept: { epoch, echo: echoOf(offerKey), publicKey: acceptKey.slice() }
    }
  }

  private derive(carrier: Epoch, epoch: Epoch, offerKey: Uint8Array): Candidate | undefined {
    const { suite, entropy, pair, run } = this.options
    const own = keyPair(suite, entropy)
    const secret = epochSecret(suite, {
      ownPrivate: own.privateKey,
      peerPublic: offerKey,
      carrierSecret: (carrier === 0 ? this.zero : this.current).secret,
      pair,
      run,
      epoch,
      offerKey,
      acceptKey: own.publicKey
    })
    own.privateKey.fill(0)
    if (secret === undefined) return undefined
    return {
      keys: new EpochKeys(suite, pair, run, epoch, secret),
      offerKey: offerKey.slice(),
      accept: { epoch, echo: echoOf(offerKey), publicKey: own.publicKey }
    }
  }

  private confirm(now: Micros, candidate: Candidate): void {
    const former = this.current
    this.current = candidate.keys
    this.candidate = undefined
    this.dropFormer()
    if (former.epoch !== 0) {
      this.former = former
      this.formerUntil = now + formerEpochLife
    }
    this.lists.length = 0
  }

  private dropFormer(): void {
    if (this.former === undefined) return
    if (this.answering === this.former) this.answerUnder(this.current)
    this.former.erase()
    this.former = undefined
    this.formerUntil = never
    this.lists.length = 0
  }

  private answerUnder(keys: EpochKeys): void {
    if (this.answering === keys) return
    this.answering = keys
    this.dropAnswerKey()
  }

  /** It is over at once, and does not wait in memory for a collection of garbage (spec §7.7). */
  private dropAnswerKey(): void {
    this.cachedAnswerKey?.release()
    this.cachedAnswerKey = undefined
  }

  private opening(): ReadonlyArray<EpochKeys> {
    const opening = [this.current]
    if (this.candidate !== undefined) opening.push(this.candidate.keys)
    if (this.former !== undefined) opening.push(this.former)
    if (this.current !== this.zero) opening.push(this.zero)
    return opening
  }

  private keysOf(epoch: Epoch): EpochKeys {
    if (epoch === this.current.epoch) return this.current
    if (epoch === 0) return this.zero
    if (this.candidate?.keys.epoch === epoch) return this.candidate.keys
    assert(this.former !== undefined && epoch === this.former.epoch)
    return this.former
  }
}

const sameBytes = (a: Uint8Array, b: Uint8Array): boolean => {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}

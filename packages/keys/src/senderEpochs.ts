import { type Epoch, epochBitsOf, type Id64, type Micros, never } from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import type { CryptoSuite, KeyPair, PacketKey } from "./cryptoSuite.ts"
import { type Entropy, keyPair } from "./entropy.ts"
import { echoOf, EpochKeys, formerEpochLife } from "./epochKeys.ts"
import { defaultEpochLimits, type EpochLimits } from "./epochLimits.ts"
import { epochSecret, type Pair } from "./schedule.ts"

/**
 * The epochs of a run at its sender (spec §7): makes OFFERs, turns an ACCEPT into the next epoch, seals under it from
 * then on, and finds the keys that may open an answer. The former epoch stays for late answers, at most 10 s (spec
 * §7.4). It counts what each key has done, says when the next epoch should be offered, and when a key is spent (spec
 * §7.6); only what is about to be sent asks, so that time alone never wakes an idle link.
 */

export interface EpochsOptions {
  readonly suite: CryptoSuite
  readonly entropy: Entropy
  readonly pair: Pair
  readonly run: Id64
  /** E0 of the pair (spec §6.3). It stays the caller's and is never erased here. */
  readonly staticSecret: Uint8Array
}

/** What an OFFER frame says. */
export interface Offer {
  readonly epoch: Epoch
  readonly publicKey: Uint8Array
}

/** The OFFER that waits for its ACCEPT, with what only the sender knows of it. */
interface OutstandingOffer extends Offer {
  readonly carrier: Epoch
  readonly keys: KeyPair
}

/** Options of the sender's side alone. */
export interface SenderEpochsOptions extends EpochsOptions {
  readonly limits?: EpochLimits
}

/** Probe timeouts between the confirmation of an epoch and the next OFFER (spec §7.6); the former opens no longer than 10 s. */
const restingTimeouts = 3

/** The answer keys of one reply run: by epoch, and as lists by epoch bits. */
interface ReplyRunKeys {
  readonly replyRun: Id64
  readonly keys: Map<Epoch, PacketKey>
  readonly lists: Array<ReadonlyArray<PacketKey> | undefined>
}

/** Reply runs whose keys are kept; a forged reply run costs one derivation and can at worst push out another. */
const replyRunsKept = 4

export class SenderEpochs {
  private readonly options: EpochsOptions
  private readonly zero: EpochKeys
  private current: EpochKeys
  private former: EpochKeys | undefined
  private formerUntil: Micros = never
  /** Until when epoch 0 opens answers although no packet goes under it any more. */
  private zeroUntil: Micros = never
  private outstanding: OutstandingOffer | undefined
  private lastOffered: Epoch = 0
  private readonly limits: EpochLimits
  /** When the first answer opened under the current epoch; never before. */
  private confirmedAt: Micros = never
  /** Most recently used first. */
  private readonly replyRuns: Array<ReplyRunKeys> = []

  constructor(options: SenderEpochsOptions) {
    const { suite, pair, run, staticSecret, limits = defaultEpochLimits } = options
    this.limits = limits
    this.options = options
    this.zero = new EpochKeys(suite, pair, run, 0, staticSecret)
    this.current = this.zero
  }

  /** The epoch that data packets are sealed under now. */
  get epoch(): Epoch {
    return this.current.epoch
  }

  /** Whether an OFFER waits for its ACCEPT. */
  get hasOffer(): boolean {
    return this.outstanding !== undefined
  }

  /** The key of data packets in epoch 0 or the current one. */
  sealingKey(epoch: Epoch): PacketKey {
    return this.keysOf(epoch).dataKey
  }

  /** So many packets were sealed under epoch 0 or the current one. */
  handleSealed(epoch: Epoch, packets = 1): void {
    this.keysOf(epoch).use.sealed += packets
  }

  /** How many more packets may be sealed under an epoch, 0 or the current one, before `wantsOffer` or `isSpent` change by it. */
  packetsLeft(epoch: Epoch): number {
    const { sealed } = this.keysOf(epoch).use
    const { packets, mostPackets } = this.limits
    return (sealed < packets ? Math.min(packets, mostPackets) : mostPackets) - sealed
  }

  /** An answer opened under this epoch. True: the first one under the current epoch, which is confirmed by it. */
  handleOpened(now: Micros, epoch: Epoch): boolean {
    if (epoch === 0 || epoch !== this.current.epoch || this.confirmedAt !== never) return false
    this.confirmedAt = now
    return true
  }

  /** An answer with these epoch bits did not open: it counts against the current epoch if it claimed that one. */
  handleForged(epochBits: number): void {
    if (this.current.epoch === 0 || epochBits !== epochBitsOf(this.current.epoch)) return
    this.current.use.forged++
    if (this.isForgedTooOften) this.forgetLists()
  }

  /**
   * Whether the next packet under the current epoch, which is not 0, should carry an OFFER (spec §7.6): one is
   * outstanding, or the epoch is old or used enough, and was confirmed three probe timeouts ago.
   */
  wantsOffer(now: Micros, probeTimeout: Micros): boolean {
    if (this.outstanding !== undefined && this.outstanding.carrier === this.current.epoch) return true
    const { confirmedAt } = this
    const { forged, sealed, since: begunAt } = this.current.use
    const { lifetimeMicros, mostForged, packets } = this.limits
    const isOld = now - begunAt >= lifetimeMicros
    // An idle link may have missed the one answer that confirms; its old epoch is to end all the same.
    const restsFrom = confirmedAt === never && isOld ? begunAt : confirmedAt
    if (now < restsFrom + Math.min(restingTimeouts * probeTimeout, formerEpochLife)) return false
    return isOld || sealed >= packets || 2 * forged >= mostForged
  }

  /** Whether nothing more may be sealed under an epoch, 0 or the current one: its key has done all that it may. */
  isSpent(epoch: Epoch): boolean {
    if (this.keysOf(epoch).use.sealed >= this.limits.mostPackets) return true
    return epoch !== 0 && this.isForgedTooOften
  }

  /**
   * The OFFER for packets of `carrier`, which is 0 or the current epoch: the outstanding one if it belongs to that
   * carrier, else a new one with a higher epoch and a new key, because no OFFER is ever carried by two epochs (spec
   * §6.3).
   */
  offer(carrier: Epoch): Offer {
    assert(carrier === 0 || carrier === this.current.epoch)
    if (this.outstanding?.carrier === carrier) return this.outstanding
    this.outstanding?.keys.privateKey.fill(0)
    this.lastOffered += 1
    assert(this.lastOffered < 2 ** 32)
    const keys = keyPair(this.options.suite, this.options.entropy)
    this.outstanding = { epoch: this.lastOffered, publicKey: keys.publicKey, carrier, keys }
    this.forgetLists()
    return this.outstanding
  }

  /** An ACCEPT from an authenticated answer. True: `epoch` advanced, and a packet should go under it (spec §7.4). */
  handleAccept(now: Micros, epoch: Epoch, echo: number, publicKey: Uint8Array): boolean {
    const offer = this.outstanding
    if (offer === undefined || epoch !== offer.epoch || echo !== echoOf(offer.publicKey)) return false
    const { suite, pair, run } = this.options
    const secret = epochSecret(suite, {
      ownPrivate: offer.keys.privateKey,
      peerPublic: publicKey,
      carrierSecret: this.keysOf(offer.carrier).secret,
      pair,
      run,
      epoch,
      offerKey: offer.publicKey,
      acceptKey: publicKey
    })
    if (secret === undefined) return false
    offer.keys.privateKey.fill(0)
    this.outstanding = undefined
    this.advance(now, new EpochKeys(suite, pair, run, epoch, secret), offer.carrier)
    return true
  }

  /**
   * The keys that may open an answer with these epoch bits in this reply run, most likely first. The array is cached:
   * it is valid until the next call of any method.
   */
  answerKeys(now: Micros, epochBits: number, replyRun: Id64): ReadonlyArray<PacketKey> {
    this.expire(now)
    const known = this.replyRuns[0]
    const entry = known !== undefined && known.replyRun === replyRun ? known : this.use(replyRun)
    return (entry.lists[epochBits] ??= this.list(entry, epochBits))
  }

  /** The epoch of a key that `answerKeys` returned. */
  epochOfAnswerKey(key: PacketKey): Epoch {
    for (const entry of this.replyRuns) {
      for (const [epoch, known] of entry.keys) if (known === key) return epoch
    }
    throw new Error("not an answer key of this run")
  }

  /** Drops the keys of a reply run that is over. */
  forgetReplyRun(replyRun: Id64): void {
    const index = this.replyRuns.findIndex((entry) => entry.replyRun === replyRun)
    if (index >= 0) release(this.replyRuns.splice(index, 1)[0]!)
  }

  /** When the next secret is due to be erased; `never` if none is. */
  get expiresAt(): Micros {
    return Math.min(this.formerUntil, this.zeroUntil)
  }

  /** Erases what can open nothing any more (spec §7.7). Also done by every call that is given `now`. */
  expire(now: Micros): void {
    if (now >= this.formerUntil) this.dropFormer()
    if (now >= this.zeroUntil) {
      this.zeroUntil = never
      this.forgetLists()
    }
  }

  /** Silent recovery ended without its ACCEPT (spec §9.8): answers in epoch 0 open no more (spec §7.4). */
  dropOffer(): void {
    this.outstanding?.keys.privateKey.fill(0)
    this.outstanding = undefined
    this.forgetLists()
  }

  /** Erases everything: the run is over. */
  close(): void {
    this.outstanding?.keys.privateKey.fill(0)
    this.outstanding = undefined
    this.dropFormer()
    this.current.erase()
    this.zero.erase()
    for (const entry of this.replyRuns) release(entry)
    this.replyRuns.length = 0
  }

  /** So many answers did not open under the current epoch that none may any more. */
  private get isForgedTooOften(): boolean {
    return this.current.use.forged >= this.limits.mostForged
  }

  private keysOf(epoch: Epoch): EpochKeys {
    if (epoch === this.current.epoch) return this.current
    assert(epoch === 0)
    return this.zero
  }

  private advance(now: Micros, next: EpochKeys, carrier: Epoch): void {
    this.dropFormer()
    if (this.current.epoch !== 0) {
      this.former = this.current
      this.formerUntil = now + formerEpochLife
    }
    if (carrier === 0) this.zeroUntil = now + formerEpochLife
    this.current = next
    this.current.use.since = now
    this.confirmedAt = never
    this.forgetLists()
  }

  private dropFormer(): void {
    const former = this.former
    if (former === undefined) return
    former.erase()
    this.former = undefined
    this.formerUntil = never
    for (const { keys } of this.replyRuns) {
      keys.get(former.epoch)?.release()
      keys.delete(former.epoch)
    }
    this.forgetLists()
  }

  /** Whether answers in epoch 0 may be genuine: packets go under it, or did less than 10 s ago. */
  private get zeroOpens(): boolean {
    return this.current.epoch === 0 || this.outstanding?.carrier === 0 || this.zeroUntil !== never
  }

  /** Moves a reply run's keys to the front, making room for those of a new one. */
  private use(replyRun: Id64): ReplyRunKeys {
    const index = this.replyRuns.findIndex((entry) => entry.replyRun === replyRun)
    const entry =
      index >= 0 ? this.replyRuns.splice(index, 1)[0]! : { replyRun, keys: new Map<Epoch, PacketKey>(), lists: [] }
    this.replyRuns.unshift(entry)
    if (this.replyRuns.length > replyRunsKept) release(this.replyRuns.pop()!)
    return entry
  }

  private list(entry: ReplyRunKeys, epochBits: number): ReadonlyArray<PacketKey> {
    const opening: Array<EpochKeys> = this.isForgedTooOften ? [] : [this.current]
    if (this.former !== undefined) opening.push(this.former)
    if (this.current !== this.zero && this.zeroOpens) opening.push(this.zero)
    return opening
      .filter((epoch) => epochBitsOf(epoch.epoch) === epochBits)
      .map((epoch) => {
        const key = entry.keys.get(epoch.epoch) ?? epoch.answerKey(entry.replyRun)
        entry.keys.set(epoch.epoch, key)
        return key
      })
  }

  private forgetLists(): void {
    for (const entry of this.replyRuns) entry.lists.length = 0
  }
}

/** Its keys are over at once: they do not wait in memory, native or not, for a collection of garbage (spec §7.7). */
const release = ({ keys }: ReplyRunKeys): void => {
  for (const key of keys.values()) key.release()
}

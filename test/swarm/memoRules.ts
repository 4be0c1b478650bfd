import type { ReceiverCounters } from "@pure-link/receiver"
import {
  type Address,
  type Epoch,
  epochBitsOf,
  formatAddress,
  type Id64,
  type MemoRun,
  runPrefixOf
} from "@pure-link/wire"
import { epochsOf, type MemoDisk } from "./memoDisk.ts"
import type { RememberedEpochs } from "./lostRules.ts"
import type { Sent } from "./network.ts"
import { Violation } from "./violation.ts"

/**
 * What a receiver owes to its memo in one life (spec §12.1): it holds every candidate before its ACCEPT leaves and every
 * epoch that the run speaks in; with it a restarted receiver computes no X25519 before an OFFER, and takes nothing at or
 * below the remembered bound for new.
 */
export class MemoRules {
  /** The runs that this life began with. */
  readonly remembered: ReadonlyMap<Id64, MemoRun>
  /** The peer's E0 was there as well. */
  readonly #knewPeer: boolean
  /** Runs that spoke in epoch ≥ 1 in this life. */
  readonly #live = new Set<Id64>()
  readonly #ended = new Set<Id64>()
  readonly #doubtful = new Set<Id64>()
  /** Prefixes of runs of replaced generations. */
  readonly #retired = new Set<number>()
  /** By run prefix and address: whether anything above the memo's bound came from there. */
  readonly #newFrom = new Map<number, Map<string, boolean>>()
  #heardOffer = false

  readonly memo: MemoDisk | undefined

  constructor(memo: MemoDisk | undefined, peer: Uint8Array) {
    this.memo = memo
    this.remembered = memo?.current ?? new Map()
    this.#knewPeer = memo?.knowsPeer(peer) ?? false
  }

  /** The bits of the epochs of each remembered run. */
  get rememberedEpochs(): RememberedEpochs {
    return [...this.remembered].map(([id, run]) => [id, epochsOf(run).map(epochBitsOf)])
  }

  /** An honest packet, or a copy, is about to be read; the returned check is for when it opened. */
  before(sent: Sent, from: Address, counters: Readonly<ReceiverCounters>): () => void {
    const bound = this.remembered.get(sent.run)?.bound ?? -1
    const standing = () => `${counters.keyAgreements} ${counters.pathsChallenged} ${counters.pathsValidated}`
    const before = standing()
    const { runsBegun } = counters
    if (sent.spoken.offers) this.#heardOffer = true
    return () => {
      if (!this.#heardOffer && this.#knewPeer && counters.keyAgreements > 0)
        throw new Violation("a receiver that kept its memo computed X25519 before an OFFER")
      // A run that ended since may begin again, with any packet of epoch 0.
      if (counters.runsBegun > runsBegun) this.#ended.add(sent.run)
      if (bound < 0 || this.#ended.has(sent.run)) return
      const { number } = sent.spoken
      this.#heardFrom(runPrefixOf(sent.run), from, number > bound)
      if (number > bound || standing() === before) return
      throw new Violation(
        `a packet below the memo's bound changed ${before} to ${standing()}: ${number}, bound ${bound}`
      )
    }
  }

  /** An answer leaves: not to where nothing came from but what may be replays. */
  handleAnswer(runPrefix: number, to: Address): void {
    if (this.#newFrom.get(runPrefix)?.get(formatAddress(to)) === false)
      throw new Violation("a packet below the memo's bound changed the path of answers")
  }

  #heardFrom(runPrefix: number, from: Address, isNew: boolean): void {
    let addresses = this.#newFrom.get(runPrefix)
    if (addresses === undefined) this.#newFrom.set(runPrefix, (addresses = new Map()))
    const key = formatAddress(from)
    addresses.set(key, isNew || addresses.get(key) === true)
  }

  /** A packet opened under an epoch: its run goes on from there after a restart. */
  handleOpened({ run }: Sent, epochBits: number): void {
    if (epochBits === 0) return
    this.#live.add(run)
    const held = this.memo?.run(run)
    if (held === undefined || epochsOf(held).some((epoch) => epochBitsOf(epoch) === epochBits)) return
    if (isFormer(epochBits, held)) return
    throw new Violation(`the memo holds epochs "${epochsOf(held)}" of a run that speaks in epoch bits ${epochBits}`)
  }

  /** A run goes on from the memo; from an old one, what it speaks in next may be news. */
  handleRestored(run: Id64): void {
    if (!this.remembered.has(run)) this.#doubtful.add(run)
  }

  /** A run began anew although its sender has secrets of it that are not known here, and never will be. */
  handleDoubtful(run: Id64): void {
    this.#doubtful.add(run)
    this.memo?.doubt(run)
  }

  handleEnded(run: Id64): void {
    this.#ended.add(run)
    this.#newFrom.delete(runPrefixOf(run))
  }

  /** A run is refused for its generation: nothing that comes of it may outlive this receiver (spec §8.3). */
  handleRetired(run: Id64): void {
    this.#retired.add(runPrefixOf(run))
  }

  /** An ACCEPT leaves. */
  handleAccept(runPrefix: number, epoch: Epoch): void {
    const { memo } = this
    if (memo === undefined || this.#retired.has(runPrefix)) return
    const held = memo.find(runPrefix)
    if (held === "unsure" || held?.candidate?.epoch === epoch) return
    if (held === undefined) throw new Violation(`ACCEPT left before the memo held its secret, of epoch ${epoch}`)
    throw new Violation(`the memo holds epochs "${epochsOf(held)}" of a run that is told ACCEPT of ${epoch}`)
  }

  /** Whether this receiver may lack a secret that the run's sender uses. */
  mayHaveForgotten(run: Id64): boolean {
    if (this.#doubtful.has(run)) return true
    return (!this.#live.has(run) && !this.remembered.has(run)) || this.#ended.has(run)
  }
}

/** Whether a packet of these bits is a late one of an epoch before: it opens for a while, and is not held. */
const isFormer = (epochBits: number, { current }: MemoRun): boolean =>
  current !== undefined && current.epoch > 1 && (epochBitsOf(current.epoch) - epochBits + 15) % 15 <= 7

import { TokenBucket } from "@pure-link/keys"
import type { Address, Micros } from "@pure-link/wire"
import type { ReceiverCounters } from "./counters.ts"
import type { Peer } from "./peers.ts"

/**
 * Who may make the receiver compute keys (spec §12.5, §15.2). A packet of an unknown run is not authentic before its keys
 * are computed: anybody can claim a peer's key id, so that what it costs is nobody's, and comes from one bucket for all.
 * Two things keep a flood from shutting peers out: a peer that had no live run in this life of the receiver has a
 * try of its own each second, and one that had has a bucket of its own for the host that it proved to be at. A packet that
 * proves authentic is charged to its peer.
 */

/** Packets of unknown runs that lead to computations (spec §18). */
const unknownPerSecond = 256
/** Tries of peers that had no live run yet, in all: thousands may come back at once. */
const firstPerSecond = 4_096
const firstPause: Micros = 1_000_000
/** What one peer may cause from its host, or with packets that are authentic: as many at once as it may have runs. */
const perSecondOfPeer = 32
const atOnceOfPeer = 64
/** Offers that the live runs of a peer make in epochs ≥ 1. */
const offersPerSecondOfPeer = 64

/** What one peer may still cause; made when it first causes something. */
export class PeerAllowance {
  /** When it may try again for nothing; of no meaning once a run of it went live. */
  firstAt: Micros = Number.NEGATIVE_INFINITY
  /** Where it was when an address of it was validated last (spec §13). */
  host: string | undefined
  readonly own = new TokenBucket(perSecondOfPeer, atOnceOfPeer)
  readonly offers = new TokenBucket(offersPerSecondOfPeer, offersPerSecondOfPeer)
}

export class Admission {
  private readonly unknown = new TokenBucket(unknownPerSecond, unknownPerSecond)
  private readonly first = new TokenBucket(firstPerSecond, firstPerSecond)
  private readonly counters: ReceiverCounters
  /** The token that `admitsStart` took last was from the bucket for all. */
  private wasOfAll = false

  constructor(counters: ReceiverCounters) {
    this.counters = counters
  }

  /** Whether keys may be computed for a packet of a run that is not known, with the ACCEPT that it may ask for. */
  admitsStart(now: Micros, peer: Peer, from: Address): boolean {
    const { allowance } = peer
    this.wasOfAll = false
    if (!peer.wasLive && now >= allowance.firstAt && this.first.take(now)) {
      allowance.firstAt = now + firstPause
      return true
    }
    if (allowance.host === from.host && allowance.own.take(now)) return true
    this.wasOfAll = this.unknown.take(now)
    return this.count(this.wasOfAll)
  }

  /** The packet just admitted proved authentic: it is its peer's doing, not a stranger's. */
  handleAuthentic(now: Micros, peer: Peer): void {
    if (this.wasOfAll && peer.allowance.own.take(now)) this.unknown.giveBack()
  }

  /** Whether an ACCEPT may be computed for a run that is known. */
  admitsAccept(now: Micros, peer: Peer, inLiveEpoch: boolean): boolean {
    const { offers, own } = peer.allowance
    return this.count(inLiveEpoch ? offers.take(now) : own.take(now) || this.unknown.take(now))
  }

  private count(isAdmitted: boolean): boolean {
    if (!isAdmitted) this.counters.keyDerivationsLimited += 1
    return isAdmitted
  }
}

import { TokenBucket } from "@pure-link/keys"
import type { Address, Micros } from "@pure-link/wire"
import type { ReceiverCounters } from "./counters.ts"
import type { Peer } from "./peers.ts"

/**
 * Who may make the receiver compute keys (spec §12.5, §15.2). Whether a packet of an unknown run is authentic takes one
 * derivation and one opening; anybody can ask for that by claiming a peer's key id, so it is cheap and comes from a
 * bucket for all. What is dear, the state of a run and X25519, is paid for once the tag has verified, by the peer that is
 * known then: from its own bucket, or one for the host that it proved to be at, because old first packets are authentic
 * too and may be replayed from anywhere; and from a bucket for all. A peer that had no live run in this life of the
 * receiver has a start each second beside these: thousands may come back at once.
 */

/** Packets of unknown runs, and of runs of the memo, that are tried (spec §18). */
const triedPerSecond = 8_192
/** Runs that begin, and further ACCEPTs in epoch 0, of all peers … */
const startsPerSecond = 256
/** … of one peer, from its host and from elsewhere: as many at once as it may have runs … */
const startsPerSecondOfPeer = 32
const startsAtOnceOfPeer = 64
/** … and of peers that had no live run yet: one a second each, and in all. */
const firstPause: Micros = 1_000_000
const firstPerSecond = 4_096
/** Offers that the live runs of a peer make in epochs ≥ 1. */
const offersPerSecondOfPeer = 64

/** What one peer may still cause; made when it first causes something. */
export class PeerAllowance {
  /** When it may start beside the buckets; of no meaning once a run of it went live. */
  firstAt: Micros = Number.NEGATIVE_INFINITY
  /** Where it was when an address of it was validated last (spec §13). */
  host: string | undefined
  readonly home = new TokenBucket(startsPerSecondOfPeer, startsAtOnceOfPeer)
  readonly elsewhere = new TokenBucket(startsPerSecondOfPeer, startsAtOnceOfPeer)
  readonly offers = new TokenBucket(offersPerSecondOfPeer, offersPerSecondOfPeer)
}

export class Admission {
  private readonly tried = new TokenBucket(triedPerSecond, triedPerSecond)
  private readonly starts = new TokenBucket(startsPerSecond, startsPerSecond)
  private readonly first = new TokenBucket(firstPerSecond, firstPerSecond)
  private readonly counters: ReceiverCounters

  constructor(counters: ReceiverCounters) {
    this.counters = counters
  }

  /** Whether it may be tried if a packet of a run that is not known is authentic. */
  admitsTry(now: Micros): boolean {
    return this.count(this.tried.take(now))
  }

  /** Whether a run of this peer may begin, with the ACCEPT that its authentic first packet asks for. */
  admitsStart(now: Micros, peer: Peer, from: Address): boolean {
    const { allowance } = peer
    if (!peer.wasLive && now >= allowance.firstAt && this.first.take(now)) {
      allowance.firstAt = now + firstPause
      return true
    }
    return this.admitsFurther(now, allowance, from)
  }

  /** Whether an ACCEPT may be computed for a run that is known. */
  admitsAccept(now: Micros, peer: Peer, from: Address, inLiveEpoch: boolean): boolean {
    const { allowance } = peer
    return inLiveEpoch ? this.count(allowance.offers.take(now)) : this.admitsFurther(now, allowance, from)
  }

  private admitsFurther(now: Micros, { elsewhere, home, host }: PeerAllowance, from: Address): boolean {
    const isHome = host === from.host
    // At its host a peer is let through even when others use up what there is for all: its bucket bounds it.
    return this.count(isHome ? home.take(now) : elsewhere.take(now) && this.starts.take(now))
  }

  private count(isAdmitted: boolean): boolean {
    if (!isAdmitted) this.counters.keyDerivationsLimited += 1
    return isAdmitted
  }
}

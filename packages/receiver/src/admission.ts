import { TokenBucket } from "@pure-link/keys"
import type { Micros } from "@pure-link/wire"
import type { ReceiverCounters } from "./counters.ts"
import type { Peer } from "./peers.ts"

/**
 * Who may make the receiver compute keys (spec §12.5, §15.2). What a packet of an unknown run costs is paid from the
 * bucket of the peer that it claims, and from one for all; the first in a life of the receiver is free for each peer, or
 * thousands that come back at once would wait for tokens. A known run pays for each further ACCEPT.
 */

/** Packets of unknown runs, and offers in epoch 0, that lead to computations (spec §18). */
const unknownPerSecond = 256
const unknownAtOnce = 256
/** The same for one peer: as many at once as it may have runs. */
const unknownPerSecondOfPeer = 32
const unknownAtOnceOfPeer = 64
/** Offers that the live runs of a peer make in epochs ≥ 1. */
const offersPerSecondOfPeer = 64

/** What one peer may still cause; made when it first causes something. */
export class PeerAllowance {
  /** The first start of a run in this life of the receiver, and the first ACCEPT outside of one, are free. */
  freeStart = true
  freeAccept = true
  readonly unknown = new TokenBucket(unknownPerSecondOfPeer, unknownAtOnceOfPeer)
  readonly offers = new TokenBucket(offersPerSecondOfPeer, offersPerSecondOfPeer)
}

export class Admission {
  private readonly unknown = new TokenBucket(unknownPerSecond, unknownAtOnce)
  private readonly counters: ReceiverCounters

  constructor(counters: ReceiverCounters) {
    this.counters = counters
  }

  /** Whether keys may be computed for a packet of a run that is not known, with the ACCEPT that it may ask for. */
  admitsStart(now: Micros, peer: Peer): boolean {
    const { allowance } = peer
    if (allowance.freeStart) {
      allowance.freeStart = false
      return true
    }
    return this.take(now, peer)
  }

  /** Whether an ACCEPT may be computed for a run that is known. */
  admitsAccept(now: Micros, peer: Peer, inLiveEpoch: boolean): boolean {
    const { allowance } = peer
    if (inLiveEpoch) return this.count(allowance.offers.take(now))
    if (allowance.freeAccept) {
      allowance.freeAccept = false
      return true
    }
    return this.take(now, peer)
  }

  private take(now: Micros, peer: Peer): boolean {
    return this.count(peer.allowance.unknown.take(now) && this.unknown.take(now))
  }

  private count(isAdmitted: boolean): boolean {
    if (!isAdmitted) this.counters.keyDerivationsLimited += 1
    return isAdmitted
  }
}

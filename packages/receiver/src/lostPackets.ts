import { type CryptoSuite, type Entropy, id64, lostKey, TokenBucket } from "@pure-link/keys"
import {
  type Address,
  type Bytes,
  lostLength,
  type Micros,
  PacketEcho,
  smallestEpochPacket,
  tagLength,
  writeLostHeader
} from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import type { ReceiverCounters } from "./counters.ts"
import type { DataPacket } from "./dataPacket.ts"
import type { Peer } from "./peers.ts"

/**
 * LOST (spec §12.2): tells a sender that the receiver has no secret for its run, with an echo of the packet that says so.
 * One per cause, always smaller than it; 4,096 a second in all, per peer one and then 10 a second.
 */

const lostPerSecond = 4_096
const lostPerSecondOfPeer = 10
/** An event tells of a peer's LOST at most this often. */
export const lostNoticePause: Micros = 10_000_000

/** One that waits to be sent. */
interface Waiting {
  readonly peer: Peer
  readonly runPrefix: number
  readonly echo: PacketEcho
  readonly to: Address
}

/** How often one peer may draw LOST. */
export const lostBucket = (): TokenBucket => new TokenBucket(lostPerSecondOfPeer, 1)

export class LostPackets {
  private readonly suite: CryptoSuite
  private readonly entropy: Entropy
  private readonly counters: ReceiverCounters
  private readonly all = new TokenBucket(lostPerSecond, lostPerSecond)
  /** At most as many as there are tokens at once. */
  private waiting: Array<Waiting> = []
  private next = 0

  constructor(suite: CryptoSuite, entropy: Entropy, counters: ReceiverCounters) {
    this.suite = suite
    this.entropy = entropy
    this.counters = counters
  }

  /** A packet in epoch ≥ 1 of a run without a secret: LOST is due for it, if it is long enough and there are tokens. */
  draw(now: Micros, peer: Peer, packet: DataPacket): boolean {
    if (packet.length < smallestEpochPacket) return false
    if (!peer.lost.take(now) || !this.all.take(now)) {
      this.counters.lostLimited += 1
      return false
    }
    const echo = new PacketEcho()
    echo.take(packet.bytes, packet.start, packet.end, packet.header.number)
    this.waiting.push({ peer, runPrefix: packet.header.runPrefix, echo, to: packet.from })
    return true
  }

  /** Where the next one goes; undefined when none waits. */
  get target(): Address | undefined {
    return this.waiting[this.next]?.to
  }

  /** Writes the next LOST at `out[offset…]` and returns its length; 0 when none waits, or its peer was revoked. */
  write(out: Uint8Array, offset: number): Bytes {
    const lost = this.waiting[this.next]
    if (lost === undefined) return 0
    this.next += 1
    if (this.next === this.waiting.length) {
      this.waiting = []
      this.next = 0
    }
    const { echo, peer, runPrefix } = lost
    const secret = peer.staticSecret()
    if (secret === undefined || peer.isRevoked) return 0
    const replyRun = id64(this.entropy)
    const bodyStart = writeLostHeader(out, offset, peer.keyId, runPrefix, replyRun)
    const bodyEnd = echo.write(out, bodyStart)
    this.counters.keyDerivations += 1
    const key = lostKey(this.suite, secret, peer.pair, replyRun)
    key.seal(out, offset, bodyStart, bodyEnd, 0)
    key.release()
    this.counters.lostSent += 1
    assert(bodyEnd + tagLength - offset === lostLength)
    return lostLength
  }
}

import { type CryptoSuite, isAcceptable, keyIdOf, type KeyPair, type Pair, staticSecret } from "@pure-link/keys"
import { type MemoRun, runPrefixOf } from "@pure-link/wire"
import { PeerAllowance } from "./admission.ts"
import type { ReceiverCounters } from "./counters.ts"
import { lostBucket } from "./lostPackets.ts"
import type { ReceiverRun } from "./run.ts"

/**
 * The allowed peers, found by key id (spec §3.4). The table grows by configuration only; strangers can look it up and
 * no more.
 */

export interface AllowedPeer {
  readonly publicKey: Uint8Array
  /** The source names that it may send as (spec §11.1, reason 3). */
  readonly sources: ReadonlyArray<string> | "any"
}

/** Peers of equal key id that are tried (spec §3.4). */
const mostEqualKeyIds = 4
/** Ended runs that a peer is remembered to have had: as many as it may have live ones. */
const endedKept = 64

/** A peer that cannot be allowed: a configuration error. */
export class PeerNotAllowable extends Error {
  readonly _tag = "PeerNotAllowable"
  readonly publicKey: Uint8Array
  /** `keyId`: 4 allowed peers have its key id already. `publicKey`: it is not a key that spec §6.1 admits. */
  readonly reason: "keyId" | "publicKey"

  constructor(publicKey: Uint8Array, reason: "keyId" | "publicKey") {
    super(
      reason === "keyId"
        ? `more than ${mostEqualKeyIds} allowed peers have one key id; give one of them a new key`
        : "not a canonical X25519 public key; check the configured key"
    )
    this.publicKey = publicKey
    this.reason = reason
  }
}

export class Peer {
  readonly publicKey: Uint8Array
  readonly keyId: number
  readonly pair: Pair
  sources: ReadonlyArray<string> | "any"
  /** Live and provisional ones, in the order they came. */
  readonly runs: Array<ReceiverRun> = []
  /** Whether the memo was asked for this peer, what it holds that no packet called for yet, and whether it holds E0. */
  isRecalled = false
  remembered: ReadonlyArray<MemoRun> = []
  isKept = false
  isRevoked = false
  /** A run of it went live in this life of the receiver. */
  wasLive = false
  /** How often it may draw LOST (spec §12.2), and when an event last told of it. */
  readonly lost = lostBucket()
  lostToldAt = Number.NEGATIVE_INFINITY
  /** Prefixes of runs that ended in this life, the latest ones: they draw no LOST either (spec §12.2). */
  private readonly ended: Array<number> = []
  /** E0 of the pair, once it was asked for. */
  private secret: Uint8Array | undefined
  private isRefused = false
  private allowances: PeerAllowance | undefined
  private readonly suite: CryptoSuite
  private readonly identity: KeyPair
  private readonly counters: ReceiverCounters

  constructor(suite: CryptoSuite, identity: KeyPair, allowed: AllowedPeer, keyId: number, counters: ReceiverCounters) {
    this.suite = suite
    this.identity = identity
    this.counters = counters
    this.publicKey = allowed.publicKey
    this.sources = allowed.sources
    this.keyId = keyId
    this.pair = { sender: allowed.publicKey, receiver: identity.publicKey }
  }

  /** E0, computed once; undefined for a key that agrees on nothing (spec §6.1). */
  staticSecret(): Uint8Array | undefined {
    if (this.secret === undefined && !this.isRefused) {
      this.counters.keyAgreements += 1
      this.secret = staticSecret(this.suite, this.identity.privateKey, this.publicKey, this.pair)
      this.isRefused = this.secret === undefined
    }
    return this.secret
  }

  /** E0 as the memo holds it. */
  takeSecret(secret: Uint8Array): void {
    this.secret = secret.slice()
    this.isKept = true
  }

  /** Whether the memo holds a run of this prefix that no packet opened in yet. */
  remembers(runPrefix: number): boolean {
    return this.remembered.some(({ run }) => runPrefixOf(run) === runPrefix)
  }

  /** What it may still make the receiver compute (spec §12.5). */
  get allowance(): PeerAllowance {
    return (this.allowances ??= new PeerAllowance())
  }

  noteEnded(runPrefix: number): void {
    this.ended.push(runPrefix)
    if (this.ended.length > endedKept) this.ended.shift()
  }

  /** Whether a run of this prefix ended lately. */
  hasEnded(runPrefix: number): boolean {
    return this.ended.includes(runPrefix)
  }

  maySendAs(source: string): boolean {
    return this.sources === "any" || this.sources.includes(source)
  }
}

export class Peers {
  private readonly byKeyId = new Map<number, Array<Peer>>()
  private readonly suite: CryptoSuite
  private readonly identity: KeyPair
  private readonly counters: ReceiverCounters

  constructor(suite: CryptoSuite, identity: KeyPair, counters: ReceiverCounters) {
    this.suite = suite
    this.identity = identity
    this.counters = counters
  }

  /** The peers of a key id, at most 4. */
  of(keyId: number): ReadonlyArray<Peer> {
    return this.byKeyId.get(keyId) ?? nobody
  }

  *all(): Iterable<Peer> {
    for (const peers of this.byKeyId.values()) yield* peers
  }

  /** Adds a peer, or changes the sources of a known one. */
  allow(allowed: AllowedPeer): Peer {
    const { publicKey, sources } = allowed
    if (!isAcceptable(publicKey)) throw new PeerNotAllowable(publicKey, "publicKey")
    const keyId = keyIdOf(this.suite, publicKey)
    const equals = this.byKeyId.get(keyId) ?? []
    const known = equals.find((peer) => sameKey(peer.publicKey, publicKey))
    if (known !== undefined) {
      known.sources = sources
      return known
    }
    if (equals.length >= mostEqualKeyIds) throw new PeerNotAllowable(publicKey, "keyId")
    const peer = new Peer(this.suite, this.identity, allowed, keyId, this.counters)
    this.byKeyId.set(keyId, [...equals, peer])
    return peer
  }

  /** Removes a peer; its runs are the caller's to end. */
  revoke(publicKey: Uint8Array): Peer | undefined {
    const keyId = keyIdOf(this.suite, publicKey)
    const equals = this.of(keyId)
    const revoked = equals.find((peer) => sameKey(peer.publicKey, publicKey))
    if (revoked === undefined) return undefined
    revoked.isRevoked = true
    const rest = equals.filter((peer) => peer !== revoked)
    if (rest.length > 0) this.byKeyId.set(keyId, rest)
    else this.byKeyId.delete(keyId)
    return revoked
  }
}

const nobody: ReadonlyArray<Peer> = []

const sameKey = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && a.every((byte, i) => byte === b[i])

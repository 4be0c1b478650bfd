import { type CryptoSuite, isAcceptable, keyIdOf, type KeyPair, type Pair, staticSecret } from "@pure-link/keys"
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
  /** E0 of the pair, once it was asked for. */
  private secret: Uint8Array | undefined
  private isRefused = false
  private readonly suite: CryptoSuite
  private readonly identity: KeyPair

  constructor(suite: CryptoSuite, identity: KeyPair, allowed: AllowedPeer, keyId: number) {
    this.suite = suite
    this.identity = identity
    this.publicKey = allowed.publicKey
    this.sources = allowed.sources
    this.keyId = keyId
    this.pair = { sender: allowed.publicKey, receiver: identity.publicKey }
  }

  /** E0, computed once; undefined for a key that agrees on nothing (spec §6.1). */
  staticSecret(): Uint8Array | undefined {
    if (this.secret === undefined && !this.isRefused) {
      this.secret = staticSecret(this.suite, this.identity.privateKey, this.publicKey, this.pair)
      this.isRefused = this.secret === undefined
    }
    return this.secret
  }

  maySendAs(source: string): boolean {
    return this.sources === "any" || this.sources.includes(source)
  }
}

export class Peers {
  private readonly byKeyId = new Map<number, Array<Peer>>()
  private readonly suite: CryptoSuite
  private readonly identity: KeyPair

  constructor(suite: CryptoSuite, identity: KeyPair) {
    this.suite = suite
    this.identity = identity
  }

  /** The peers of a key id, at most 4. */
  of(keyId: number): ReadonlyArray<Peer> {
    return this.byKeyId.get(keyId) ?? nobody
  }

  *all(): Iterable<Peer> {
    for (const peers of this.byKeyId.values()) yield* peers
  }

  /** Adds a peer, or changes the sources of a known one. */
  allow(allowed: AllowedPeer): void {
    const { publicKey, sources } = allowed
    if (!isAcceptable(publicKey)) throw new PeerNotAllowable(publicKey, "publicKey")
    const keyId = keyIdOf(this.suite, publicKey)
    const equals = this.byKeyId.get(keyId) ?? []
    const known = equals.find((peer) => sameKey(peer.publicKey, publicKey))
    if (known !== undefined) known.sources = sources
    else if (equals.length >= mostEqualKeyIds) throw new PeerNotAllowable(publicKey, "keyId")
    else this.byKeyId.set(keyId, [...equals, new Peer(this.suite, this.identity, allowed, keyId)])
  }

  /** Removes a peer; its runs are the caller's to end. */
  revoke(publicKey: Uint8Array): Peer | undefined {
    const keyId = keyIdOf(this.suite, publicKey)
    const equals = this.of(keyId)
    const revoked = equals.find((peer) => sameKey(peer.publicKey, publicKey))
    if (revoked === undefined) return undefined
    const rest = equals.filter((peer) => peer !== revoked)
    if (rest.length > 0) this.byKeyId.set(keyId, rest)
    else this.byKeyId.delete(keyId)
    return revoked
  }
}

const nobody: ReadonlyArray<Peer> = []

const sameKey = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && a.every((byte, i) => byte === b[i])

import type { PacketNumber } from "@pure-link/wire"

/**
 * What the protocol asks of a cryptographic library, and nothing else: X25519, HKDF-SHA256 and AES-128-GCM on raw bytes
 * (spec §6). Two suites stand behind it, `nobleSuite` (readable) and `nodeSuite` (fast); tests hold them equal.
 */

/** A static or ephemeral X25519 key pair, each half 32 raw bytes (spec §6.1). */
export interface KeyPair {
  readonly privateKey: Uint8Array
  readonly publicKey: Uint8Array
}

/** One AES-128-GCM key with its IV: seals or opens the packets of one role, epoch and run (spec §6.4, §6.5). */
export interface PacketKey {
  /**
   * Seals `bytes[bodyStart, bodyEnd)` in place and writes the tag at `bodyEnd`, where 16 B of room must be. The
   * additional data is `bytes[start, bodyStart)`. A key must never meet a number twice.
   */
  seal(bytes: Uint8Array, start: number, bodyStart: number, bodyEnd: number, number: PacketNumber): void
  /**
   * Opens `bytes[bodyStart, end − 16)` in place; the tag is `bytes[end − 16, end)`. Returns false, and leaves the bytes
   * as they were, when there is no room for a tag or the tag does not verify.
   */
  open(bytes: Uint8Array, start: number, bodyStart: number, end: number, number: PacketNumber): boolean
  /**
   * Seals the packets `from` to `to − 1` of a train: packet i stands at `slab[i * stride …]` and takes `lengths[i]` bytes,
   * its tag included, after a header of `headerLength` bytes. Their numbers are `first`, `first + 1`, …
   */
  sealTrain(
    slab: Uint8Array,
    stride: number,
    lengths: Uint32Array,
    from: number,
    to: number,
    headerLength: number,
    first: PacketNumber
  ): void
  /** Opens the packets `from` to `to − 1` of a table, each as `open` does, and notes in `opened` which did. */
  openAll(bytes: Uint8Array, packets: SealedPackets, from: number, to: number, headerLength: number): void
  /** The key is over: what can be erased of it is, at once; whoever uses it afterwards has a mistake, and gets an error. */
  release(): void
}

/** Packets to be opened together, in columns; they lie in one slab. */
export interface SealedPackets {
  readonly starts: Uint32Array
  /** Where each ends, its tag included. */
  readonly ends: Uint32Array
  readonly numbers: Float64Array
  /** 1 for a packet that opened, 0 for one that did not. */
  readonly opened: Uint8Array
}

/** X25519 (RFC 7748) with the refusals of spec §6.1. */
export interface KeyAgreement {
  publicKey(privateKey: Uint8Array): Uint8Array
  /** The shared secret; `undefined` when the public key or the result is one that spec §6.1 refuses. */
  shared(privateKey: Uint8Array, publicKey: Uint8Array): Uint8Array | undefined
}

/** HKDF-SHA256 (RFC 5869) in its two steps, and the hash itself. Arguments are not kept. */
export interface KeyDerivation {
  extract(salt: Uint8Array, inputKeyMaterial: Uint8Array): Uint8Array
  expand(pseudoRandomKey: Uint8Array, info: Uint8Array, length: number): Uint8Array
  sha256(bytes: Uint8Array): Uint8Array
}

export interface CryptoSuite {
  readonly name: string
  readonly agreement: KeyAgreement
  readonly derivation: KeyDerivation
  /** A packet key from 28 B: an AES-128 key of 16 B, then an IV of 12 B (spec §6.4). The bytes are copied. */
  packetKey(material: Uint8Array): PacketKey
}

/** The length of X25519 keys, of shared secrets and of epoch secrets. */
export const keyLength = 32
/** The bytes a packet key is made from: AES-128 key and IV (spec §6.4). */
export const packetKeyMaterialLength = 28

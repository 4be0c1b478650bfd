import { type Epoch, type Id64, readUint32, writeId64, writeUint32 } from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import { type CryptoSuite, keyLength, type PacketKey, packetKeyMaterialLength } from "./cryptoSuite.ts"

/**
 * The key schedule (spec §6): from private keys to packet keys. Every derivation binds the version, its role, both
 * static public keys and, where they apply, run, epoch, ephemeral keys and reply run, so that no two uses share a key.
 */

/** The static public keys of a stream's sender and receiver, S and R of spec §6.3. */
export interface Pair {
  readonly sender: Uint8Array
  readonly receiver: Uint8Array
}

/** The key id of a public key: a hint that finds the peer (spec §6.2, §3.4). */
export const keyIdOf = (suite: CryptoSuite, publicKey: Uint8Array): number =>
  readUint32(suite.derivation.sha256(concatenate(label("key id"), publicKey)), 0)

/** E0, the secret of epoch 0 of a pair (spec §6.3); `undefined` when the peer's key is one that spec §6.1 refuses. */
export const staticSecret = (
  suite: CryptoSuite,
  ownPrivate: Uint8Array,
  peerPublic: Uint8Array,
  pair: Pair
): Uint8Array | undefined => {
  const shared = suite.agreement.shared(ownPrivate, peerPublic)
  if (shared === undefined) return undefined
  const extracted = suite.derivation.extract(label("static"), shared)
  const secret = suite.derivation.expand(extracted, concatenate(pair.sender, pair.receiver), keyLength)
  shared.fill(0)
  extracted.fill(0)
  return secret
}

/**
 * Ek, the secret of an epoch ≥ 1 of a run (spec §6.3); `undefined` when the peer's ephemeral key is refused (spec
 * §6.1).
 */
export const epochSecret = (
  suite: CryptoSuite,
  from: {
    /** This side's ephemeral private key, and the other side's ephemeral public key. */
    readonly ownPrivate: Uint8Array
    readonly peerPublic: Uint8Array
    /** Ec: the secret of the epoch whose packet carried the OFFER; E0 in silent recovery. */
    readonly carrierSecret: Uint8Array
    readonly pair: Pair
    readonly run: Id64
    readonly epoch: Epoch
    readonly offerKey: Uint8Array
    readonly acceptKey: Uint8Array
  }
): Uint8Array | undefined => {
  assert(from.epoch >= 1 && from.carrierSecret.length === keyLength)
  const shared = suite.agreement.shared(from.ownPrivate, from.peerPublic)
  if (shared === undefined) return undefined
  const material = concatenate(shared, from.carrierSecret)
  const extracted = suite.derivation.extract(label("epoch"), material)
  const { sender, receiver } = from.pair
  const info = concatenate(sender, receiver, runAndEpoch(from.run, from.epoch), from.offerKey, from.acceptKey)
  const secret = suite.derivation.expand(extracted, info, keyLength)
  shared.fill(0)
  material.fill(0)
  extracted.fill(0)
  return secret
}

/** The key of data packets of a run in an epoch (spec §6.4). */
export const dataKey = (suite: CryptoSuite, secret: Uint8Array, pair: Pair, run: Id64, epoch: Epoch): PacketKey =>
  packetKey(suite, secret, concatenate(label("data"), pair.sender, pair.receiver, runAndEpoch(run, epoch)))

/** The key of answers of a reply run to a run in an epoch (spec §6.4). */
export const answerKey = (
  suite: CryptoSuite,
  secret: Uint8Array,
  pair: Pair,
  run: Id64,
  epoch: Epoch,
  replyRun: Id64
): PacketKey => {
  const { sender, receiver } = pair
  return packetKey(suite, secret, concatenate(label("answer"), sender, receiver, runAndEpoch(run, epoch), id(replyRun)))
}

/** The key of the one LOST packet of a reply run drawn for it (spec §6.4); `secret0` is E0. */
export const lostKey = (suite: CryptoSuite, secret0: Uint8Array, pair: Pair, replyRun: Id64): PacketKey =>
  packetKey(suite, secret0, concatenate(label("lost"), pair.sender, pair.receiver, id(replyRun)))

const packetKey = (suite: CryptoSuite, secret: Uint8Array, info: Uint8Array): PacketKey => {
  const material = suite.derivation.expand(secret, info, packetKeyMaterialLength)
  const key = suite.packetKey(material)
  material.fill(0)
  return key
}

/** The ASCII bytes of "pure-link 1 " ‖ `role`. A later version changes the number (spec §3.9). */
const label = (role: string): Uint8Array => new TextEncoder().encode(`pure-link 1 ${role}`)

const id = (value: Id64): Uint8Array => {
  const bytes = new Uint8Array(8)
  writeId64(bytes, 0, value)
  return bytes
}

const runAndEpoch = (run: Id64, epoch: Epoch): Uint8Array => {
  const bytes = new Uint8Array(12)
  writeUint32(bytes, writeId64(bytes, 0, run), epoch)
  return bytes
}

const concatenate = (...parts: ReadonlyArray<Uint8Array>): Uint8Array => {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0))
  let offset = 0
  for (const part of parts) {
    whole.set(part, offset)
    offset += part.length
  }
  return whole
}

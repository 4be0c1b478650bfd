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
  readUint32(suite.derivation.sha256(concatenate(labels.keyId, publicKey)), 0)

/** E0, the secret of epoch 0 of a pair (spec §6.3); `undefined` when the peer's key is one that spec §6.1 refuses. */
export const staticSecret = (
  suite: CryptoSuite,
  ownPrivate: Uint8Array,
  peerPublic: Uint8Array,
  pair: Pair
): Uint8Array | undefined => {
  const shared = suite.agreement.shared(ownPrivate, peerPublic)
  if (shared === undefined) return undefined
  const extracted = suite.derivation.extract(labels.static, shared)
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
  const extracted = suite.derivation.extract(labels.epoch, material)
  const { sender, receiver } = from.pair
  const info = concatenate(sender, receiver, runAndEpoch(from.run, from.epoch), from.offerKey, from.acceptKey)
  const secret = suite.derivation.expand(extracted, info, keyLength)
  shared.fill(0)
  material.fill(0)
  extracted.fill(0)
  return secret
}

/** The key of data packets of a run in an epoch (spec §6.4). */
export const dataKey = (suite: CryptoSuite, secret: Uint8Array, pair: Pair, run: Id64, epoch: Epoch): PacketKey => {
  const info = infos.data
  writeUint32(info, writeId64(info, writePair(info, labels.data, pair), run), epoch)
  return packetKey(suite, secret, info)
}

/** The key of answers of a reply run to a run in an epoch (spec §6.4). */
export const answerKey = (
  suite: CryptoSuite,
  secret: Uint8Array,
  pair: Pair,
  run: Id64,
  epoch: Epoch,
  replyRun: Id64
): PacketKey => {
  const info = infos.answer
  const afterRun = writeId64(info, writePair(info, labels.answer, pair), run)
  writeId64(info, writeUint32(info, afterRun, epoch), replyRun)
  return packetKey(suite, secret, info)
}

/** The key of the one LOST packet of a reply run drawn for it (spec §6.4); `secret0` is E0. */
export const lostKey = (suite: CryptoSuite, secret0: Uint8Array, pair: Pair, replyRun: Id64): PacketKey => {
  const info = infos.lost
  writeId64(info, writePair(info, labels.lost, pair), replyRun)
  return packetKey(suite, secret0, info)
}

const packetKey = (suite: CryptoSuite, secret: Uint8Array, info: Uint8Array): PacketKey => {
  const material = suite.derivation.expand(secret, info, packetKeyMaterialLength)
  const key = suite.packetKey(material)
  material.fill(0)
  return key
}

/** The ASCII bytes of "pure-link 1 " ‖ `role`. A later version changes the number (spec §3.9). */
const label = (role: string): Uint8Array => new TextEncoder().encode(`pure-link 1 ${role}`)

const labels = {
  keyId: label("key id"),
  static: label("static"),
  epoch: label("epoch"),
  data: label("data"),
  answer: label("answer"),
  lost: label("lost")
}

/** Room for label ‖ S ‖ R ‖ `rest` bytes; nothing in it is secret. */
const infoFor = (start: Uint8Array, rest: number): Uint8Array => {
  const info = new Uint8Array(start.length + 2 * keyLength + rest)
  info.set(start)
  return info
}

/** Each packet key's info is written over the one before: anybody who makes up a run makes its receiver derive a key. */
const infos = {
  data: infoFor(labels.data, 12),
  answer: infoFor(labels.answer, 20),
  lost: infoFor(labels.lost, 8)
}

/** Writes S ‖ R after the label, and returns where they end. */
const writePair = (info: Uint8Array, { length }: Uint8Array, { receiver, sender }: Pair): number => {
  assert(sender.length === keyLength && receiver.length === keyLength)
  info.set(sender, length)
  info.set(receiver, length + keyLength)
  return length + 2 * keyLength
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

import {
  livesInMemo,
  type MemoRun,
  readId64,
  readStream,
  readUint16,
  readUint32,
  readUint64,
  type StreamFrame,
  streamFrameLength,
  writeId64,
  writeStream,
  writeUint16,
  writeUint32,
  writeUint64
} from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import { hash } from "node:crypto"

/**
 * One slot of a memo (spec §12.1): a peer with its E0 and one run, or a further run of a peer. Its seal covers every byte,
 * its place and whose memo it is, so that a slot that was torn, cut off or moved reads as empty, never as a mixture.
 *
 * Layout: seal 16, kind 1, flags 1, length of the stream 2, zero 4, order of the peer 8, order of the run 8, peer 32, E0
 * 32, run 8, bound + 1 8, last offer + 1 8, epoch 4, candidate's epoch 4, secret 32, candidate's secret 32, its offer key
 * 32, its accept key 32, stream at most 196, zeros.
 */
export const slotLength = 512

const sealLength = 16
const at = {
  kind: 16,
  flags: 17,
  streamLength: 18,
  peerOrder: 24,
  runOrder: 32,
  peer: 40,
  staticSecret: 72,
  run: 104,
  bound: 112,
  lastOffer: 120,
  epoch: 128,
  candidateEpoch: 132,
  secret: 136,
  candidateSecret: 168,
  offerKey: 200,
  acceptKey: 232,
  stream: 264
} as const
const secretLength = 32
const flag = { run: 1, live: 2, current: 4, candidate: 8, stream: 16 } as const

/** What a slot holds: a peer with at most one run, or a further run of a peer. */
export const SlotKind = { empty: 0, peer: 1, run: 2 } as const

export const kindOf = (slot: Uint8Array): number => slot[at.kind]!
export const peerOf = (slot: Uint8Array): Uint8Array => slot.subarray(at.peer, at.peer + secretLength)
export const peerOrderOf = (slot: Uint8Array): number => readUint64(slot, at.peerOrder)
export const runOrderOf = (slot: Uint8Array): number => readUint64(slot, at.runOrder)
export const hasRun = (slot: Uint8Array): boolean => (slot[at.flags]! & flag.run) !== 0
export const isLive = (slot: Uint8Array): boolean => (slot[at.flags]! & flag.live) !== 0
export const runOf = (slot: Uint8Array): bigint => readId64(slot, at.run)
export const staticSecretOf = (slot: Uint8Array): Uint8Array =>
  slot.slice(at.staticSecret, at.staticSecret + secretLength)

/** Begins a slot that is all zeros. `order`: the larger, the later the peer was kept. */
export const writePeer = (slot: Uint8Array, key: Uint8Array, staticSecret: Uint8Array, order: number): void => {
  assert(key.length === secretLength && staticSecret.length === secretLength, "keys and secrets have 32 B")
  slot[at.kind] = SlotKind.peer
  slot.set(key, at.peer)
  slot.set(staticSecret, at.staticSecret)
  writeUint64(slot, at.peerOrder, order)
}

/** Begins a slot that is all zeros, for a further run of a peer. */
export const writeSide = (slot: Uint8Array, key: Uint8Array): void => {
  assert(key.length === secretLength, "a key has 32 B")
  slot[at.kind] = SlotKind.run
  slot.set(key, at.peer)
}

/** Writes a run over that of the slot, if any. `order`: the larger, the later the run was kept first. */
export const writeRun = (slot: Uint8Array, run: MemoRun, order: number): void => {
  clearRun(slot)
  const { candidate, current } = run
  const stream = run.stream && streamLengthOf(run.stream) > 0 ? run.stream : undefined
  slot[at.flags] =
    flag.run |
    (run.isLive ? flag.live : 0) |
    (current ? flag.current : 0) |
    (candidate ? flag.candidate : 0) |
    (stream ? flag.stream : 0)
  writeUint64(slot, at.runOrder, order)
  writeId64(slot, at.run, run.run)
  writeUint64(slot, at.bound, run.bound + 1)
  writeUint64(slot, at.lastOffer, run.lastOffer + 1)
  if (current) {
    writeUint32(slot, at.epoch, current.epoch)
    writeSecret(slot, at.secret, current.secret)
  }
  if (candidate) {
    writeUint32(slot, at.candidateEpoch, candidate.epoch)
    writeSecret(slot, at.candidateSecret, candidate.secret)
    writeSecret(slot, at.offerKey, candidate.offerKey)
    writeSecret(slot, at.acceptKey, candidate.acceptKey)
  }
  if (stream) writeUint16(slot, at.streamLength, writeStream(slot, at.stream, stream) - at.stream)
}

/** The bytes of a stream that is kept; 0 for one that is not. */
const streamLengthOf = (stream: StreamFrame): number => {
  const length = streamFrameLength(stream)
  return stream.lives.length <= livesInMemo && length <= slotLength - at.stream ? length : 0
}

const writeSecret = (slot: Uint8Array, offset: number, secret: Uint8Array): void => {
  assert(secret.length === secretLength, "keys and secrets have 32 B")
  slot.set(secret, offset)
}

/** Leaves nothing of the slot's run. */
export const clearRun = (slot: Uint8Array): void => {
  slot[at.flags] = 0
  writeUint16(slot, at.streamLength, 0)
  writeUint64(slot, at.runOrder, 0)
  slot.fill(0, at.run)
}

/** Copies the run of one slot to another. */
export const copyRun = (from: Uint8Array, to: Uint8Array): void => {
  to[at.flags] = from[at.flags]!
  writeUint16(to, at.streamLength, readUint16(from, at.streamLength))
  writeUint64(to, at.runOrder, runOrderOf(from))
  to.set(from.subarray(at.run), at.run)
}

/** The run of a sealed slot that has one, with secrets of its own. */
export const readRun = (slot: Uint8Array): MemoRun => {
  const flags = slot[at.flags]!
  const secret = (offset: number) => slot.slice(offset, offset + secretLength)
  return {
    run: runOf(slot),
    isLive: isLive(slot),
    bound: readUint64(slot, at.bound) - 1,
    lastOffer: readUint64(slot, at.lastOffer) - 1,
    current: flags & flag.current ? { epoch: readUint32(slot, at.epoch), secret: secret(at.secret) } : undefined,
    candidate:
      flags & flag.candidate
        ? {
            epoch: readUint32(slot, at.candidateEpoch),
            secret: secret(at.candidateSecret),
            offerKey: secret(at.offerKey),
            acceptKey: secret(at.acceptKey)
          }
        : undefined,
    stream: flags & flag.stream ? readStream(slot, at.stream, at.stream + readUint16(slot, at.streamLength)) : undefined
  }
}

/** Seals slots of one memo, and tells whether they are sealed. */
export class SlotSeal {
  readonly #owner: Uint8Array
  readonly #found = new Uint8Array(sealLength)

  /** Whose memo it is: seals of another owner do not verify. */
  constructor(owner: Uint8Array) {
    this.#owner = hash("sha256", owner, "buffer").subarray(0, sealLength - 4)
  }

  /** Seals a slot for its place. */
  write(slot: Uint8Array, place: number): void {
    const seal = this.#digest(slot, place)
    for (let i = 0; i < sealLength; i++) slot[i] = seal.charCodeAt(i)
  }

  /** Whether the slot was sealed for this place and no byte has changed since. */
  verifies(slot: Uint8Array, place: number): boolean {
    this.#found.set(slot.subarray(0, sealLength))
    const seal = this.#digest(slot, place)
    slot.set(this.#found, 0)
    for (let i = 0; i < sealLength; i++) if (slot[i] !== seal.charCodeAt(i)) return false
    return true
  }

  /**
   * The digest of a slot that has owner and place where its seal belongs; a character per byte, which costs a quarter of
   * what a buffer does.
   */
  #digest(slot: Uint8Array, place: number): string {
    assert(slot.length === slotLength)
    slot.set(this.#owner, 0)
    writeUint32(slot, sealLength - 4, place)
    return hash("sha256", slot, "binary")
  }
}

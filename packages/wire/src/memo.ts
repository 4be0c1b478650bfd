import type { StreamFrame } from "./frames/stream.ts"
import type { Epoch, Id64, PacketNumber } from "./units.ts"

/**
 * What a receiver machine asks of its memo and hears back (spec §12.1): the secrets that let a restarted receiver open
 * its peers' next packets at once. All calls are synchronous: what a call wrote survives the death of the process from
 * its return on, so that a candidate is remembered before its ACCEPT leaves.
 */

/** An epoch ≥ 1 and its secret of 32 B. */
export interface MemoEpoch {
  readonly epoch: Epoch
  readonly secret: Uint8Array
}

/** An accepted epoch under which no packet has opened yet, with what its ACCEPT repeats (spec §7.2). */
export interface MemoCandidate extends MemoEpoch {
  readonly offerKey: Uint8Array
  readonly acceptKey: Uint8Array
}

/** What is remembered of a run. */
export interface MemoRun {
  readonly run: Id64
  /** A packet in epoch ≥ 1 opened: the run holds one of its peer's places for good (spec §12.4). */
  readonly isLive: boolean
  /** A lower bound of the largest packet number opened; −1 before any. */
  readonly bound: PacketNumber
  /** The number of the packet whose OFFER counted last; −1 before any. */
  readonly lastOffer: PacketNumber
  /** Undefined in a run that has only a candidate. */
  readonly current: MemoEpoch | undefined
  readonly candidate: MemoCandidate | undefined
  /** The stream, if it is known and has at most `livesInMemo` lives; else the restarted receiver asks with NAME. */
  readonly stream: StreamFrame | undefined
}

/** What is remembered of a peer. */
export interface MemoPeer {
  /** E0 of the pair, 32 B. */
  readonly staticSecret: Uint8Array
  readonly runs: ReadonlyArray<MemoRun>
}

/** Lives that a remembered stream has at most (spec §12.1). */
export const livesInMemo = 2

/** The receiver's memo as its machine uses it. Keys and secrets are copied by the memo, never kept by reference. */
export interface ReceiverMemo {
  /** What is remembered of a peer, by its static public key; undefined when nothing is. */
  recall(publicKey: Uint8Array): MemoPeer | undefined
  /** Remembers a peer's E0. False: there is no room, or it could not be written. */
  keepPeer(publicKey: Uint8Array, staticSecret: Uint8Array): boolean
  /** Remembers a run of a kept peer, in place of what was remembered of this run. False as above. */
  keepRun(publicKey: Uint8Array, run: MemoRun): boolean
  /** The run ended: its secrets are overwritten. */
  forgetRun(publicKey: Uint8Array, run: Id64): void
  /** The peer was revoked: all its secrets are overwritten. */
  forgetPeer(publicKey: Uint8Array): void
}

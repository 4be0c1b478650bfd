import { keyIdOf, nodeSuite } from "@pure-link/keys"
import { writeLongHeader, writeShortHeader } from "@pure-link/wire"
import { randomFillSync } from "node:crypto"
import { senderIdentity } from "./identities.ts"

/**
 * Datagrams that a stranger sends: noise, and packets with headers that a receiver has to look at closely, none of which
 * opens.
 */

/** A process that floods says so on standard error when the first datagram is about to go. */
export const begunWord = "begun"

export const garbageKinds = ["noise", "unknown-key", "known-key", "new-run", "live-run"] as const
/**
 * `noise`: random bytes. `unknown-key`: a well-formed header of nobody known. `known-key`: of the benchmark's sender, for a
 * run that is not there. `new-run`: of the same, claiming to begin a run. `live-run`: of the run that is under way.
 */
export type GarbageKind = (typeof garbageKinds)[number]

export const garbageStride = 1_452
export const garbagePerTrain = 64

/** Trains of one kind each, all of one length but noise, which is of any. */
export class Garbage {
  readonly slab = new Uint8Array(garbagePerTrain * garbageStride)
  readonly lengths = new Uint32Array(garbagePerTrain)
  readonly #keyId = keyIdOf(nodeSuite, senderIdentity.publicKey)
  readonly #livePrefix: number | undefined
  readonly #random = new Uint32Array(garbagePerTrain)
  #number = 1

  constructor(livePrefix: number | undefined) {
    this.#livePrefix = livePrefix
    randomFillSync(this.slab)
  }

  /** Fills the slab with fresh datagrams of a kind. */
  fill(kind: GarbageKind): void {
    randomFillSync(this.#random)
    for (let i = 0; i < garbagePerTrain; i++) {
      this.lengths[i] = kind === "noise" ? 1 + (this.#random[i]! % garbageStride) : garbageStride
      this.#header(kind, i * garbageStride, this.#random[i]!)
    }
  }

  #header(kind: GarbageKind, at: number, random: number): void {
    const number = this.#number++
    switch (kind) {
      case "noise":
        this.slab[at + (random % garbageStride)] = random >>> 24
        this.slab[at] = random >>> 16
        return
      case "unknown-key":
        writeShortHeader(this.slab, at, random & 15, random, random ^ 0x5bd1e995, number)
        return
      case "known-key":
        writeShortHeader(this.slab, at, random & 15, this.#keyId, random, number)
        return
      case "new-run":
        writeLongHeader(this.slab, at, 0, this.#keyId, (BigInt(random) << 32n) | 1n, number)
        return
      case "live-run":
        writeShortHeader(this.slab, at, random & 1, this.#keyId, this.#livePrefix ?? random, number)
    }
  }
}

import { memoSideRuns } from "@pure-link/ports"

/**
 * Where the slots of a memo lie, in a file or in memory, and how their places are used: 1 to 1,024 are side slots, for runs
 * beside the first of a peer; behind them are the peers' own. Place 0 is left to whoever stores.
 */

/** Where slots lie. What was never written reads as zeros. */
export interface SlotStorage {
  /** Shows every slot in which something may stand, in ascending order; the bytes are only lent. */
  visit(each: (place: number, slot: Uint8Array) => void): void
  /** Reads a slot; false when it cannot be read. */
  read(place: number, slot: Uint8Array): boolean
  /** Writes a whole slot, so that it outlives the process; false when it was not, or not wholly, written. */
  write(place: number, slot: Uint8Array): boolean
}

/** The first place of a peer. */
export const firstPeerPlace = memoSideRuns + 1

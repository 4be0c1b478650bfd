import type { Id64, RecordNumber } from "@pure-link/wire"
import type { Chance } from "../world/chance.ts"

/**
 * The reference model: every record that was ever appended, as a tree per generation. An outbox is a path of the tree;
 * backups and clones are paths that share their beginning. An inbox is right when it is a path too, from the root on
 * (spec §2.3, §2.5): a history that some outbox really had.
 */

export interface Entry {
  readonly number: RecordNumber
  readonly life: Id64
  readonly bytes: Uint8Array
  readonly generation: Generation
  /** The record before it, or the root. */
  readonly previous: Entry | undefined
  /** What outboxes appended after it; more than one of them is a fork. */
  readonly followers: Array<Entry>
}

export class Generation {
  readonly id: Id64
  /** Generations that came later have a higher one. */
  readonly order: number
  readonly root: Entry
  /** Every record that was durable in an inbox at any time. */
  readonly stored = new Set<Entry>()

  constructor(id: Id64, order: number) {
    this.id = id
    this.order = order
    this.root = {
      number: 0,
      life: 0n,
      bytes: new Uint8Array(0),
      generation: this,
      previous: undefined,
      followers: []
    }
  }
}

/** A record is appended after another one. */
export const follow = (previous: Entry, life: Id64, bytes: Uint8Array): Entry => {
  const { number, generation } = previous
  const entry: Entry = { number: number + 1, life, bytes, generation, previous, followers: [] }
  previous.followers.push(entry)
  return entry
}

/** The record after `previous` with these contents, if any outbox had it. */
export const followerOf = (previous: Entry, life: Id64 | undefined, bytes: Uint8Array): Entry | undefined =>
  previous.followers.find((entry) => entry.life === life && Buffer.compare(entry.bytes, bytes) === 0)

/** Eight random bytes, not all zero. */
export const id64 = (chance: Chance): Id64 => (BigInt(chance.bits()) << 32n) | BigInt((chance.bits() | 1) >>> 0)

import type { Address, Micros } from "@pure-link/wire"

/** What a watcher of the network is shown: a datagram, and what befell it. */

/** What befell a datagram. One that is sent meets one or more of the others later, or one at once. */
export type Fate =
  | "sent"
  | "queueDropped"
  | "lost"
  | "duplicated"
  | "corrupted"
  | "tooLarge"
  | "cut"
  | "sieved"
  | "arrived"
  | "unreachable"
  | "overrun"

export interface Passage {
  readonly at: Micros
  readonly fate: Fate
  readonly from: Address
  readonly to: Address
  /** Valid only during the call, and not to be changed. */
  readonly bytes: Uint8Array
}

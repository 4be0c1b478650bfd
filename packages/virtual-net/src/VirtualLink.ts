import { type Bytes, type Micros } from "@pure-link/wire"
import { SeededStream } from "./SeededStream.ts"

/**
 * One direction between two hosts: what it does to datagrams, drawn from its own seeded stream, and what it did so far.
 * Each datagram takes the same number of draws whatever the options are, so that changing one option leaves the other
 * fates alone.
 */

export interface LinkOptions {
  /** From sending to arrival; at least 1 µs is taken. */
  readonly delayMicros: Micros
  /** Added uniformly from −jitter to +jitter, so that datagrams overtake each other. */
  readonly jitterMicros: Micros
  /** Probability that a datagram is lost. */
  readonly loss: number
  /** Probability that a second copy arrives, with a delay drawn anew. */
  readonly duplicate: number
  /** Probability that a datagram is held back by `reorderMicros` more. */
  readonly reorder: number
  readonly reorderMicros: Micros
  /** Datagrams with more payload than this vanish. */
  readonly mtu: Bytes
}

export const perfectLink: LinkOptions = {
  delayMicros: 1_000,
  jitterMicros: 0,
  loss: 0,
  duplicate: 0,
  reorder: 0,
  reorderMicros: 0,
  mtu: 65_507
}

export interface LinkCounters {
  sent: number
  sentBytes: Bytes
  arrived: number
  arrivedBytes: Bytes
  lost: number
  duplicated: number
  reordered: number
  /** Larger than the mtu. */
  tooLarge: number
  /** Sent while the hosts were partitioned. */
  cut: number
  /** Dropped by the network's `sieve`. */
  sieved: number
  /** No socket was open there when it arrived. */
  unreachable: number
  /** The receive queue was full. */
  overrun: number
}

export class VirtualLink {
  readonly from: string
  readonly to: string
  readonly counters: LinkCounters = {
    sent: 0,
    sentBytes: 0,
    arrived: 0,
    arrivedBytes: 0,
    lost: 0,
    duplicated: 0,
    reordered: 0,
    tooLarge: 0,
    cut: 0,
    sieved: 0,
    unreachable: 0,
    overrun: 0
  }
  options: LinkOptions
  isCut = false
  readonly #random: SeededStream
  /** What `draw` decided on last. */
  isLost = false
  isReordered = false
  isDuplicated = false
  delay: Micros = 0
  copyDelay: Micros = 0

  constructor(seed: number, from: string, to: string, options: LinkOptions) {
    this.from = from
    this.to = to
    this.options = options
    this.#random = new SeededStream(seed, `${from}>${to}`)
  }

  /** Decides what befalls the next datagram. */
  draw(): void {
    const options = this.options
    this.isLost = this.#random.next() < options.loss
    this.isDuplicated = this.#random.next() < options.duplicate
    this.isReordered = this.#random.next() < options.reorder
    this.delay = this.#drawDelay() + (this.isReordered ? options.reorderMicros : 0)
    this.copyDelay = this.#drawDelay()
  }

  #drawDelay(): Micros {
    const { delayMicros, jitterMicros } = this.options
    return Math.max(1, Math.round(delayMicros + (2 * this.#random.next() - 1) * jitterMicros))
  }
}

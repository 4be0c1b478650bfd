import type { Bytes, Micros } from "@pure-link/wire"
import type { Bottleneck } from "./Bottleneck.ts"
import { BurstLoss } from "./BurstLoss.ts"
import { Corruption } from "./Corruption.ts"
import type { LinkOptions } from "./LinkOptions.ts"
import { SeededStream } from "./SeededStream.ts"

/**
 * One direction between two hosts: what it does to datagrams, drawn from its own seeded streams, and what it did so
 * far. Each datagram takes the same number of draws from each stream whatever the options are, so that changing one
 * option leaves the other fates alone.
 */

export interface LinkCounters {
  sent: number
  sentBytes: Bytes
  arrived: number
  arrivedBytes: Bytes
  /** By `loss` or `burstLoss`. */
  lost: number
  duplicated: number
  /** Arrived, or will, with one bit flipped. */
  corrupted: number
  reordered: number
  /** The bottleneck's queue had no room for it. */
  queueDropped: number
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
  readonly counters: LinkCounters = {
    sent: 0,
    sentBytes: 0,
    arrived: 0,
    arrivedBytes: 0,
    lost: 0,
    duplicated: 0,
    corrupted: 0,
    reordered: 0,
    queueDropped: 0,
    tooLarge: 0,
    cut: 0,
    sieved: 0,
    unreachable: 0,
    overrun: 0
  }
  options: LinkOptions
  /** The one that `options` name. */
  bottleneck: Bottleneck | undefined
  isCut = false
  readonly #random: SeededStream
  readonly #burstLoss: BurstLoss
  /** What `draw` decided on last. */
  isLost = false
  isReordered = false
  isDuplicated = false
  delay: Micros = 0
  copyDelay: Micros = 0
  readonly corruption: Corruption
  readonly copyCorruption: Corruption

  constructor(seed: number, from: string, to: string, options: LinkOptions, bottleneck: Bottleneck | undefined) {
    this.options = options
    this.bottleneck = bottleneck
    this.#random = new SeededStream(seed, `${from}>${to}`)
    this.#burstLoss = new BurstLoss(new SeededStream(seed, `${from}>${to}/burst`))
    this.corruption = new Corruption(new SeededStream(seed, `${from}>${to}/corruption`))
    this.copyCorruption = new Corruption(new SeededStream(seed, `${from}>${to}/corruption of copies`))
  }

  /** Decides what befalls the next datagram. */
  draw(): void {
    const options = this.options
    const isLostAlone = this.#random.next() < options.loss
    this.isLost = this.#burstLoss.draw(options.burstLoss) || isLostAlone
    this.isDuplicated = this.#random.next() < options.duplicate
    this.isReordered = this.#random.next() < options.reorder
    this.delay = this.#drawDelay() + (this.isReordered ? options.reorderMicros : 0)
    this.copyDelay = this.#drawDelay()
    this.corruption.draw(options.corrupt)
    this.copyCorruption.draw(options.corrupt)
  }

  #drawDelay(): Micros {
    const { delayMicros, jitterMicros } = this.options
    return Math.max(1, Math.round(delayMicros + (2 * this.#random.next() - 1) * jitterMicros))
  }
}

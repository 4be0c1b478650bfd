import type { Passage } from "@pure-link/virtual-net"
import { expandPacketNumber, Kind, PacketHeader, type PacketNumber } from "@pure-link/wire"

/**
 * What really became of each of a sender's packets: the network knows what its recovery can only judge. A sender's
 * packets are counted across its runs, each of which numbers from 0; the count is the packet's index here.
 */

/** `vanished`: too large for the path, which says nothing of congestion. */
export const Truth = { unknown: 0, underWay: 1, dropped: 2, arrived: 3, vanished: 4 } as const
type Truth = (typeof Truth)[keyof typeof Truth]

interface RunNumbers {
  /** The index of packet 0. */
  readonly base: number
  largest: PacketNumber
}

export class FlightTruth {
  #truths = new Uint8Array(65_536)
  readonly #runs = new Map<number, RunNumbers>()
  #run: RunNumbers = { base: 0, largest: -1 }
  #prefix = -1
  #count = 0
  #last = 0
  /** Undamaged copies of the packet sent last that are on their way. */
  #copies = 0
  readonly #header = new PacketHeader()
  /** Datagrams that brought a packet which had arrived before. */
  arrivedAgain = 0

  /** The index of a packet of the present run. */
  indexOf(number: PacketNumber): number {
    return this.#run.base + number
  }

  of(index: number): Truth {
    return (this.#truths[index] ?? Truth.unknown) as Truth
  }

  /** The index of the first packet of the present run: those below are of runs that ended. */
  get base(): number {
    return this.#run.base
  }

  /** A packet of the sender, and what befell it. What befalls it at once follows its sending directly. */
  handlePassage({ bytes, fate }: Passage): void {
    switch (fate) {
      case "sent":
        return this.#handleSent(bytes)
      case "duplicated":
        return this.#countCopies(1)
      case "queueDropped":
      case "lost":
      case "corrupted":
      case "cut":
      case "sieved":
        return this.#countCopies(-1)
      case "tooLarge":
        this.#truths[this.#last] = Truth.vanished
        return
      case "arrived":
        return this.#settle(bytes, Truth.arrived)
      case "unreachable":
      case "overrun":
        return this.#settle(bytes, Truth.dropped)
    }
  }

  #handleSent(bytes: Uint8Array): void {
    const header = this.#header
    if (!header.read(bytes, 0, bytes.length)) return
    if (header.runPrefix !== this.#prefix) this.#begin(header.runPrefix)
    const run = this.#run
    const number = header.kind === Kind.longData ? header.number : expandPacketNumber(header.number, run.largest)
    run.largest = Math.max(run.largest, number)
    this.#last = run.base + number
    this.#count = Math.max(this.#count, this.#last + 1)
    if (this.#last >= this.#truths.length) this.#grow()
    this.#copies = 0
    this.#countCopies(1)
  }

  #countCopies(more: number): void {
    this.#copies += more
    this.#truths[this.#last] = this.#copies > 0 ? Truth.underWay : Truth.dropped
  }

  #begin(prefix: number): void {
    this.#prefix = prefix
    this.#run = { base: this.#count, largest: -1 }
    this.#runs.set(prefix, this.#run)
  }

  /** A damaged header leads nowhere, or to a packet that is under way: what was dropped stays so. */
  #settle(bytes: Uint8Array, truth: Truth): void {
    const header = this.#header
    if (!header.read(bytes, 0, bytes.length)) return
    const run = this.#runs.get(header.runPrefix)
    if (run === undefined) return
    const number = header.kind === Kind.longData ? header.number : expandPacketNumber(header.number, run.largest)
    const index = run.base + number
    const before = this.of(index)
    if (before === Truth.underWay) this.#truths[index] = truth
    else if (before === Truth.arrived && truth === Truth.arrived) this.arrivedAgain++
  }

  #grow(): void {
    const larger = new Uint8Array(2 * this.#truths.length)
    larger.set(this.#truths)
    this.#truths = larger
  }
}

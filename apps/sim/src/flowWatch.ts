import type { Passage } from "@pure-link/virtual-net"
import type { Trace, TraceEvent } from "@pure-link/trace"
import { type Bytes, type Micros, never } from "@pure-link/wire"
import type { Digest } from "./digest.ts"
import { EpisodeWatch } from "./episodeWatch.ts"
import { FlightTruth, Truth } from "./flightTruth.ts"
import type { SimOptions } from "./options.ts"
import { PacingWatch } from "./pacingWatch.ts"
import type { TimeSeries } from "./timeSeries.ts"
import { WindowWatch } from "./windowWatch.ts"

/**
 * One sender, watched: its events as its machines emit them, and what the network does to its packets. It only counts,
 * and never interferes.
 */

type Of<Tag extends TraceEvent["_tag"]> = Extract<TraceEvent, { readonly _tag: Tag }>

/** A packet this close to the datagram size has no room for another part (spec §4.1). */
const roomForNoPart: Bytes = 64

export class FlowWatch implements Trace {
  readonly packets = true
  readonly truth = new FlightTruth()
  readonly episodes = new EpisodeWatch(this.truth)
  readonly pacing = new PacingWatch()
  readonly window: WindowWatch
  packetsSent = 0
  declaredLost = 0
  trulyLost = 0
  late = 0
  queueDrops = 0
  pathDrops = 0
  otherDrops = 0
  datagramSize: Bytes = 1_200
  /** Of the packets with records. */
  largestDatagram: Bytes = 0
  smallestAfterGrowth: Bytes | undefined
  /** Of full packets: the most, and what the mean is made of. */
  framingBytes: Bytes = 0
  framingSum: Bytes = 0
  fullPackets = 0
  /** After the blackout's end, the first STORED; never before. */
  storedAfterBlackoutAt: Micros = never
  /** Sent into the blackout after its first probe timeout. */
  packetsIntoBlackout = 0
  /** Called when the datagram grows. */
  onGrowth: () => void = () => {}
  readonly #blackout: SimOptions["blackout"]
  #blackoutProbing = false
  /** Packets given up as lost, by their index. */
  readonly #givenUp: Array<number> = []
  readonly #digest: Digest
  readonly #record: (event: TraceEvent) => void
  readonly #series: TimeSeries
  readonly #node: string

  constructor(
    node: string,
    options: SimOptions,
    digest: Digest,
    series: TimeSeries,
    record: (event: TraceEvent) => void
  ) {
    this.#series = series
    this.#node = node
    this.window = new WindowWatch(options.delayStep)
    this.#blackout = options.blackout
    this.#digest = digest
    this.#record = record
  }

  emit(event: TraceEvent): void {
    this.#digest.addWord(this.#node)
    this.#digest.addEvent(event)
    this.#record(event)
    switch (event._tag) {
      case "PacketSent":
        return this.#handleSent(event)
      case "AnswerTaken":
        this.window.handleWindow(event.at, event.window, event.smoothed)
        this.#series.setWindow(event.at, event.window)
        return this.pacing.handleRate(event.at, event.window, event.smoothed, event.slowStart)
      case "WindowReduced":
        this.window.handleReduced(event.at, event.window)
        this.#series.setWindow(event.at, event.window)
        return this.episodes.handleReduced()
      case "FlightLost":
        this.declaredLost++
        return this.episodes.handleLost(this.truth.indexOf(event.number))
      case "FlightLate":
        this.late++
        return this.episodes.handleSettled(this.truth.indexOf(event.number))
      case "FlightGivenUp":
        return this.#handleGivenUp(event)
      case "EpisodeUndone":
        this.window.handleUndone()
        return this.episodes.handleUndone()
      case "DatagramSizeChanged":
        return this.#handleSize(event)
      case "ProbeTimeoutExpired":
        if (this.#isDark(event.at)) this.#blackoutProbing = true
        return
      case "Stored":
        return this.#handleStored(event)
    }
  }

  /** Given up as lost, and yet the network has brought it by now: known at the end of the run. */
  get givenUpThoughArrived(): number {
    return this.#givenUp.filter((index) => this.truth.of(index) === Truth.arrived).length
  }

  /** What befell one of its packets. */
  handlePassage(passage: Passage): void {
    this.truth.handlePassage(passage)
    switch (passage.fate) {
      case "queueDropped":
        this.queueDrops++
        return
      case "lost":
        this.pathDrops++
        return
      case "corrupted":
      case "tooLarge":
      case "cut":
      case "sieved":
      case "unreachable":
      case "overrun":
        this.otherDrops++
    }
  }

  #handleSent({ at, bytes, full, plain, probe, recordBytes }: Of<"PacketSent">): void {
    this.packetsSent++
    this.pacing.handleSent(at, bytes, recordBytes > 0 && !probe)
    if (recordBytes > 0) this.largestDatagram = Math.max(this.largestDatagram, bytes)
    if (plain && full && bytes > this.datagramSize - roomForNoPart) {
      this.framingBytes = Math.max(this.framingBytes, bytes - recordBytes)
      this.framingSum += bytes - recordBytes
      this.fullPackets++
    }
    if (this.#blackoutProbing && this.#isDark(at)) this.packetsIntoBlackout++
  }

  #handleGivenUp({ number }: Of<"FlightGivenUp">): void {
    this.trulyLost++
    const index = this.truth.indexOf(number)
    this.#givenUp.push(index)
    this.episodes.handleSettled(index)
  }

  #handleSize({ bytes }: Of<"DatagramSizeChanged">): void {
    const grew = bytes > this.datagramSize
    this.datagramSize = bytes
    this.pacing.setDatagramSize(bytes)
    if (grew && this.smallestAfterGrowth === undefined) this.onGrowth()
    if (grew || this.smallestAfterGrowth !== undefined) {
      this.smallestAfterGrowth = Math.min(this.smallestAfterGrowth ?? bytes, bytes)
    }
  }

  #handleStored({ at }: Of<"Stored">): void {
    const { storedAfterBlackoutAt } = this
    if (this.#blackout !== undefined && storedAfterBlackoutAt === never && at >= this.#blackoutEnd) {
      this.storedAfterBlackoutAt = at
    }
  }

  get #blackoutEnd(): Micros {
    return this.#blackout === undefined ? never : this.#blackout.at + this.#blackout.duration
  }

  #isDark(at: Micros): boolean {
    return this.#blackout !== undefined && at >= this.#blackout.at && at < this.#blackoutEnd
  }
}

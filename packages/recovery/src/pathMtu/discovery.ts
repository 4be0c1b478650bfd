import { type Bytes, largestDatagram, type Micros, never, type PacketNumber, smallestDatagram } from "@pure-link/wire"
import type { BlackHole } from "./blackHole.ts"
import type { PathMtuDiscovery } from "./PathMtuDiscovery.ts"

/**
 * DPLPMTUD (RFC 8899, spec §14.8) between the two sizes that the wire knows: what every path carries, and what nearly
 * every path carries. A probe that is lost costs nothing but itself; a black hole sends everything back to the small
 * size, and the search begins again. On suspicion of one, packets are small at once, and a probe decides as soon as one
 * of them arrives.
 */

/** A lost probe goes again after this time … */
const retryTime: Micros = 1_000_000
/** … so many times, … */
const retries = 3
/** … and from then on in these intervals. */
const raiseTime: Micros = 600_000_000
/** On suspicion, so many lost probes in a row convict the path: at 30 % random loss, one alone would too often. */
const convictingProbes = 3

export class Discovery implements PathMtuDiscovery {
  readonly name = "discovery"
  readonly probeSize = largestDatagram
  datagramSize: Bytes
  probeAt: Micros = never
  isSuspicious = false
  readonly #firstSize: Bytes
  /** The size of before the suspicion. */
  #suspectedSize: Bytes
  readonly #blackHole: BlackHole | undefined
  #isStarted = false
  /** The latest probe, which may be acknowledged however late; −1 before any. */
  #probe: PacketNumber = -1
  #isUnderWay = false
  #probeSentAt: Micros = 0
  #lostProbes = 0
  #vanishedFrom: PacketNumber = never

  /** Without a detector, it falls into black holes. */
  constructor(datagramSize: Bytes, blackHole?: BlackHole) {
    this.datagramSize = datagramSize
    this.#firstSize = datagramSize
    this.#suspectedSize = datagramSize
    this.#blackHole = blackHole
  }

  handleRoundTrip(now: Micros): void {
    if (this.#isStarted) return
    this.#isStarted = true
    if (this.datagramSize < this.probeSize) this.probeAt = now
  }

  handleProbeSent(now: Micros, number: PacketNumber): void {
    this.#probe = number
    this.#isUnderWay = true
    this.#probeSentAt = now
    this.probeAt = never
  }

  handleAcknowledged(now: Micros, number: PacketNumber, bytes: Bytes): void {
    this.#blackHole?.handleAcknowledged(number, bytes)
    if (number === this.#probe) this.#grow(bytes)
    else if (this.isSuspicious && bytes > this.datagramSize) this.#withdraw(now)
    else if (this.isSuspicious && !this.#isUnderWay) this.probeAt = now
  }

  handleLost(now: Micros, number: PacketNumber, bytes: Bytes, sentAt: Micros): void {
    if (number !== this.#probe) {
      if (this.#blackHole?.handleLost(now, number, bytes, sentAt) === true) this.#fall(now)
      return
    }
    this.#isUnderWay = false
    if (this.datagramSize === this.probeSize) return
    this.#lostProbes++
    if (!this.isSuspicious) this.probeAt = now + (this.#lostProbes <= retries ? retryTime : raiseTime)
    else if (this.#lostProbes < convictingProbes) this.probeAt = now
    else this.#fall(now)
  }

  handleTimeoutProbe(bytes: Bytes): void {
    this.#blackHole?.handleTimeoutProbe(bytes)
  }

  handleProbeTimeout(next: PacketNumber): void {
    if (this.datagramSize === smallestDatagram || this.#blackHole?.handleProbeTimeout(next) !== true) return
    this.#suspectedSize = this.datagramSize
    this.datagramSize = smallestDatagram
    this.isSuspicious = true
    this.#lostProbes = 0
    this.probeAt = never
  }

  handleForgotten(now: Micros): void {
    if (!this.#isUnderWay && !this.isSuspicious) return
    this.probeAt = Math.max(now, this.#probeSentAt + retryTime)
    this.#isUnderWay = false
    this.isSuspicious = false
  }

  startRun(): void {
    this.#probe = -1
    this.#blackHole?.restart()
  }

  restart(): void {
    this.startRun()
    this.datagramSize = this.#firstSize
    this.probeAt = never
    this.isSuspicious = false
    this.#isStarted = false
    this.#isUnderWay = false
    this.#lostProbes = 0
    this.#vanishedFrom = never
  }

  takeVanished(): PacketNumber {
    const from = this.#vanishedFrom
    this.#vanishedFrom = never
    return from
  }

  /** The path carries so much. */
  #grow(bytes: Bytes): void {
    this.datagramSize = bytes
    this.#isUnderWay = false
    this.isSuspicious = false
    this.#lostProbes = 0
    this.probeAt = never
  }

  /** Some large packet arrived, of whatever size: the path is as it was before the suspicion. */
  #withdraw(now: Micros): void {
    this.datagramSize = this.#suspectedSize
    this.isSuspicious = false
    this.#isUnderWay &&= this.datagramSize < this.probeSize
    this.probeAt = this.datagramSize < this.probeSize && !this.#isUnderWay ? now : never
  }

  /** It is certain: large flights vanish. */
  #fall(now: Micros): void {
    if (this.datagramSize > smallestDatagram || this.isSuspicious) this.#vanishedFrom = this.#blackHole!.vanishedFrom
    this.datagramSize = smallestDatagram
    this.isSuspicious = false
    this.#lostProbes = 0
    this.probeAt = now + retryTime
  }
}

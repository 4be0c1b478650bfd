import { type Bytes, largestDatagram, type Micros, never, type PacketNumber, smallestDatagram } from "@pure-link/wire"
import { BlackHole } from "./blackHole.ts"
import type { PathMtuDiscovery } from "./PathMtuDiscovery.ts"

/**
 * DPLPMTUD (RFC 8899, spec §14.8) between the two sizes that the wire knows: what every path carries, and what nearly
 * every path carries. A probe that is lost costs nothing but itself; a black hole sends everything back to the small
 * size, and the search begins again.
 */

/** A lost probe goes again after this time … */
const retryTime: Micros = 1_000_000
/** … so many times, … */
const retries = 3
/** … and from then on in these intervals. */
const raiseTime: Micros = 600_000_000

export class Discovery implements PathMtuDiscovery {
  readonly name: string = "discovery"
  readonly probeSize = largestDatagram
  datagramSize: Bytes
  probeAt: Micros = never
  readonly #blackHole: BlackHole | undefined
  #isStarted = false
  /** The latest probe, which may be acknowledged however late; −1 before any. */
  #probe: PacketNumber = -1
  #isUnderWay = false
  #probeSentAt: Micros = 0
  #lostProbes = 0
  #vanishedFrom: PacketNumber = never

  constructor(datagramSize: Bytes, detectsBlackHoles: boolean) {
    this.datagramSize = datagramSize
    this.#blackHole = detectsBlackHoles ? new BlackHole() : undefined
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
    if (number === this.#probe) {
      this.datagramSize = bytes
      this.#isUnderWay = false
      this.#lostProbes = 0
      this.probeAt = never
    }
    if (this.#blackHole?.handleAcknowledged(number, bytes) === true) this.#fall(now)
  }

  handleLost(now: Micros, number: PacketNumber, bytes: Bytes, sentAt: Micros): void {
    if (number === this.#probe) {
      this.#isUnderWay = false
      this.#lostProbes++
      this.probeAt = now + (this.#lostProbes <= retries ? retryTime : raiseTime)
    } else if (this.#blackHole?.handleLost(now, number, bytes, sentAt) === true) this.#fall(now)
  }

  handleTimeoutProbe(_number: PacketNumber, bytes: Bytes): void {
    this.#blackHole?.handleTimeoutProbe(bytes)
  }

  handleProbeTimeout(now: Micros, next: PacketNumber): void {
    if (this.#blackHole?.handleProbeTimeout(next) === true) this.#shrink(now)
  }

  handleForgotten(): void {
    if (!this.#isUnderWay) return
    this.#isUnderWay = false
    this.probeAt = this.#probeSentAt + retryTime
  }

  takeVanished(): PacketNumber {
    const from = this.#vanishedFrom
    this.#vanishedFrom = never
    return from
  }

  /** It is certain: large flights vanish. */
  #fall(now: Micros): void {
    this.#vanishedFrom = this.#blackHole!.vanishedFrom
    this.#shrink(now)
  }

  #shrink(now: Micros): void {
    if (this.datagramSize === smallestDatagram) return
    this.datagramSize = smallestDatagram
    this.#lostProbes = 0
    this.probeAt = now + retryTime
  }
}

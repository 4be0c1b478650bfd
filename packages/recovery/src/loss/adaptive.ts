import type { Micros, PacketNumber } from "@pure-link/wire"
import type { FlightRing } from "../flightRing.ts"
import type { NumberList } from "../numberList.ts"
import type { RoundTripTime } from "../roundTripTime.ts"
import type { LossDetector } from "./LossDetector.ts"
import { judgeByThresholds, packetThreshold, timeThreshold, timeThresholdOf } from "./thresholds.ts"

/**
 * The thresholds of RFC 9002 §6.1 as starting values that follow what was seen (spec §14.2): every late flight widens
 * them so that it would not have been declared lost, and many congestion events without one narrow them again.
 */

/** The time threshold grows at least by this part of the minimum RTT … */
const leastWidening = 1 / 4
/** … and by no more than this many smoothed RTTs altogether. */
const mostWidening = 2
/** Congestion events in a row without a late flight, after which what was widened is halved. */
const eventsInOrder = 16

export class AdaptiveLossDetector implements LossDetector {
  readonly name = "adaptive"
  /** Numbers beyond the threshold of RFC 9002. */
  #morePackets = 0
  /** Time beyond the threshold of RFC 9002. */
  #moreTime: Micros = 0
  #events = 0

  judge(flights: FlightRing, rtt: RoundTripTime, largest: PacketNumber, now: Micros, lost: NumberList): Micros {
    return judgeByThresholds(flights, packetThreshold + this.#morePackets, this.#time(rtt), largest, now, lost)
  }

  handleLate(depth: number, age: Micros, rtt: RoundTripTime): void {
    this.#events = 0
    this.#morePackets = Math.max(this.#morePackets, depth + 1 - packetThreshold)
    // Reckoned from smoothed alone: the latest sample may be that of this very flight.
    const lateness = age + 1 - timeThreshold * rtt.smoothed - this.#moreTime
    if (lateness <= 0) return
    const wider = this.#moreTime + Math.max(lateness, leastWidening * rtt.minimum)
    this.#moreTime = Math.min(wider, mostWidening * rtt.smoothed)
  }

  handleCongestion(): void {
    if (++this.#events < eventsInOrder) return
    this.#events = 0
    this.#morePackets = Math.floor(this.#morePackets / 2)
    this.#moreTime = Math.floor(this.#moreTime / 2)
  }

  #time(rtt: RoundTripTime): Micros {
    return timeThresholdOf(rtt) + Math.ceil(Math.min(this.#moreTime, mostWidening * rtt.smoothed))
  }
}

import { type Micros, never, type PacketNumber } from "@pure-link/wire"
import type { FlightRing } from "./flightRing.ts"
import type { NumberList } from "./numberList.ts"
import { granularity, type RoundTripTime } from "./roundTripTime.ts"

/**
 * When a flight is lost (RFC 9002 §6.1, spec §14.2): a packet sent after it was acknowledged, and it is either far
 * behind that one or was sent long ago. The rule only judges; who asks applies the verdict.
 */
export class LossRule {
  /** Lost when this many numbers, or more, below the largest acknowledged. */
  packetThreshold = 3
  /** Lost when sent this many round trips ago. */
  timeThreshold = 9 / 8

  /** How long a flight older than an acknowledged one may still be on its way. */
  delay(rtt: RoundTripTime): Micros {
    return Math.ceil(Math.max(this.timeThreshold * Math.max(rtt.smoothed, rtt.latest), granularity))
  }

  /**
   * Appends the lost flights to `lost`, oldest first, and returns when the next one will be lost by time; never if none
   * waits for that. Both thresholds rise with the number, so that the first flight that is not lost ends the search.
   */
  judge(
    flights: FlightRing,
    rtt: RoundTripTime,
    largestAcknowledged: PacketNumber,
    now: Micros,
    lost: NumberList
  ): Micros {
    const delay = this.delay(rtt)
    let number = flights.oldest()
    while (number < largestAcknowledged) {
      const lostAt = flights.sentAt(number) + delay
      if (number + this.packetThreshold > largestAcknowledged && lostAt > now) return lostAt
      lost.push(number)
      number = flights.nextInFlight(number + 1)
    }
    return never
  }
}

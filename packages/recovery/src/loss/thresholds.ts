import { type Micros, never, type PacketNumber } from "@pure-link/wire"
import type { FlightRing } from "../flightRing.ts"
import type { NumberList } from "../numberList.ts"
import { granularity, type RoundTripTime } from "../roundTripTime.ts"

/**
 * The two thresholds of RFC 9002 §6.1: with a later packet acknowledged, a flight is lost when it is so many numbers
 * behind, or was sent so long ago.
 */

/** RFC 9002 §6.1.1, in packet numbers. */
export const packetThreshold = 3
/** RFC 9002 §6.1.2, in round trips. */
export const timeThreshold = 9 / 8

/** How long a flight older than an acknowledged one may still be on its way, as RFC 9002 §6.1.2 has it. */
export const timeThresholdOf = (rtt: RoundTripTime): Micros =>
  Math.ceil(Math.max(timeThreshold * Math.max(rtt.smoothed, rtt.latest), granularity))

/**
 * Judges by thresholds of any size. Both rise with the number, so that the first flight that is not lost ends the
 * search; returns when it will be lost by time.
 */
export const judgeByThresholds = (
  flights: FlightRing,
  packets: number,
  time: Micros,
  largestAcknowledged: PacketNumber,
  now: Micros,
  lost: NumberList
): Micros => {
  let number = flights.oldest()
  while (number < largestAcknowledged) {
    const lostAt = flights.sentAt(number) + time
    if (number + packets > largestAcknowledged && lostAt > now) return lostAt
    lost.push(number)
    number = flights.nextInFlight(number + 1)
  }
  return never
}

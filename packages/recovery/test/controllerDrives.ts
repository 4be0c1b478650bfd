import { assert } from "@effect/vitest"
import type { CongestionController, ControllerOptions } from "../src/congestion/CongestionController.ts"
import { RoundTripTime } from "../src/roundTripTime.ts"

/** Ways to drive a congestion controller without a path. */

export const datagram = 1_200
export const second = 1_000_000
export const options: ControllerOptions = { datagramSize: datagram, largestWindow: 20_000 * datagram }

export const roundTrip = (micros: number): RoundTripTime => {
  const rtt = new RoundTripTime()
  for (let i = 0; i < 50; i++) rtt.update(micros, 0)
  return rtt
}

/** Brings a controller by slow start to a window of this many datagrams and reduces it there, at time `now`. */
export const reducedAt = (
  controller: CongestionController,
  datagrams: number,
  now: number,
  rtt: RoundTripTime
): void => {
  while (controller.window < datagrams * datagram) controller.handleAcknowledged(now, datagram, now - 1, rtt, true)
  assert.isDefined(controller.handleCongestion(now, now - 1, 1))
}

/** Full windows, one per round trip, acknowledged packet by packet; returns the window after each. */
export const roundTrips = (
  controller: CongestionController,
  from: number,
  count: number,
  rtt: RoundTripTime
): Array<number> => {
  const windows: Array<number> = []
  for (let round = 1; round <= count; round++) {
    const sentAt = from + (round - 1) * rtt.latest + 1
    const packets = Math.floor(controller.window / datagram)
    for (let i = 0; i < packets; i++) {
      controller.handleSent(sentAt, datagram, i * datagram)
    }
    const now = from + round * rtt.latest
    for (let i = 0; i < packets; i++) controller.handleAcknowledged(now, datagram, sentAt, rtt, true)
    windows.push(controller.window / datagram)
  }
  return windows
}

import type { Micros, PacketNumber } from "@pure-link/wire"
import type { FlightRing } from "../flightRing.ts"
import type { NumberList } from "../numberList.ts"
import type { RoundTripTime } from "../roundTripTime.ts"
import type { LossDetector } from "./LossDetector.ts"
import { judgeByThresholds, packetThreshold, timeThresholdOf } from "./thresholds.ts"

/**
 * RFC 9002 §6.1 with its thresholds fixed: what reordering does to it is what the adaptive detector is measured
 * against.
 */
export class FixedLossDetector implements LossDetector {
  readonly name = "fixed"

  judge(flights: FlightRing, rtt: RoundTripTime, largest: PacketNumber, now: Micros, lost: NumberList): Micros {
    return judgeByThresholds(flights, packetThreshold, timeThresholdOf(rtt), largest, now, lost)
  }

  handleLate(): void {}

  handleCongestion(): void {}
}

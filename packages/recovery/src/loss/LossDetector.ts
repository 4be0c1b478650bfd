import type { Micros, PacketNumber } from "@pure-link/wire"
import type { FlightRing } from "../flightRing.ts"
import type { NumberList } from "../numberList.ts"
import type { RoundTripTime } from "../roundTripTime.ts"

/**
 * When a flight is declared lost (spec §14.2). A detector only judges; recovery applies the verdict, and tells it of
 * verdicts that proved wrong.
 */
export interface LossDetector {
  readonly name: string
  /**
   * Appends the lost flights to `lost`, oldest first, and returns when the next one will be lost by time; never if none
   * waits for that. Nothing sent after `largestAcknowledged` is lost.
   */
  judge(
    flights: FlightRing,
    rtt: RoundTripTime,
    largestAcknowledged: PacketNumber,
    now: Micros,
    lost: NumberList
  ): Micros
  /**
   * A flight declared lost was acknowledged after all, `age` after it was sent and `depth` numbers below the largest
   * that answers before had acknowledged.
   */
  handleLate(depth: number, age: Micros, rtt: RoundTripTime): void
  /** Losses made the window shrink: one more congestion event. */
  handleCongestion(): void
}

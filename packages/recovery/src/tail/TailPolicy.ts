import type { Micros } from "@pure-link/wire"
import type { RoundTripTime } from "../roundTripTime.ts"

/**
 * Whether records that are in flight go once more before anything says that they are lost, while the application leaves
 * the window unused (spec §14.9). Copies count in flight, in the window and in pacing like any packet.
 */
export interface TailPolicy {
  readonly name: string
  /** When a flight that was sent at `sentAt`, and is not answered by then, goes once more; never if it does not. */
  copyAt(sentAt: Micros, rtt: RoundTripTime): Micros
}

import type { RoundTripTime } from "../roundTripTime.ts"

/**
 * How much of a reduction losses are worth (brief §11): loss without a queue is not congestion, if one can tell. The
 * controller takes the part that it is told.
 */
export interface LossJudge {
  readonly name: string
  /** The part of the full reduction to make, above 0 and up to 1, for losses found with the path as `rtt` has it. */
  partOf(rtt: RoundTripTime): number
}

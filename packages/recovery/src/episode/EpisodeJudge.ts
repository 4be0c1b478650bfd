import type { CongestionState } from "../congestion/CongestionController.ts"

/**
 * Judges congestion events that overlap, together (spec §14.3). An episode begins with a flight declared lost while
 * none is unsettled, and ends when the last of its flights has proved late or been given up. A judge hears of flights
 * and of reductions, and says at the end what the congestion state should go back to.
 */
export interface EpisodeJudge {
  readonly name: string
  /** Flights of the present episode that are neither late nor given up; 0 between episodes. */
  readonly unsettled: number
  /** A flight was declared lost. */
  handleLost(): void
  /** The window was reduced for it; `before` is the congestion state from just before. */
  handleReduction(before: CongestionState): void
  /** Nothing of this episode may be undone any more: persistent congestion, or an ECN mark. */
  handleProof(): void
  /** A flight of the episode arrived after all. What to go back to, if that ends the episode and frees it of all guilt. */
  handleLate(): CongestionState | undefined
  /** A flight of the episode was lost indeed. */
  handleGivenUp(): void
  /** No flight is counted on any more: the episode, if there is one, ends without a verdict. */
  handleForgotten(): void
}

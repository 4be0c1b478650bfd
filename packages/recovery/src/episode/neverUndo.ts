import type { EpisodeJudge } from "./EpisodeJudge.ts"

/** Undoes nothing, as RFC 9002 has it: what undoing is measured against. */
export class NeverUndo implements EpisodeJudge {
  readonly name = "never"
  unsettled = 0

  handleLost(): void {
    this.unsettled++
  }

  handleReduction(): void {}

  handleProof(): void {}

  handleLate(): undefined {
    this.unsettled--
  }

  handleForgotten(): void {
    this.unsettled = 0
  }

  handleGivenUp(): void {
    this.unsettled--
  }
}

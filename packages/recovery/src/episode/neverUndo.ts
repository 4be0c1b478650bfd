import type { EpisodeJudge } from "./EpisodeJudge.ts"

/** Counts episodes and undoes none, as RFC 9002 has it: what undoing is measured against. */
export class NeverUndo implements EpisodeJudge {
  readonly name = "never"
  episodes = 0
  unsettled = 0

  handleLost(): void {
    if (this.unsettled++ === 0) this.episodes++
  }

  handleReduction(): void {}

  handleProof(): void {}

  handleLate(): undefined {
    this.unsettled--
  }

  handleGivenUp(): void {
    this.unsettled--
  }
}

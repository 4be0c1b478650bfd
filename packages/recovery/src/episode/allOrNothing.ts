import { ok as assert } from "node:assert/strict"
import type { CongestionState } from "../congestion/CongestionController.ts"
import type { EpisodeJudge } from "./EpisodeJudge.ts"

/**
 * All or nothing (spec §14.3): the state from before the first reduction comes back if every flight of the episode
 * proved late. One true loss, and nothing does: undoing because few were lost, or restoring a state saved before an
 * earlier true loss, takes bandwidth that belongs to others.
 */
export class AllOrNothing implements EpisodeJudge {
  readonly name = "all or nothing"
  unsettled = 0
  /** From before the first reduction of the episode, while it may still be undone. */
  #before: CongestionState | undefined
  #isProven = false

  handleLost(): void {
    if (this.unsettled === 0) {
      this.#before = undefined
      this.#isProven = false
    }
    this.unsettled++
  }

  handleReduction(before: CongestionState): void {
    if (!this.#isProven) this.#before ??= before
  }

  handleProof(): void {
    this.#before = undefined
    this.#isProven = true
  }

  handleLate(): CongestionState | undefined {
    assert(this.unsettled > 0)
    this.unsettled--
    return this.unsettled === 0 ? this.#before : undefined
  }

  handleForgotten(): void {
    this.unsettled = 0
  }

  handleGivenUp(): void {
    assert(this.unsettled > 0)
    this.unsettled--
    this.handleProof()
  }
}

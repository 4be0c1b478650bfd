import { type FlightTruth, Truth } from "./flightTruth.ts"

/**
 * Episodes as a sender's events tell them (spec §14.3), compared with what the network really did. An episode begins
 * with a flight declared lost while none is unsettled; whether it should have been undone is known at the end of the
 * run, when every packet has arrived or has not.
 */

interface Episode {
  readonly flights: Array<number>
  /** Those that are neither late nor given up. What vanished for its size is no loss, and is not waited for. */
  readonly unsettled: Set<number>
  /** Something in it vanished for its size. */
  hasVanished: boolean
  /** One of the others was settled. */
  hasSettled: boolean
  /** The window was reduced: there is something to undo. */
  reduced: boolean
  undone: boolean
  /** Its run ended before its flights were settled: it cannot be judged. */
  abandoned: boolean
}

export interface EpisodeVerdicts {
  readonly episodes: number
  readonly undone: number
  /** Undone although the network dropped one of its packets. */
  readonly undoneWithTrueLoss: number
  /** Its reduction stands although every one of its packets arrived. */
  readonly standingWithoutLoss: number
}

export class EpisodeWatch {
  readonly #truth: FlightTruth
  readonly #episodes: Array<Episode> = []
  #present: Episode | undefined
  #base = 0

  constructor(truth: FlightTruth) {
    this.#truth = truth
  }

  handleLost(index: number): void {
    if (this.#truth.base !== this.#base) {
      this.#base = this.#truth.base
      if (this.#present !== undefined && this.#present.unsettled.size > 0) this.#present.abandoned = true
      this.#present = undefined
    }
    const vanished = this.#truth.of(index) === Truth.vanished
    if (!this.#isOpen(vanished)) this.#begin()
    const episode = this.#present!
    episode.flights.push(index)
    if (vanished) episode.hasVanished = true
    else episode.unsettled.add(index)
  }

  handleReduced(): void {
    if (this.#present !== undefined) this.#present.reduced = true
  }

  /** A flight proved late, or was given up. */
  handleSettled(index: number): void {
    if (this.#present?.unsettled.delete(index) === true) this.#present.hasSettled = true
  }

  handleUndone(): void {
    if (this.#present !== undefined) this.#present.undone = true
  }

  /** Once the network is still. */
  judge(): EpisodeVerdicts {
    const verdicts = { episodes: this.#episodes.length, undone: 0, undoneWithTrueLoss: 0, standingWithoutLoss: 0 }
    for (const { abandoned, flights, reduced, undone, unsettled } of this.#episodes) {
      const dropped = flights.some((index) => this.#truth.of(index) === Truth.dropped)
      const arrived = flights.every((index) => this.#truth.of(index) === Truth.arrived)
      if (undone) verdicts.undone++
      if (undone && dropped) verdicts.undoneWithTrueLoss++
      if (reduced && !undone && arrived && unsettled.size === 0 && !abandoned) verdicts.standingWithoutLoss++
    }
    return verdicts
  }

  /**
   * Whether a flight joins the present episode. Nothing tells when those that vanished are settled: they belong
   * together, and with the others that follow until all of these are settled.
   */
  #isOpen(vanished: boolean): boolean {
    const episode = this.#present
    if (episode === undefined || episode.undone) return false
    return episode.unsettled.size > 0 || (episode.hasVanished && (vanished || !episode.hasSettled))
  }

  #begin(): void {
    this.#present = {
      flights: [],
      unsettled: new Set(),
      hasVanished: false,
      hasSettled: false,
      reduced: false,
      undone: false,
      abandoned: false
    }
    this.#episodes.push(this.#present)
  }
}

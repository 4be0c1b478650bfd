import type { Bytes } from "@pure-link/wire"
import { type FlightTruth, Truth } from "./flightTruth.ts"

/**
 * Episodes as a sender's events tell them (spec §14.3), compared with what the network really did. An episode begins
 * with a flight declared lost while none is unsettled; whether it should have been undone is known at the end of the
 * run, when every packet has arrived or has not.
 */

interface Episode {
  readonly flights: Array<number>
  /** Those that are neither late nor given up, with their bytes. */
  readonly unsettled: Map<number, Bytes>
  undone: boolean
  /** Its run ended before its flights were settled: it cannot be judged. */
  abandoned: boolean
}

export interface EpisodeVerdicts {
  readonly episodes: number
  readonly undone: number
  /** Undone although the network dropped one of its packets. */
  readonly undoneWithTrueLoss: number
  /** Not undone although every one of its packets arrived. */
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

  handleLost(index: number, bytes: Bytes): void {
    if (this.#truth.base !== this.#base) {
      this.#base = this.#truth.base
      if (this.#present !== undefined && this.#present.unsettled.size > 0) this.#present.abandoned = true
      this.#present = undefined
    }
    if (this.#present === undefined || this.#present.unsettled.size === 0) this.#present = this.#begin()
    this.#present.flights.push(index)
    this.#present.unsettled.set(index, bytes)
  }

  /** A flight proved late, or was given up. */
  handleSettled(index: number): void {
    this.#present?.unsettled.delete(index)
  }

  /** A black hole was found: larger flights vanished in it, and are no part of the episode any more. */
  handleBlackHole(datagramSize: Bytes): void {
    for (const [index, bytes] of this.#present?.unsettled ?? []) {
      if (bytes > datagramSize) this.#present?.unsettled.delete(index)
    }
  }

  handleUndone(): void {
    if (this.#present !== undefined) this.#present.undone = true
  }

  /** Once the network is still. */
  judge(): EpisodeVerdicts {
    const verdicts = { episodes: this.#episodes.length, undone: 0, undoneWithTrueLoss: 0, standingWithoutLoss: 0 }
    for (const { abandoned, flights, undone, unsettled } of this.#episodes) {
      const dropped = flights.some((index) => this.#truth.of(index) === Truth.dropped)
      const arrived = flights.every((index) => this.#truth.of(index) === Truth.arrived)
      if (undone) verdicts.undone++
      if (undone && dropped) verdicts.undoneWithTrueLoss++
      if (!undone && arrived && unsettled.size === 0 && !abandoned) verdicts.standingWithoutLoss++
    }
    return verdicts
  }

  #begin(): Episode {
    const episode = { flights: [], unsettled: new Map<number, Bytes>(), undone: false, abandoned: false }
    this.#episodes.push(episode)
    return episode
  }
}

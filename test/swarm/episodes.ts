import { type EpisodeJudge, Policies, type PolicyMakers } from "@pure-link/recovery"
import type { Trace, TraceEvent } from "@pure-link/trace"
import type { PacketNumber } from "@pure-link/wire"
import { Violation } from "./violation.ts"

/**
 * Holds the judgements of congestion episodes of one output against the network's truth: no episode is undone of which
 * the network dropped a flight (spec §14.3). Losses of the judge come as calls, those of the machine as trace events; a
 * flight that vanished in a black hole is in the calls only, and says nothing of congestion.
 */
export class Episodes implements Trace {
  readonly packets = true
  readonly policies: PolicyMakers
  undone = 0
  readonly #flights = new Set<PacketNumber>()
  #late = 0
  readonly #arrived: (number: PacketNumber) => boolean

  /** `arrived` tells whether a packet of the present run reached a receiver; `make` makes the judges. */
  constructor(arrived: (number: PacketNumber) => boolean, make: () => EpisodeJudge) {
    this.#arrived = arrived
    this.policies = { ...Policies.defaults, episodeJudgement: { make: () => this.#watch(make()) } }
  }

  emit(event: TraceEvent): void {
    if (event._tag === "FlightLost") this.#flights.add(event.number)
    else if (event._tag === "FlightLate") this.#late -= 1
    else if (event._tag === "EpisodeUndone") this.#check()
  }

  #check(): void {
    const flights = [...this.#flights]
    this.#flights.clear()
    // The judge heard of a late flight that the machine did not report: one that vanished in a black hole.
    if (this.#late !== 0) return
    this.undone += 1
    for (const number of flights) {
      if (!this.#arrived(number))
        throw new Violation(`an episode was undone although packet ${number} of it was truly lost`)
    }
  }

  #watch(judge: EpisodeJudge): EpisodeJudge {
    const begin = () => {
      this.#flights.clear()
      this.#late = 0
    }
    begin()
    return {
      name: judge.name,
      get unsettled() {
        return judge.unsettled
      },
      handleLost: () => {
        if (judge.unsettled === 0) begin()
        judge.handleLost()
      },
      handleReduction: (before) => judge.handleReduction(before),
      handleProof: () => judge.handleProof(),
      handleLate: () => {
        this.#late += 1
        return judge.handleLate()
      },
      handleGivenUp: () => judge.handleGivenUp(),
      handleForgotten: () => {
        begin()
        judge.handleForgotten()
      }
    }
  }
}

/** The fault `undoTrueLoss`: a judge that forgives an episode as soon as one flight of it proves late. */
export class Forgiving implements EpisodeJudge {
  readonly name = "forgiving"
  unsettled = 0
  #before: ReturnType<EpisodeJudge["handleLate"]>

  handleLost(): void {
    if (this.unsettled === 0) this.#before = undefined
    this.unsettled += 1
  }

  handleReduction(before: NonNullable<ReturnType<EpisodeJudge["handleLate"]>>): void {
    this.#before ??= before
  }

  handleProof(): void {
    this.#before = undefined
  }

  handleLate() {
    this.unsettled -= 1
    const before = this.#before
    this.#before = undefined
    return before
  }

  handleForgotten(): void {
    this.unsettled = 0
  }

  handleGivenUp(): void {
    this.unsettled -= 1
  }
}

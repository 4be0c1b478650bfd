import type { Bytes, Micros, PacketNumber } from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import type { CongestionController, CongestionState, ControllerOptions } from "./congestion/CongestionController.ts"
import type { EpisodeJudge } from "./episode/EpisodeJudge.ts"
import type { RecoveryCounters } from "./outcome.ts"
import { PersistentCongestion } from "./persistentCongestion.ts"
import type { PolicyMakers } from "./policies.ts"
import type { RecoveryTrace } from "./recoveryTrace.ts"
import type { LossJudge } from "./response/LossJudge.ts"
import type { RoundTripTime } from "./roundTripTime.ts"
import { WindowUse } from "./windowUse.ts"

/**
 * What the fate of flights does to the window (spec §14.3, §14.4): growth, reductions, persistent congestion, and what
 * is undone because it proved wrong. Recovery says which flights; this is the one that speaks to the controller.
 */

export interface WindowKeeperOptions extends ControllerOptions {
  readonly policies: PolicyMakers
  readonly rtt: RoundTripTime
  readonly counters: RecoveryCounters
  readonly told: RecoveryTrace
}

export class WindowKeeper {
  readonly controller: CongestionController
  readonly #policies: PolicyMakers
  readonly #rtt: RoundTripTime
  readonly #counters: RecoveryCounters
  readonly #told: RecoveryTrace
  #lossJudge: LossJudge
  readonly #episode: EpisodeJudge
  readonly #persistentCongestion = new PersistentCongestion()
  readonly #use = new WindowUse()
  /** Want of data or credit stopped the sender, with room left in the window. */
  #limited = false
  /** What the congestion state is to go back to, as the answer under way has it. */
  #undoTo: CongestionState | undefined
  /** From before the first reduction since large flights are suspected to vanish by their size, while that is not decided. */
  #beforeSuspicion: CongestionState | undefined
  /** A reduction was just made, or the peer begins anew, and no packet has been sent since. */
  #entersRecovery = false

  constructor({ policies, rtt, counters, told, datagramSize, largestWindow }: WindowKeeperOptions) {
    this.#policies = policies
    this.#rtt = rtt
    this.#counters = counters
    this.#told = told
    this.controller = policies.congestionControl.make({ datagramSize, largestWindow })
    this.#lossJudge = policies.lossResponse.make()
    this.#episode = policies.episodeJudgement.make()
  }

  get window(): Bytes {
    return this.controller.window
  }

  /** One packet may go beyond the window now (RFC 9002 §7.3.2). */
  get allowsOneMore(): boolean {
    return this.#entersRecovery
  }

  /** Lets one packet go beyond the window. */
  allowOneMore(): void {
    this.#entersRecovery = true
  }

  /** Whether want of data or credit stopped the sender although the window had room. */
  setLimited(limited: boolean): void {
    this.#limited = limited
  }

  handleSent(now: Micros, bytes: Bytes, inFlightBefore: Bytes): void {
    this.controller.handleSent(now, bytes, inFlightBefore)
    this.#use.handleSent(inFlightBefore + bytes)
    this.#entersRecovery = false
  }

  /** An answer is about to be judged. */
  handleAnswer(): void {
    this.#entersRecovery = false
  }

  handleFirstSample(now: Micros): void {
    this.#persistentCongestion.handleFirstSample(now)
  }

  /** A flight in flight was acknowledged: the window may grow. */
  handleAcknowledged(now: Micros, bytes: Bytes, sentAt: Micros): void {
    this.#lossJudge.handleAcknowledged(now, bytes, sentAt, this.#rtt)
    const windowLimited = !this.#limited && this.#use.isHalf(this.controller.window)
    this.controller.handleAcknowledged(now, bytes, sentAt, this.#rtt, windowLimited)
  }

  /** The answer has taken its effect: `largest` is acknowledged, `next` the number that the next packet will take. */
  handleAnswered(largest: PacketNumber, next: PacketNumber, inFlight: Bytes): void {
    this.#use.handleAcknowledged(largest, next, inFlight)
  }

  /** A flight is declared lost: `reduce` follows for all that an answer or a timeout brought. */
  handleLost(number: PacketNumber, sentAt: Micros): void {
    this.#persistentCongestion.handleLost(number, sentAt)
    if (this.#episode.unsettled === 0) this.#counters.episodes++
    this.#episode.handleLost()
  }

  /** That a probe of the path is lost says nothing of congestion (RFC 8899 §3). */
  handleProbeLost(number: PacketNumber): void {
    this.#persistentCongestion.handleProbeLost(number)
  }

  /** A number declared lost had arrived after all; `next`, sent at `nextSentAt`, is the next one that is no probe. */
  handleLateNumber(number: PacketNumber, next: PacketNumber, nextSentAt: Micros): void {
    this.#persistentCongestion.handleLate(number, next, nextSentAt)
  }

  /** A flight of the episode was no loss: it came late, or met a black hole. */
  handleInnocent(): void {
    this.#undoTo = this.#episode.handleLate()
  }

  handleGivenUp(): void {
    this.#episode.handleGivenUp()
  }

  /** The newest of the flights just declared lost was sent at `sentAt`. True: the window was reduced for them. */
  reduce(now: Micros, sentAt: Micros, isSuspicious: boolean, inFlight: Bytes): boolean {
    const { controller } = this
    const part = this.#lossJudge.partOf(now, sentAt, controller.window, this.#rtt)
    assert(part > 0 && part <= 1, "a reduction is made in part, or whole")
    const before = controller.handleCongestion(now, sentAt, part)
    if (before !== undefined) {
      this.#episode.handleReduction(before)
      if (isSuspicious) this.#beforeSuspicion ??= before
      this.#counters.reductions++
      this.#entersRecovery = true
      this.#told.reduced(now, "loss", controller.window, inFlight)
    }
    if (this.#persistentCongestion.isEstablished(this.#rtt)) this.#collapse(now, inFlight)
    return before !== undefined
  }

  /** Goes back if an episode ended and every loss of it had proved late. */
  undo(now: Micros): void {
    if (this.#undoTo === undefined) return
    this.controller.undo(now, this.#undoTo)
    this.#undoTo = undefined
    this.#counters.undone++
    this.#told.undone(now, this.controller.window)
  }

  /** Large flights fell into a black hole (spec §14.8): what was reduced for them since the suspicion is undone. */
  handleBlackHole(now: Micros): void {
    this.#undoTo = this.#beforeSuspicion ?? this.#undoTo
    this.#beforeSuspicion = undefined
    this.undo(now)
    this.#persistentCongestion.restart(now)
    this.#counters.blackHoles++
  }

  /** Large flights are not suspected to vanish by their size. */
  endSuspicion(): void {
    this.#beforeSuspicion = undefined
  }

  /** No flight is counted on any more. */
  handleForgotten(): void {
    this.#episode.handleForgotten()
    this.#beforeSuspicion = undefined
  }

  /** Numbers begin again at 0; the window stays. */
  startRun(now: Micros): void {
    this.#use.restart()
    if (this.#rtt.hasSample) this.#persistentCongestion.restart(now)
  }

  /** Another path: the window starts again, and nothing that was reduced on the former one comes back. */
  restart(): void {
    this.controller.restart()
    this.#lossJudge = this.#policies.lossResponse.make()
    this.#persistentCongestion.forget()
    this.#use.restart()
    this.#undoTo = undefined
    this.#entersRecovery = false
    this.handleForgotten()
  }

  #collapse(now: Micros, inFlight: Bytes): void {
    this.#persistentCongestion.restart(now)
    this.#entersRecovery = false
    this.#episode.handleProof()
    this.controller.handlePersistentCongestion(now)
    this.#rtt.restartMinimum()
    this.#counters.persistentCongestions++
    this.#told.reduced(now, "persistent congestion", this.controller.window, inFlight)
  }
}

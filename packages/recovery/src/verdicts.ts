import { type Micros, never, type PacketNumber } from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import type { FlightAges } from "./flightAges.ts"
import type { FlightRing } from "./flightRing.ts"
import type { RecoveryCounters, RecoveryOutcome } from "./outcome.ts"
import type { PathMtuDiscovery } from "./pathMtu/PathMtuDiscovery.ts"
import type { RecoveryTrace } from "./recoveryTrace.ts"
import type { WindowKeeper } from "./windowKeeper.ts"

/**
 * Carries out the verdicts on flights that are not acknowledged (spec §14.2, §14.3, §14.8): declares them lost, gives them
 * up, and takes back what a black hole swallowed. The rules beside it judge; window, counters and the outcome hear of it
 * here.
 */

export interface VerdictsOptions {
  readonly flights: FlightRing
  readonly ages: FlightAges
  readonly window: WindowKeeper
  readonly pathMtu: PathMtuDiscovery
  readonly outcome: RecoveryOutcome
  readonly counters: RecoveryCounters
  readonly told: RecoveryTrace
}

export class Verdicts {
  /** The latest probe of the path, in flight or not; −1 before any. */
  pathProbe: PacketNumber = -1
  /** Flights below this number were sent on a former path: they say nothing of this one (RFC 9000 §9.4). */
  pathFrom: PacketNumber = 0
  readonly #flights: FlightRing
  readonly #ages: FlightAges
  readonly #window: WindowKeeper
  readonly #pathMtu: PathMtuDiscovery
  readonly #outcome: RecoveryOutcome
  readonly #counters: RecoveryCounters
  readonly #told: RecoveryTrace

  constructor({ flights, ages, window, pathMtu, outcome, counters, told }: VerdictsOptions) {
    this.#flights = flights
    this.#ages = ages
    this.#window = window
    this.#pathMtu = pathMtu
    this.#outcome = outcome
    this.#counters = counters
    this.#told = told
  }

  /** Declares lost what is lost by now; returns when the next flight will be lost by time. */
  detectLosses(now: Micros, largestAcknowledged: PacketNumber): Micros {
    const { lost } = this.#outcome
    const from = lost.length
    const lossAt = this.#ages.judge(this.#flights, largestAcknowledged, now, lost)
    assert(lossAt > now, "what is lost by now is declared lost now")
    this.#declareLost(now, from)
    return lossAt
  }

  /** The ring has no slot for a probe: its oldest flight is lost, as far as anyone can still know. */
  declareOldestLost(now: Micros): void {
    this.#outcome.lost.push(this.#flights.oldest())
    this.#declareLost(now, 0)
  }

  /**
   * Flights that were declared lost long ago are given up, on the word of a packet, sent at `newestSentAt`, that was sent
   * after the declaration; a silence proves nothing. Both conditions rise with the number.
   */
  giveUpOverdue(now: Micros, newestSentAt: Micros): void {
    const flights = this.#flights
    let number = flights.oldestDeclaredLost()
    while (number < flights.next) {
      const declaredAt = flights.declaredAt(number)
      if (newestSentAt <= declaredAt) return
      if (this.#ages.givenUpAt(declaredAt, flights.sentAt(number)) > now) return
      this.giveUp(now, number)
      number = flights.nextDeclaredLost(number + 1)
    }
  }

  /** Gives up whatever is declared lost below a number. */
  giveUpBelow(now: Micros, end: PacketNumber): void {
    const flights = this.#flights
    let lost = flights.oldestDeclaredLost()
    for (; lost < end; lost = flights.nextDeclaredLost(lost + 1)) this.giveUp(now, lost)
  }

  giveUp(now: Micros, number: PacketNumber): void {
    this.#flights.giveUp(number)
    if (number === this.pathProbe) return
    this.#window.handleGivenUp()
    this.#counters.givenUp++
    this.#told.givenUp(now, number)
  }

  /** Large flights fell into a black hole (spec §14.8): they are lost, but not by congestion. */
  discountVanished(now: Micros): void {
    const flights = this.#flights
    const from = this.#pathMtu.takeVanished()
    if (from === never) return
    for (let number = flights.nextOpen(Math.max(from, this.pathFrom), flights.next); number < flights.next;) {
      if (flights.bytesOf(number) > this.#pathMtu.datagramSize) this.#discount(number)
      number = flights.nextOpen(number + 1, flights.next)
    }
    this.#window.handleBlackHole(now)
  }

  #discount(number: PacketNumber): void {
    const flights = this.#flights
    if (flights.isInFlight(number)) this.#outcome.lost.push(number)
    else if (flights.isDeclaredLost(number) && number !== this.pathProbe) this.#window.handleInnocent()
    flights.settle(number)
  }

  /** Applies a verdict: the flights in `outcome.lost`, from an index on, leave, and the controller hears of it once. */
  #declareLost(now: Micros, from: number): void {
    const { values, length } = this.#outcome.lost
    for (let i = from; i < length; i++) this.#declareFlightLost(now, values[i]!)
    this.discountVanished(now)
    for (let i = length - 1; i >= from; i--) {
      const number = values[i]!
      if (number === this.pathProbe || !this.#flights.isDeclaredLost(number)) continue
      const { isSuspicious } = this.#pathMtu
      const isReduced = this.#window.reduce(now, this.#flights.sentAt(number), isSuspicious, this.#flights.bytes)
      if (isReduced) this.#ages.handleCongestion()
      return
    }
  }

  #declareFlightLost(now: Micros, number: PacketNumber): void {
    const sentAt = this.#flights.sentAt(number)
    const bytes = this.#flights.bytesOf(number)
    const isOfThisPath = number >= this.pathFrom
    if (isOfThisPath) this.#pathMtu.handleLost(now, number, bytes, sentAt)
    this.#flights.declareLost(number, now)
    if (number === this.pathProbe) return this.#window.handleProbeLost(number)
    this.#counters.lost++
    this.#told.lost(now, number, bytes, sentAt)
    if (isOfThisPath) return this.#window.handleLost(number, sentAt)
    this.#flights.giveUp(number)
    this.#counters.givenUp++
    this.#told.givenUp(now, number)
  }
}

import type { Micros, PacketNumber } from "@pure-link/wire"
import type { FlightRing } from "./flightRing.ts"
import { LateWait } from "./lateWait.ts"
import type { LossDetector } from "./loss/LossDetector.ts"
import type { NumberList } from "./numberList.ts"
import type { PolicyMakers } from "./policies.ts"
import type { RoundTripTime } from "./roundTripTime.ts"

/** No path takes longer (spec §14.1). */
const longestRoundTrip: Micros = 10_000_000
/** After such a silence the peer, or what is between, may have kept what was sent (spec §9.8, §14.1) … */
const silentTime: Micros = 2_000_000
const silentProbes = 4
/** … but for what was sent so lately. */
const freshTime: Micros = 2_800_000

/**
 * What the age of acknowledged flights teaches about the others: when one is lost, and when a lost one is given up (spec
 * §14.2, §14.3). A flight of a former path, or from before the process slept, teaches nothing.
 */
export class FlightAges {
  readonly #policies: PolicyMakers
  readonly #rtt: RoundTripTime
  #detector: LossDetector
  #lateWait = new LateWait()
  #from: PacketNumber = 0
  /** A silence ended, and no round trip was measured since: a path that became that slow must be learnt in the end. */
  #owesSample = false

  constructor(policies: PolicyMakers, rtt: RoundTripTime) {
    this.#policies = policies
    this.#rtt = rtt
    this.#detector = policies.lossDetection.make()
  }

  /** Whether the age of this flight says anything. */
  teaches(number: PacketNumber): boolean {
    return number >= this.#from
  }

  /**
   * An answer settles flights, the oldest of which has this number and was sent at `sentAt`. One that took too long was
   * not on its way all the time: the peer slept, or it was kept and sent by somebody else. Then nothing below `next`
   * teaches anything.
   */
  handleSettled(now: Micros, oldest: PacketNumber, sentAt: Micros, next: PacketNumber): void {
    if (!this.teaches(oldest)) return
    if (now - sentAt > longestRoundTrip) this.learnFrom(next)
    else this.#lateWait.handleSettled(now, now - sentAt)
  }

  /** Flights declared lost were acknowledged after all. */
  handleLate(now: Micros, numbers: NumberList, largestAcknowledged: PacketNumber, flights: FlightRing): void {
    for (let i = 0; i < numbers.length; i++) {
      const number = numbers.values[i]!
      if (!this.teaches(number)) continue
      this.#detector.handleLate(largestAcknowledged - number, now - flights.sentAt(number), this.#rtt)
    }
  }

  /** Losses made the window shrink. */
  handleCongestion(): void {
    this.#detector.handleCongestion()
  }

  /** Appends the lost flights to `lost`, and returns when the next one will be lost by time. */
  judge(flights: FlightRing, largestAcknowledged: PacketNumber, now: Micros, lost: NumberList): Micros {
    return this.#detector.judge(flights, this.#rtt, largestAcknowledged, now, lost)
  }

  /** The time from which on a flight that was declared lost may be given up. */
  givenUpAt(declaredAt: Micros, sentAt: Micros): Micros {
    return this.#lateWait.endsAt(declaredAt, sentAt, this.#rtt)
  }

  /** An answer ends a silence that probes went into. */
  endSilence(now: Micros, silence: Micros, probes: number, flights: FlightRing): void {
    if (this.#owesSample || silence < silentTime || probes < silentProbes) return
    this.#owesSample = true
    const first = Math.max(this.#from, flights.next - flights.size)
    let from = flights.next
    while (from > first && now - flights.sentAt(from - 1) <= freshTime) from--
    this.learnFrom(from)
  }

  /** Whether the round trip of this flight is a sample; then none is owed any more. */
  measures(number: PacketNumber): boolean {
    if (this.teaches(number)) this.#owesSample = false
    return this.teaches(number)
  }

  /** Flights below this number teach nothing any more. */
  learnFrom(number: PacketNumber): void {
    this.#from = number
  }

  /** Another path: what was learnt does not hold for flights from this number on. */
  restart(number: PacketNumber): void {
    this.learnFrom(number)
    this.#detector = this.#policies.lossDetection.make()
    this.#lateWait = new LateWait()
  }
}

import { silentTrace, type Trace } from "@pure-link/trace"
import { type Bytes, type Micros, never, type PacketNumber } from "@pure-link/wire"
import type { CongestionController } from "./congestion/CongestionController.ts"
import { FlightRing } from "./flightRing.ts"
import { LossRule } from "./lossRule.ts"
import { NumberList } from "./numberList.ts"
import { Pacer } from "./pacer.ts"
import { PersistentCongestion } from "./persistentCongestion.ts"
import { RoundTripTime } from "./roundTripTime.ts"
import { WindowUse } from "./windowUse.ts"

/**
 * What a sender asks about the path (spec §14): which number a packet takes, whether and when one may go, what an
 * answer or a timeout means for the flights, and when to come back. It is the one parent of the rules beside it: they
 * judge, it applies.
 */

/** Back-off of the probe timeout stops here (spec §14.6); a base timeout above it stands. */
export const probeTimeoutCeiling: Micros = 2_800_000
const defaultFlights = 16_384

export interface RecoveryOptions {
  readonly controller: CongestionController
  readonly datagramSize: Bytes
  /** Slots of the flight ring, a power of two. */
  readonly flights?: number
  readonly trace?: Trace
}

/**
 * What an answer or a timeout changed: packet numbers, in lists that are used again. A number is in one list at most.
 */
export interface RecoveryOutcome {
  /** In flight until now: all parts are held (ACK) … */
  readonly acked: NumberList
  /** … or not (SEEN): they need sending again. */
  readonly seen: NumberList
  /** Declared lost now. */
  readonly lost: NumberList
  /** Declared lost earlier, and now acknowledged after all (ACK). */
  readonly late: NumberList
  /** Declared lost earlier, and now opened after all (SEEN): its parts still need sending again. */
  readonly lateSeen: NumberList
}

export interface RecoveryCounters {
  sent: number
  probes: number
  acked: number
  seen: number
  lost: number
  late: number
  reductions: number
  persistentCongestions: number
  /** Acknowledgements of numbers never sent (spec §9.4). */
  violations: number
}

export class Recovery {
  readonly rtt = new RoundTripTime()
  readonly controller: CongestionController
  readonly ringSize: number
  readonly outcome: RecoveryOutcome = {
    acked: new NumberList(),
    seen: new NumberList(),
    lost: new NumberList(),
    late: new NumberList(),
    lateSeen: new NumberList()
  }
  readonly counters: RecoveryCounters = {
    sent: 0,
    probes: 0,
    acked: 0,
    seen: 0,
    lost: 0,
    late: 0,
    reductions: 0,
    persistentCongestions: 0,
    violations: 0
  }
  /** Probe timeouts since the last answer. */
  probeCount = 0
  /** When the last answer came; minus infinity before the first. */
  answeredAt: Micros = Number.NEGATIVE_INFINITY
  /** When the first packet since the last answer was sent; never if none was. */
  firstUnansweredAt: Micros = never
  readonly #flights: FlightRing
  readonly #lossRule = new LossRule()
  readonly #persistentCongestion = new PersistentCongestion()
  readonly #windowUse = new WindowUse()
  readonly #pacer: Pacer
  readonly #trace: Trace
  #datagramSize: Bytes
  #sentAt: Micros = 0
  #largestAcknowledged: PacketNumber = -1
  /** When the next flight is lost by time. */
  #lossAt: Micros = never
  /** Want of data or credit stopped the sender, with room left in the window. */
  #limited = false
  /** The largest number that the answer under way settled; −1 while none. */
  #largestSettled: PacketNumber = -1

  constructor(options: RecoveryOptions) {
    this.controller = options.controller
    this.#datagramSize = options.datagramSize
    this.#flights = new FlightRing(options.flights ?? defaultFlights)
    this.ringSize = this.#flights.size
    this.#pacer = new Pacer(this.controller, this.rtt, options.datagramSize)
    this.#trace = options.trace ?? silentTrace
  }

  get inFlightBytes(): Bytes {
    return this.#flights.bytes
  }

  get inFlightCount(): number {
    return this.#flights.count
  }

  get nextNumber(): PacketNumber {
    return this.#flights.next
  }

  /** The index of a number's flight in arrays of `ringSize`, while `isInRing`. */
  slotOf(number: PacketNumber): number {
    return this.#flights.slotOf(number)
  }

  isInRing(number: PacketNumber): boolean {
    return this.#flights.holds(number)
  }

  /** While true nothing but a probe may be sent: the next number's slot is still in flight. */
  ringIsFull(): boolean {
    return this.#flights.isFull
  }

  /** Whether the window has room for this many bytes; the pacer is asked apart. */
  windowAllows(bytes: Bytes): boolean {
    return this.#flights.bytes + bytes <= this.controller.window
  }

  /** When a datagram may go, by pacing: at most `now` if at once, else when to come back. */
  paceAt(now: Micros): Micros {
    return this.#pacer.paceAt(now)
  }

  setDatagramSize(bytes: Bytes): void {
    this.#datagramSize = bytes
    this.#pacer.setDatagramSize(bytes)
    this.controller.setDatagramSize(bytes)
  }

  /**
   * What stopped the sender: true for want of data or credit, false for the window or the pacer. Holds until told
   * otherwise; a window without room for one more datagram is fully used in any case (RFC 9002 §7.8).
   */
  setLimited(now: Micros, limited: boolean): void {
    this.#limited = limited && this.windowAllows(this.#datagramSize)
    if (limited) this.#pacer.rest(now)
  }

  /** A packet goes now; returns its number. */
  handleSent(now: Micros, bytes: Bytes, probe: boolean): PacketNumber {
    this.controller.handleSent(now, bytes, this.#flights.bytes)
    this.#pacer.handleSent(now, bytes)
    this.#sentAt = now
    if (this.firstUnansweredAt === never) this.firstUnansweredAt = now
    this.counters.sent++
    if (probe) this.counters.probes++
    const number = this.#flights.add(now, bytes)
    this.#windowUse.handleSent(this.#flights.bytes)
    return number
  }

  /** Any authenticated answer: somebody is there, so the probe timeout's back-off ends. */
  handleAnswered(now: Micros): void {
    this.answeredAt = now
    this.firstUnansweredAt = never
    this.probeCount = 0
  }

  /** One answer: begin, `acknowledge` each of its ranges, end; then read the outcome. */
  beginAnswer(now: Micros): void {
    this.handleAnswered(now)
    this.#clearOutcome()
    this.#largestSettled = -1
  }

  /**
   * The numbers low to high are in ACK (or SEEN). False, without effect: the range names a number never sent (spec
   * §9.4).
   */
  acknowledge(low: PacketNumber, high: PacketNumber, seen: boolean): boolean {
    if (!(low >= 0 && low <= high && high < this.#flights.next)) {
      this.counters.violations++
      return false
    }
    const end = high + 1
    let number = this.#flights.nextOpen(low, end)
    while (number < end) {
      this.#settle(number, seen)
      number = this.#flights.nextOpen(number + 1, end)
    }
    return true
  }

  /** `largest` is the largest number that the answer reports, in either list, and `delay` the one reported with it. */
  endAnswer(now: Micros, largest: PacketNumber, delay: Micros): void {
    if (this.#largestSettled < 0) return
    if (this.#largestSettled === largest) this.#measure(now, largest, delay)
    this.#largestAcknowledged = Math.max(this.#largestAcknowledged, this.#largestSettled)
    if (this.#trace.packets) this.#traceLate(now)
    this.#detectLosses(now)
    this.#grow(now, this.outcome.acked)
    this.#grow(now, this.outcome.seen)
    this.#windowUse.handleAcknowledged(this.#largestSettled, this.#flights.next, this.#flights.bytes)
  }

  /** When to call `handleTimeout`: a flight lost by time, else the probe timeout; never if nothing is in flight. */
  deadline(): Micros {
    if (this.#flights.count === 0) return never
    return this.#lossAt < never ? this.#lossAt : this.#sentAt + this.currentProbeTimeout()
  }

  /**
   * The deadline came. "loss": flights were declared lost, see the outcome. "probe": send one packet now, whatever
   * window and pacer say (spec §9.7); the outcome may name a flight that had to leave a full ring for it. "none": not
   * yet.
   */
  handleTimeout(now: Micros): "loss" | "probe" | "none" {
    this.#clearOutcome()
    if (now < this.deadline()) return "none"
    if (this.#lossAt <= now) {
      this.#detectLosses(now)
      return "loss"
    }
    this.probeCount++
    if (this.#flights.isFull) this.#giveUpOldest(now)
    this.#trace.emit({
      _tag: "ProbeTimeoutExpired",
      at: now,
      count: this.probeCount,
      inFlightBytes: this.#flights.bytes
    })
    return "probe"
  }

  /** RFC 9002 §6.2.1, doubled for each probe since the last answer, up to the ceiling. */
  currentProbeTimeout(): Micros {
    const base = this.rtt.probeTimeout()
    return Math.max(base, Math.min(base * 2 ** this.probeCount, probeTimeoutCeiling))
  }

  /** All flights leave, without a signal of congestion; acknowledgements of them have no effect any more. */
  forgetFlights(): void {
    this.#flights.forget()
    this.#lossAt = never
    this.#clearOutcome()
  }

  #clearOutcome(): void {
    this.outcome.acked.clear()
    this.outcome.seen.clear()
    this.outcome.lost.clear()
    this.outcome.late.clear()
    this.outcome.lateSeen.clear()
  }

  #settle(number: PacketNumber, seen: boolean): void {
    const { outcome } = this
    if (this.#flights.isDeclaredLost(number)) {
      this.counters.late++
      this.#persistentCongestion.handleLate(number, this.#flights.sentAt(number + 1))
      ;(seen ? outcome.lateSeen : outcome.late).push(number)
    } else if (seen) {
      this.counters.seen++
      outcome.seen.push(number)
    } else {
      this.counters.acked++
      outcome.acked.push(number)
    }
    this.#flights.settle(number)
    if (number > this.#largestSettled) this.#largestSettled = number
  }

  /** Numbers are never used twice, so a late acknowledgement measures the round trip as well as any. */
  #measure(now: Micros, number: PacketNumber, delay: Micros): void {
    if (!this.rtt.hasSample) this.#persistentCongestion.handleFirstSample(now)
    this.rtt.update(Math.max(1, now - this.#flights.sentAt(number)), delay)
    if (!this.#trace.packets) return
    const { latest, minimum, smoothed, variance } = this.rtt
    this.#trace.emit({ _tag: "RoundTripMeasured", at: now, latest, smoothed, variance, minimum })
  }

  #detectLosses(now: Micros): void {
    const { lost } = this.outcome
    this.#lossAt = this.#lossRule.judge(this.#flights, this.rtt, this.#largestAcknowledged, now, lost)
    this.#declareLost(now)
  }

  /** The ring has no slot for a probe: its oldest flight is lost, as far as anyone can still know. */
  #giveUpOldest(now: Micros): void {
    this.outcome.lost.push(this.#flights.oldest())
    this.#declareLost(now)
  }

  /** Applies a verdict: the flights in `outcome.lost` leave, and the controller hears of it once. */
  #declareLost(now: Micros): void {
    const { length, values } = this.outcome.lost
    if (length === 0) return
    for (let i = 0; i < length; i++) this.#declareFlightLost(now, values[i]!)
    const newestSentAt = this.#flights.sentAt(values[length - 1]!)
    if (this.controller.handleCongestion(now, newestSentAt)) {
      this.counters.reductions++
      this.#traceWindow(now, "loss")
    }
    if (this.#persistentCongestion.isEstablished(this.rtt)) this.#collapse(now)
  }

  #declareFlightLost(now: Micros, number: PacketNumber): void {
    const sentAt = this.#flights.sentAt(number)
    this.#flights.declareLost(number)
    this.#persistentCongestion.handleLost(number, sentAt)
    this.counters.lost++
    if (!this.#trace.packets) return
    this.#trace.emit({ _tag: "FlightLost", at: now, number, bytes: this.#flights.bytesOf(number), sentAt })
  }

  #collapse(now: Micros): void {
    this.#persistentCongestion.handleEstablished(now)
    this.controller.handlePersistentCongestion(now)
    this.rtt.restartMinimum()
    this.counters.persistentCongestions++
    this.#traceWindow(now, "persistent congestion")
  }

  /** Late flights are in neither list: they grow nothing (spec §14.3). */
  #grow(now: Micros, numbers: NumberList): void {
    for (let i = 0; i < numbers.length; i++) {
      const number = numbers.values[i]!
      const bytes = this.#flights.bytesOf(number)
      const windowLimited = !this.#limited && this.#windowUse.isHalf(this.controller.window)
      this.controller.handleAcknowledged(now, bytes, this.#flights.sentAt(number), this.rtt, windowLimited)
    }
  }

  #traceLate(now: Micros): void {
    for (const { length, values } of [this.outcome.late, this.outcome.lateSeen]) {
      for (let i = 0; i < length; i++) {
        this.#trace.emit({ _tag: "FlightLate", at: now, number: values[i]!, sentAt: this.#flights.sentAt(values[i]!) })
      }
    }
  }

  #traceWindow(now: Micros, cause: "loss" | "persistent congestion"): void {
    const { window } = this.controller
    this.#trace.emit({ _tag: "WindowReduced", at: now, cause, window, inFlightBytes: this.#flights.bytes })
  }
}

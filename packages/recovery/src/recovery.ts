import { silentTrace, type Trace } from "@pure-link/trace"
import { type Bytes, type Micros, never, type PacketNumber } from "@pure-link/wire"
import type { CongestionController } from "./congestion/CongestionController.ts"
import { FlightAges } from "./flightAges.ts"
import { FlightRing } from "./flightRing.ts"
import type { NumberList } from "./numberList.ts"
import type { NumberRanges } from "./numberRanges.ts"
import { clearOutcome, noCounts, noOutcome, type RecoveryCounters } from "./outcome.ts"
import type { Pacer } from "./pacing/Pacer.ts"
import type { PathMtuDiscovery } from "./pathMtu/PathMtuDiscovery.ts"
import type { PolicyMakers } from "./policies.ts"
import { RecoveryTrace } from "./recoveryTrace.ts"
import { RoundTripTime } from "./roundTripTime.ts"
import type { TailPolicy } from "./tail/TailPolicy.ts"
import { Verdicts } from "./verdicts.ts"
import { WindowKeeper } from "./windowKeeper.ts"

/**
 * What a sender asks about the path (spec §14): which number a packet takes, whether and when one may go, what an
 * answer or a timeout means for the flights, and when to come back. It is the one parent of the rules beside it: they
 * judge, it applies; `WindowKeeper` applies it to the window. A fresh run begins its numbers anew and keeps what is known
 * of the path; another path does the reverse.
 */

/** Back-off of the probe timeout stops here (spec §14.6); a base timeout above it stands. */
export const probeTimeoutCeiling: Micros = 2_800_000
const defaultFlights = 16_384
/** A timer that is served so late shows that the process was not running. */
const sleptTime: Micros = 1_000_000

export interface RecoveryOptions {
  readonly policies: PolicyMakers
  /** What the path is taken to carry at first. */
  readonly datagramSize: Bytes
  readonly largestWindow: Bytes
  /** Slots of the flight ring, a power of two. */
  readonly flights?: number
  readonly trace?: Trace
}

export class Recovery {
  readonly rtt = new RoundTripTime()
  readonly controller: CongestionController
  readonly ringSize: number
  readonly outcome = noOutcome()
  readonly counters: RecoveryCounters = noCounts()
  /** Probe timeouts since the last answer. */
  probeCount = 0
  /** When the last answer came; minus infinity before the first. */
  answeredAt: Micros = Number.NEGATIVE_INFINITY
  /** The largest datagram to send, the probe of the path excepted. */
  datagramSize: Bytes
  readonly #flights: FlightRing
  readonly #ages: FlightAges
  readonly #window: WindowKeeper
  readonly #pacer: Pacer
  readonly #pathMtu: PathMtuDiscovery
  readonly #tail: TailPolicy
  readonly #told: RecoveryTrace
  readonly #verdicts: Verdicts
  #sentAt: Micros = 0
  #largestAcknowledged: PacketNumber = -1
  /** When the next flight is lost by time. */
  #lossAt: Micros = never
  /** The largest and the smallest number that the answer under way settled; −1 and infinity while none. */
  #largestSettled: PacketNumber = -1
  #smallestSettled: PacketNumber = Infinity
  /** The largest of them that was given up before: anybody may have held it back, for any time. */
  #largestGivenUp: PacketNumber = -1

  constructor(options: RecoveryOptions) {
    const { policies, datagramSize, largestWindow } = options
    this.datagramSize = datagramSize
    this.#flights = new FlightRing(options.flights ?? defaultFlights)
    this.ringSize = this.#flights.size
    this.#ages = new FlightAges(policies, this.rtt)
    this.#told = new RecoveryTrace(options.trace ?? silentTrace)
    const { rtt, counters } = this
    this.#window = new WindowKeeper({ policies, rtt, counters, told: this.#told, datagramSize, largestWindow })
    this.controller = this.#window.controller
    this.#pacer = policies.pacing.make({ controller: this.controller, rtt: this.rtt, datagramSize })
    this.#pathMtu = policies.pathMtu.make({ datagramSize })
    this.#tail = policies.tailRedundancy.make()
    this.#verdicts = new Verdicts({
      flights: this.#flights,
      ages: this.#ages,
      window: this.#window,
      pathMtu: this.#pathMtu,
      outcome: this.outcome,
      counters,
      told: this.#told
    })
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

  /** No flight below this number can be settled any more. */
  get oldestOpen(): PacketNumber {
    return this.#flights.oldestOpen()
  }

  /** While true nothing but a probe may be sent: the next number's slot is still in flight. */
  ringIsFull(): boolean {
    return this.#flights.isFull
  }

  /**
   * Whether the window has room for this many bytes; the pacer is asked apart. One packet may go beyond it when a
   * reduction begins, so that what was lost is sent again at once (RFC 9002 §7.3.2).
   */
  windowAllows(bytes: Bytes): boolean {
    return this.#window.allowsOneMore || this.hasRoom(bytes)
  }

  /** The receiver begins anew, and waits for the first record that it lacks: one packet may go beyond the window. */
  allowOneMore(): void {
    this.#window.allowOneMore()
  }

  /** The same for a packet that must not be the one beyond. */
  hasRoom(bytes: Bytes): boolean {
    return !this.#flights.isFull && this.#flights.bytes + bytes <= this.controller.window
  }

  /** When a datagram may go, by pacing: at most `now` if at once, else when to come back. */
  paceAt(now: Micros): Micros {
    return this.#pacer.paceAt(now)
  }

  /** When a probe of the path may go: never while none is wanted, or while the path does not answer. */
  get pathProbeAt(): Micros {
    return this.probeCount > 0 ? never : this.#pathMtu.probeAt
  }

  /** Whether the flight is neither acknowledged nor declared lost. */
  isInFlight(number: PacketNumber): boolean {
    return this.#flights.isInFlight(number)
  }

  /** When a flight, in flight still, is to be sent once more; never if not at all. */
  copyAt(number: PacketNumber): Micros {
    return this.#tail.copyAt(this.#flights.sentAt(number), this.rtt)
  }

  /** Whether the probe is to go beyond the window, after what waits: it decides whether large packets vanish. */
  get isPathProbeUrgent(): boolean {
    return this.#pathMtu.isSuspicious
  }

  /** What a probe of the path is padded to. */
  get pathProbeSize(): Bytes {
    return this.#pathMtu.probeSize
  }

  /**
   * What stopped the sender: true for want of data or credit, false for the window or the pacer. Holds until told
   * otherwise; a window without room for one more datagram is fully used in any case (RFC 9002 §7.8).
   */
  setLimited(now: Micros, limited: boolean): void {
    this.#window.setLimited(limited && this.hasRoom(this.datagramSize))
    if (limited) this.#pacer.rest(now)
  }

  /** The window has no room for what is to go: returns when to come back whatever comes of answers. */
  waitForRoom(now: Micros): Micros {
    return this.#pacer.waitForRoom(now)
  }

  /** A packet goes now; returns its number. `probe`: because a probe timeout expired. */
  handleSent(now: Micros, bytes: Bytes, probe: boolean): PacketNumber {
    this.#makeRoom(now)
    this.#window.handleSent(now, bytes, this.#flights.bytes)
    this.#pacer.handleSent(now, bytes)
    this.#sentAt = now
    this.counters.sent++
    const number = this.#flights.add(now, bytes)
    if (probe) {
      this.counters.probes++
      this.#pathMtu.handleTimeoutProbe(bytes)
    }
    return number
  }

  /** How many datagrams of this length may go now, one after the other: by ring, window and pacer. */
  trainRoom(now: Micros, bytes: Bytes): number {
    const byWindow = Math.floor((this.controller.window - this.#flights.bytes) / bytes)
    if (byWindow < 1) return 0
    return Math.min(byWindow, this.#flights.room, this.#pacer.roomFor(now, bytes))
  }

  /** Packets of these lengths, lengths[from … to), go now, as `trainRoom` allowed; they take the next numbers. */
  handleTrainSent(now: Micros, lengths: Uint32Array, from: number, to: number): void {
    const flights = this.#flights
    let bytes = 0
    for (let i = from; i < to; i++) bytes += lengths[i]!
    this.#verdicts.giveUpBelow(now, flights.next + to - from - this.ringSize)
    this.#window.handleSent(now, bytes, flights.bytes)
    this.#pacer.handleSent(now, bytes)
    this.#sentAt = now
    this.counters.sent += to - from
    flights.addTrain(now, lengths, from, to)
  }

  /** When the last packet went; 0 before the first. */
  get sentAt(): Micros {
    return this.#sentAt
  }

  /** A probe of the path goes now, alone; returns its number. */
  handlePathProbeSent(now: Micros, bytes: Bytes): PacketNumber {
    if (this.#flights.isDeclaredLost(this.#verdicts.pathProbe)) this.#flights.settle(this.#verdicts.pathProbe)
    const number = this.handleSent(now, bytes, false)
    this.counters.pathProbes++
    this.#verdicts.pathProbe = number
    this.#pathMtu.handleProbeSent(now, number)
    return number
  }

  /** Any authenticated answer: somebody is there, so the probe timeout's back-off ends. */
  handleAnswered(now: Micros): void {
    this.answeredAt = now
    this.probeCount = 0
  }

  /** One answer: begin, `acknowledge` each of its ranges, end; then read the outcome. */
  beginAnswer(now: Micros): void {
    this.#noticeSleep(now)
    this.#ages.endSilence(now, now - this.answeredAt, this.probeCount, this.#flights)
    this.handleAnswered(now)
    clearOutcome(this.outcome)
    this.#window.handleAnswer()
    this.#largestSettled = -1
    this.#smallestSettled = Infinity
    this.#largestGivenUp = -1
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
      const endOfRun = this.#flights.endOfRun(number, end)
      if (endOfRun === number) this.#settle(number, seen)
      else this.#settleRun(number, endOfRun, seen)
      number = this.#flights.nextOpen(Math.max(number + 1, endOfRun), end)
    }
    return true
  }

  /** `largest` is the largest number that the answer reports, in either list, and `delay` the one reported with it. */
  endAnswer(now: Micros, largest: PacketNumber, delay: Micros): void {
    if (this.#largestSettled >= 0) this.#conclude(now, largest, delay)
    this.#told.answer(now, this.controller, this.#flights.bytes, this.rtt.smoothed)
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
    clearOutcome(this.outcome)
    if (now < this.deadline()) return "none"
    this.#noticeSleep(now)
    if (this.#lossAt <= now) {
      this.#lossAt = this.#verdicts.detectLosses(now, this.#largestAcknowledged)
      this.#adoptDatagramSize(now)
      return "loss"
    }
    this.probeCount++
    this.#pathMtu.handleProbeTimeout(this.#flights.next)
    if (this.#flights.isFull) this.#verdicts.declareOldestLost(now)
    this.#adoptDatagramSize(now)
    this.#told.expired(now, this.probeCount, this.#flights.bytes)
    return "probe"
  }

  /** RFC 9002 §6.2.1, doubled for each probe since the last answer, up to the ceiling. */
  currentProbeTimeout(): Micros {
    const base = this.rtt.probeTimeout()
    return Math.max(base, Math.min(base * 2 ** this.probeCount, probeTimeoutCeiling))
  }

  /** All flights leave, without a signal of congestion; acknowledgements of them have no effect any more. */
  forgetFlights(now: Micros): void {
    this.#flights.forget()
    this.#lossAt = never
    this.#verdicts.pathProbe = -1
    this.#pathMtu.handleForgotten(now)
    this.#window.handleForgotten()
    clearOutcome(this.outcome)
  }

  /** A fresh run on the same path: numbers begin again at 0, and all that is known of the path stays (spec §12.3). */
  startRun(now: Micros): void {
    this.forgetFlights(now)
    this.#flights.restart()
    this.#pathMtu.startRun()
    this.#window.startRun(now)
    this.#largestAcknowledged = -1
    this.#verdicts.pathFrom = 0
    this.#ages.learnFrom(0)
    this.probeCount = 0
  }

  /**
   * Another path: window, round trip and path MTU start again (spec §13.3). What is in flight leaves the window, and is
   * acknowledged or lost as ever, but tells nothing of the new path.
   */
  restartPath(now: Micros): void {
    const flights = this.#flights
    this.#verdicts.giveUpBelow(now, flights.next)
    flights.leaveWindow()
    this.#verdicts.pathFrom = flights.next
    this.#verdicts.pathProbe = -1
    this.#ages.restart(flights.next)
    this.rtt.restart()
    this.#pathMtu.restart()
    this.#setDatagramSize(this.#pathMtu.datagramSize)
    this.#window.restart()
    this.#pacer.restart(now)
    this.probeCount = 0
  }

  /** What is in flight waited for the process, nobody knows how long: its age says nothing. */
  #noticeSleep(now: Micros): void {
    if (now - this.deadline() > sleptTime) this.#ages.learnFrom(this.#flights.next)
  }

  /** Whatever was declared lost in the slot that the next number takes is lost indeed, as far as one can still know. */
  #makeRoom(now: Micros): void {
    const overwritten = this.#flights.next - this.ringSize
    if (this.#flights.isDeclaredLost(overwritten)) this.#verdicts.giveUp(now, overwritten)
  }

  /** The flights from `from` on and below `end` are in flight and neither lost nor probes of the path, but for one. */
  #settleRun(from: PacketNumber, end: PacketNumber, seen: boolean): void {
    const probe = this.#verdicts.pathProbe
    const probes = probe >= from && probe < end ? 1 : 0
    if (seen) this.counters.seen += end - from - probes
    else this.counters.acked += end - from - probes
    const { acked } = this.outcome
    const list = seen ? this.outcome.seen : acked
    if (probes === 0) list.add(from, end)
    else {
      if (from < probe) list.add(from, probe)
      acked.add(probe, probe + 1)
      if (probe + 1 < end) list.add(probe + 1, end)
    }
    this.#flights.settleRun(from, end)
    this.#noteSettled(from, end)
  }

  /** Settles a flight that was declared lost, or given up. */
  #settle(number: PacketNumber, seen: boolean): void {
    const { outcome } = this
    const { pathProbe } = this.#verdicts
    const isLate = this.#flights.isDeclaredLost(number)
    const next = number + 1 === pathProbe ? number + 2 : number + 1
    if (isLate) this.#window.handleLateNumber(number, next, this.#flights.sentAt(next))
    if (number !== pathProbe) {
      ;(seen ? outcome.lateSeen : outcome.late).push(number)
      if (isLate) {
        this.counters.late++
        this.#window.handleInnocent()
        this.#told.late(this.answeredAt, number, this.#flights.sentAt(number))
      } else {
        this.counters.givenUpTooSoon++
        if (number > this.#largestGivenUp) this.#largestGivenUp = number
      }
    }
    this.#flights.settle(number)
    this.#noteSettled(number, number + 1)
  }

  #noteSettled(from: PacketNumber, end: PacketNumber): void {
    for (let number = Math.max(from, this.#verdicts.pathFrom); number < end; number++) {
      this.#pathMtu.handleAcknowledged(this.answeredAt, number, this.#flights.bytesOf(number))
    }
    if (end - 1 > this.#largestSettled) this.#largestSettled = end - 1
    if (from < this.#smallestSettled) this.#smallestSettled = from
  }

  /** What an answer that settled flights means for all others. */
  #conclude(now: Micros, largest: PacketNumber, delay: Micros): void {
    const oldest = this.#smallestSettled
    this.#ages.handleSettled(now, oldest, this.#flights.sentAt(oldest), this.#flights.next)
    const isMeasured = this.#largestSettled === largest && largest !== this.#largestGivenUp
    if (isMeasured && this.#ages.measures(largest)) this.#measure(now, largest, delay)
    // What this answer acknowledges beside a late flight is no sign of how late it was: a receiver may answer many at once.
    this.#learnFromLate(now, this.outcome.late)
    this.#learnFromLate(now, this.outcome.lateSeen)
    this.#largestAcknowledged = Math.max(this.#largestAcknowledged, this.#largestSettled)
    this.#window.undo(now)
    this.#verdicts.giveUpOverdue(now, this.#flights.sentAt(this.#largestSettled))
    this.#verdicts.discountVanished(now)
    this.#lossAt = this.#verdicts.detectLosses(now, this.#largestAcknowledged)
    this.#adoptDatagramSize(now)
    if (!this.#pathMtu.isSuspicious) this.#window.endSuspicion()
    this.#grow(now, this.outcome.acked)
    this.#grow(now, this.outcome.seen)
    this.#window.handleAnswered(this.#largestSettled, this.#flights.next, this.#flights.bytes)
  }

  /** Numbers are never used twice, so a late acknowledgement measures the round trip as well as any. */
  #measure(now: Micros, number: PacketNumber, delay: Micros): void {
    if (!this.rtt.hasSample) {
      this.#window.handleFirstSample(now)
      this.#pathMtu.handleRoundTrip(now)
    }
    this.rtt.update(Math.max(1, now - this.#flights.sentAt(number)), delay)
    this.#told.measured(now, this.rtt)
  }

  #learnFromLate(now: Micros, numbers: NumberList): void {
    if (numbers.length === 0) return
    this.controller.handleLate(now)
    this.#ages.handleLate(now, numbers, this.#largestAcknowledged, this.#flights)
  }

  #adoptDatagramSize(now: Micros): void {
    const { datagramSize } = this.#pathMtu
    if (datagramSize === this.datagramSize) return
    const grows = datagramSize > this.datagramSize
    this.#setDatagramSize(datagramSize)
    this.#told.sized(now, datagramSize, grows)
  }

  #setDatagramSize(bytes: Bytes): void {
    this.datagramSize = bytes
    this.#pacer.setDatagramSize(bytes)
    this.controller.setDatagramSize(bytes)
  }

  /** Late flights are in neither list: they grow nothing (spec §14.3). */
  #grow(now: Micros, { starts, ends, length }: NumberRanges): void {
    const flights = this.#flights
    for (let i = 0; i < length; i++) {
      const end = ends[i]!
      for (let number = Math.max(starts[i]!, this.#verdicts.pathFrom); number < end; number++) {
        this.#window.handleAcknowledged(now, flights.bytesOf(number), flights.sentAt(number))
      }
    }
  }
}

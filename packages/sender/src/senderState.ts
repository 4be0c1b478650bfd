import { type PolicyMakers, Recovery } from "@pure-link/recovery"
import type { Trace } from "@pure-link/trace"
import type { Bytes, Life, Micros, PacketNumber, RecordNumber } from "@pure-link/wire"
import { Asking } from "./asking.ts"
import { Backlog } from "./backlog.ts"
import { Challenges } from "./challenges.ts"
import { type SenderCounters, noCounts } from "./counters.ts"
import type { SenderEvent } from "./events.ts"
import { FlightContents } from "./flightContents.ts"
import { LostStarts } from "./lostStarts.ts"
import type { Position } from "./recordQueue.ts"
import { Refusal } from "./refusal.ts"
import { type RunFlights, type RunOptions, SenderRun } from "./senderRun.ts"
import { Silence } from "./silence.ts"

/**
 * What a sender link knows, with the questions that several of its parts ask: whether records may go, how far, and
 * whether only the peer can change that. Answers change it, packets are made from it.
 */

export interface StateOptions extends RunOptions {
  readonly outbox: {
    readonly lowestHeld: RecordNumber
    readonly last: RecordNumber
    readonly lives: ReadonlyArray<Life>
  }
  readonly policies: PolicyMakers
  readonly datagramSize: Bytes
  /** Slots of the flight ring. */
  readonly flights: number
  readonly trace: Trace
  readonly recordNumbersOfRun: number
  /** Deliberate faults, see SenderFaults. */
  readonly ignoreCredit: boolean
  readonly acceptAnyLost: boolean
  readonly windowKeptOnMove: boolean
}

/** The controller may not ask for more flights than half of recovery's ring. */
const ringPart = 2

export class SenderState {
  readonly options: StateOptions
  readonly trace: Trace
  readonly counters: SenderCounters = noCounts()
  readonly backlog: Backlog
  readonly refusal = new Refusal()
  readonly asking = new Asking()
  readonly silence = new Silence()
  readonly lostStarts = new LostStarts()
  challenges = new Challenges()
  run: SenderRun
  /** The link has stopped for good (spec §8.5). */
  forked = false
  /**
   * Records were SEEN although nothing told the sender to wait: they are held until something changes (spec §9.4,
   * §9.6).
   */
  held = false
  /**
   * A packet must go whatever waits: the first under a new epoch (spec §7.4), or the first that only offers.
   */
  packetDue = false
  probeDue = false

  readonly #shared: RunFlights
  readonly #events: Array<SenderEvent> = []
  #lives: ReadonlyArray<Life>
  /** The largest number of a flight that led to holding. */
  #heldBy: PacketNumber = -1
  /** A SEEN flight before this number was judged under circumstances that have changed since. */
  #changedAt: PacketNumber = 0
  /** The position up to which records may be sent; −1 when it must be found anew. */
  #reach: Position = -1

  constructor(options: StateOptions) {
    this.options = options
    this.trace = options.trace
    this.backlog = new Backlog(options.outbox.lowestHeld, options.outbox.last)
    this.#lives = options.outbox.lives
    const { policies, datagramSize, flights, trace } = options
    const largestWindow = (flights / ringPart) * datagramSize
    this.#shared = {
      recovery: new Recovery({ policies, datagramSize, largestWindow, flights, trace }),
      flights: new FlightContents(flights)
    }
    this.run = this.#newRun(false)
  }

  /** The largest datagram with records at present. */
  get datagramSize(): Bytes {
    return this.run.recovery.datagramSize
  }

  /** All lives that the outbox lists. */
  get lives(): ReadonlyArray<Life> {
    return this.#lives
  }

  set lives(lives: ReadonlyArray<Life>) {
    this.#lives = lives
    this.listLives()
  }

  /** Tells the driver. Of several Stored in a row only the last is kept. */
  tell(event: SenderEvent): void {
    if (event._tag === "Stored" && this.#events.at(-1)?._tag === "Stored") this.#events.pop()
    this.#events.push(event)
  }

  pollEvent(): SenderEvent | undefined {
    return this.#events.shift()
  }

  /**
   * How far records may be sent: by credit (spec §9.3), by the lives that STREAM lists (§8.2) and by the run's base
   * (§4.3).
   */
  get reach(): Position {
    if (this.#reach < 0) this.#reach = this.#findReach()
    return this.#reach
  }

  /** Queue, credit, lives or run changed. */
  reachChanged(): void {
    this.#reach = -1
  }

  get hasSendable(): boolean {
    return !this.held && this.run.mayCarryRecords && this.backlog.waitsBelow(this.reach)
  }

  /** Nothing is in flight and nothing may be sent, but records wait: only the peer can change that (spec §9.6). */
  get waitsForPeer(): boolean {
    return this.backlog.queue.records > 0 && this.run.recovery.inFlightCount === 0 && !this.hasSendable
  }

  get questionAt(): Micros {
    const { answeredAt, rtt } = this.run.recovery
    return this.asking.at(answeredAt, rtt.probeTimeout())
  }

  /** STREAM lists the lives from the first unstored record on. */
  listLives(): void {
    this.run.stream.list(this.#lives, this.backlog.queue.first, this.run.recovery.nextNumber)
    this.reachChanged()
  }

  /** What was SEEN may fare better now. */
  circumstancesChanged(): void {
    this.held = false
    this.#changedAt = this.run.recovery.nextNumber
  }

  /**
   * A flight with records was SEEN: unless circumstances have changed since it was sent, records wait until they do.
   */
  holdAfter(number: PacketNumber): void {
    if (number < this.#changedAt) return
    this.held = true
    this.#heldBy = Math.max(this.#heldBy, number)
  }

  /** A flight with records was ACKed: there is room, if it was sent after those that were SEEN. */
  releaseAfter(number: PacketNumber): void {
    if (number > this.#heldBy) this.held = false
  }

  /**
   * What is in the air is no longer counted on: neither its loss nor its timeout means anything, and its records wait
   * again.
   */
  forgetFlights(now: Micros): void {
    const { recovery } = this.run
    recovery.forgetFlights(now)
    this.run.resendFrom = recovery.nextNumber
    this.backlog.sendUnacknowledgedAgain()
    this.probeDue = false
    this.circumstancesChanged()
    this.asking.reset()
  }

  /** Packets go in epoch 0 with a new OFFER and without records, until something is heard (spec §9.8). */
  startSilentRecovery(): void {
    if (this.run.inSilentRecovery) return
    this.run.inSilentRecovery = true
    this.packetDue = false
    this.counters.silentRecoveries++
    this.tell({ _tag: "SilentRecovery" })
  }

  /** Whether the next record's number is out of this run's reach (spec §4.3). */
  get isRunUsedUp(): boolean {
    const { queue, cursor } = this.backlog
    const { base } = this.run.stream
    const limit = base + this.options.recordNumbersOfRun
    if (queue.first === base || queue.end <= limit) return false
    return queue.first >= limit || cursor >= queue.positionOf(limit)
  }

  /** Whether the key of the next packet may seal no more (spec §7.6). */
  get isKeySpent(): boolean {
    return this.run.epochs.isSpent(this.run.sealingEpoch)
  }

  /**
   * Another key before the next packet, if that of the present epoch is spent (spec §7.6): a silent recovery brings the
   * next epoch, a fresh run another epoch 0.
   */
  renewSpentKey(now: Micros): void {
    if (!this.isKeySpent) return
    if (this.run.sealingEpoch === 0) return this.startFreshRun(now, true)
    this.startSilentRecovery()
    this.packetDue = this.backlog.hasUnstored
  }

  /** The path is another one (spec §13.3): nothing that was learnt of the former one holds. */
  changePath(now: Micros): void {
    if (!this.options.windowKeptOnMove) this.run.recovery.restartPath(now)
    this.counters.pathsChanged++
    this.asking.reset()
    this.tell({ _tag: "PathChanged" })
  }

  /**
   * A fresh run on the same path, with everything unstored. It carries offers only until ACCEPT (spec §4.3), or records at
   * once (spec §12.3).
   */
  startFreshRun(now: Micros, offersOnly: boolean): void {
    this.run.epochs.close()
    this.#shared.recovery.startRun(now)
    this.#shared.flights.restart()
    this.run = this.#newRun(offersOnly)
    this.backlog.sendEverythingAgain()
    this.#heldBy = -1
    this.circumstancesChanged()
    this.asking.reset()
    this.silence.stopWaiting()
    this.probeDue = false
    this.packetDue = offersOnly && this.backlog.hasUnstored
    this.challenges = new Challenges()
    this.reachChanged()
  }

  /**
   * The receiver has lost the run (spec §12.3): a fresh one follows. A refused sender stays refused, and what its try was
   * about goes in the fresh run at once, if records may.
   */
  loseRun(now: Micros, withRecords: boolean): void {
    this.run.recovery.handleAnswered(now)
    if (this.silence.handleAnswer(now, false)) this.tell({ _tag: "SilenceEnded" })
    this.startFreshRun(now, !withRecords)
    if (this.refusal.active) this.refusal.owesRecords = true
    this.counters.runsLost++
    this.tell({ _tag: "RunLost", withRecords })
  }

  #newRun(offersOnly: boolean): SenderRun {
    const { first } = this.backlog.queue
    const run = new SenderRun(this.options, this.#shared, first, offersOnly)
    run.stream.list(this.#lives, first, 0)
    return run
  }

  #findReach(): Position {
    const { queue } = this.backlog
    const { credit, stream } = this.run
    const end = Math.min(stream.lastListed + 1, stream.base + this.options.recordNumbersOfRun, queue.end)
    if (end <= queue.first) return queue.firstPosition
    return this.options.ignoreCredit ? queue.positionOf(end) : Math.min(credit.reach(queue), queue.positionOf(end))
  }
}

import type { Trace } from "@pure-link/trace"
import type { Bytes, Id64, Life, Micros, PacketNumber, RecordNumber } from "@pure-link/wire"
import { Asking } from "./asking.ts"
import { Backlog } from "./backlog.ts"
import { type SenderCounters, noCounts } from "./counters.ts"
import type { SenderEvent } from "./events.ts"
import type { Position } from "./recordQueue.ts"
import { Refusal } from "./refusal.ts"
import { type RunOptions, SenderRun } from "./senderRun.ts"
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
  readonly recordNumbersOfRun: number
  /** A deliberate fault, see SenderFaults. */
  readonly ignoreCredit: boolean
}

export class SenderState {
  readonly options: StateOptions
  readonly trace: Trace
  readonly counters: SenderCounters = noCounts()
  readonly backlog: Backlog
  readonly refusal = new Refusal()
  readonly asking = new Asking()
  readonly silence = new Silence()
  run: SenderRun
  /** The link has stopped for good (spec §8.5). */
  forked = false
  /**
   * Records were SEEN although nothing told the sender to wait: they are held until something changes (spec §9.4,
   * §9.6).
   */
  held = false
  /**
   * A packet must go whatever waits: the first under a new epoch (spec §7.4), or the first of a run that only offers.
   */
  packetDue = false
  probeDue = false
  /** The token of a CHALLENGE, to be returned in the next packet (spec §9.11). */
  response: Id64 | undefined

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

  /** A fresh run, which carries offers only until ACCEPT and then everything unstored (spec §4.3). */
  startFreshRun(): void {
    this.run.epochs.close()
    this.run = this.#newRun(true)
    this.backlog.sendEverythingAgain()
    this.#heldBy = -1
    this.circumstancesChanged()
    this.asking.reset()
    this.silence.stopWaiting()
    this.probeDue = false
    this.packetDue = true
    this.response = undefined
    this.reachChanged()
  }

  #newRun(offersOnly: boolean): SenderRun {
    const { first } = this.backlog.queue
    const run = new SenderRun(this.options, first, offersOnly)
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

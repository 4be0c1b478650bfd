import { AllOrNothing } from "@pure-link/recovery"
import { type SenderEvent, type SenderFaults, SenderLink } from "@pure-link/sender"
import { type Id64, Kind, largestDatagram, type Micros, readId64, RefusalReason } from "@pure-link/wire"
import { Alarm } from "./alarm.ts"
import { Chance } from "../world/chance.ts"
import { Episodes, Forgiving } from "./episodes.ts"
import { senderFaults } from "./fault.ts"
import { FreshRuns } from "./freshRuns.ts"
import type { Delivery, Sent } from "./network.ts"
import type { OutboxDisk } from "./outboxDisk.ts"
import type { Process } from "./process.ts"
import type { SenderNode } from "./senderNode.ts"
import { Overheard } from "./spoken.ts"
import type { Stream } from "./stream.ts"
import { Violation } from "./violation.ts"

/** The largest initial window of spec §18, and what one answer may add to it. */
const largestFirstWindow = 2 * 14_720

/** Reply runs that an output remembers (spec §18), and where an answer tells its own. */
const replyRunsRemembered = 4
const replyRunAt = 9
/** Few are ever in flight here, and worlds begin many runs. */
const flightsRemembered = 1_024
/** An output that sends nothing for so long has erased the secrets of its former epoch (spec §7.4). */
const idle: Micros = 10_000_000

/** One output of a sender process: the machine, its outbox, and the checks of all that it sends, hears and says. */
export class Output {
  alive = true
  readonly link: SenderLink
  /** Why it waits for an operator; undefined while it does not. */
  stopped: "forked" | "behind" | undefined
  readonly #process: Process
  readonly #datagram = new Uint8Array(largestDatagram)
  readonly #alarm: Alarm
  readonly #overheard = new Overheard()
  readonly #runs: FreshRuns
  readonly #episodes: Episodes
  /** The answers that it opened, and their reply runs. */
  readonly #opened = new Set<number>()
  readonly #replyRuns = new Set<Id64>()
  #sentAt: Micros = 0
  /** The LOST that it is being handed. */
  #lost: Sent | undefined

  readonly node: SenderNode
  readonly stream: Stream
  readonly disk: OutboxDisk
  readonly seed: number

  constructor(node: SenderNode, stream: Stream, disk: OutboxDisk, seed: number) {
    const { world } = node
    const { epochLimits, network } = world
    this.node = node
    this.stream = stream
    this.disk = disk
    this.seed = seed
    this.#process = node.process
    const own = new Chance(seed)
    const { source, input, shape } = stream
    this.#episodes = new Episodes(
      (number) => network.runs.get(this.link.run)?.find(({ spoken }) => spoken.number === number)?.arrived === true,
      () => (world.fault === "undoTrueLoss" ? new Forgiving() : new AllOrNothing())
    )
    this.link = new SenderLink({
      suite: this.#overheard.suite,
      entropy: { fill: (bytes) => own.fill(bytes) },
      identity: world.senderKeys,
      peerPublicKey: world.receiverKeys.publicKey,
      staticSecret: world.staticSecret,
      stream: { source, input, shape },
      outbox: disk.state(),
      policies: this.#episodes.policies,
      trace: this.#episodes,
      flights: flightsRemembered,
      ...(epochLimits === undefined ? {} : { epochLimits }),
      faults: senderFaults(world.fault) satisfies SenderFaults
    })
    this.#runs = new FreshRuns(world.staticSecret, world.pair, network, this.link.run)
    world.judge.runs.set(this.link.run, this)
    this.#alarm = new Alarm(this.#process, () => {
      if (!this.alive) return
      this.link.handleTimeout(this.#process.now)
      this.turn()
    })
  }

  /** Everything is stored, or it said why it stops. */
  get isDone(): boolean {
    return this.stopped !== undefined || this.link.stored === this.disk.last
  }

  end(): void {
    const { tally } = this.node.world
    this.alive = false
    tally.addMachine(this.link.counters)
    tally.add("sender episodesUndone", this.#episodes.undone)
  }

  appended(): void {
    const { last, lives } = this.disk.state()
    this.link.handleAppended(this.#process.now, last, lives)
    this.turn()
  }

  /** The receiver has another address from now on. */
  handlePathChanged(): void {
    this.link.handlePathChanged(this.#process.now)
    this.turn()
  }

  /** A packet for this output, or a copy of one: what came before, or was made up, changes nothing. True: it opened. */
  deliver(delivery: Delivery): boolean {
    const { link } = this
    const { now } = this.#process
    const { sent } = delivery
    const isLost = delivery.bytes[0]! >> 6 === Kind.lost
    const isCopy = delivery.intact && this.#opened.has(sent!.id)
    // Of so many reply runs it knows again what it heard.
    const mayOpen = isLost || (isCopy && this.#replyRuns.size > replyRunsRemembered)
    const before = isCopy || delivery.origin === "forged" ? this.#standing : ""
    const { unopened } = link.counters
    const isDue = link.deadline() <= now
    this.#lost = isLost ? sent : undefined
    const opened = link.handleDatagram(now, delivery.bytes, 0, delivery.bytes.length)
    if (before !== "" && !isDue && ((opened && !mayOpen) || this.#standing !== before))
      this.#complain(isCopy, isLost, before)
    if (link.counters.unopened > unopened) this.#checkHonest(delivery)
    if (!opened) return false
    if (!delivery.intact) throw new Violation("a damaged answer opened")
    // LOST that came too soon may count when it comes again.
    if (!isLost || link.run !== this.#runs.run) this.#opened.add(sent!.id)
    if (!isLost) this.#replyRuns.add(readId64(sent!.bytes, replyRunAt))
    if (link.counters.violations > 0) throw new Violation("an honest receiver was said to break a rule")
    this.turn()
    this.#lost = undefined
    return true
  }

  turn(): void {
    const { link, node } = this
    const { world } = node
    const { now } = this.#process
    if (link.run !== this.#runs.run) this.#handleFreshRun()
    for (let wanted = link.wanted(); wanted !== undefined; wanted = link.wanted()) {
      link.supply(now, this.disk.read(wanted.from, wanted))
    }
    for (let length; (length = link.pollTransmit(now, this.#datagram, 0)) > 0;) {
      if (link.run !== this.#runs.run) this.#handleFreshRun()
      const packet = this.#datagram.slice(0, length)
      world.nonces.check(packet, link.run)
      this.#runs.check(packet, link.counters.answers)
      this.#sentAt = world.timeline.now
      world.network.sendData(link.run, packet, this.#overheard.last, node.address, node.peerAddress)
    }
    for (let event = link.pollEvent(); event !== undefined; event = link.pollEvent()) this.#hear(event)
    this.#alarm.set(link.deadline())
  }

  #handleFreshRun(): void {
    const { link } = this
    const { world } = this.node
    world.note(`${this.stream.source} → ${this.stream.input} goes on in run ${link.run.toString(16)}`)
    this.#runs.handleFresh(link.run, this.#lost, this.#process.now, link.counters.answers)
    world.judge.runs.set(link.run, this)
  }

  #complain(isCopy: boolean, isLost: boolean, before: string): never {
    const what = isLost ? "LOST" : "an answer"
    const effect = before === this.#standing ? "opened" : `made ${before} ${this.#standing}`
    throw new Violation(isCopy ? `${what} had an effect twice: it ${effect}` : `${what} that was made up ${effect}`)
  }

  /**
   * An answer that came straight from its receiver did not open: it must be of an epoch that is long over, of epoch 0,
   * where replays make a receiver speak that has forgotten the run, or the answer to a replay on an idle link.
   */
  #checkHonest({ origin, intact, sent }: Delivery): void {
    const { world } = this.node
    if (origin !== "sent" || !intact || (sent!.bytes[0]! & 0x0f) === 0) return
    if (world.timeline.now - sent!.at > world.network.longestDelay || world.timeline.now - this.#sentAt > idle) return
    const { number, accepts } = sent!.spoken
    const what = `answer ${number} in epoch bits ${sent!.bytes[0]! & 15} with ACCEPT ${accepts}, sent at ${sent!.at}`
    throw new Violation(
      `an honest answer failed authentication: ${what}, to an output in epoch ${this.link.status.epoch}`
    )
  }

  get #standing(): string {
    const { epoch, window, inFlight } = this.link.status
    const { run, state, stored } = this.link
    return `${run} ${stored} ${state} ${this.link.deadline()} ${epoch} ${window} ${inFlight}`
  }

  #hear(event: SenderEvent): void {
    const { judge, tally } = this.node.world
    if (event._tag !== "Stored") this.node.world.note(`${this.name} says ${JSON.stringify(event)}`)
    switch (event._tag) {
      case "Stored":
        judge.handleStored(this, event.n)
        this.disk.removeThrough(event.n)
        this.stopped = undefined
        return
      case "Refused":
        judge.handleRefused(this, event.reason)
        tally.add(`sender refused for reason ${event.reason}`)
        this.stopped = undefined
        if (event.reason === RefusalReason.forkedOutbox) this.stopped = "forked"
        if (event.reason === RefusalReason.recordsGone) this.stopped = "behind"
        return
      case "RefusalEnded":
        this.stopped = undefined
        return
      case "Forked":
        judge.handleForked(this, event.detail)
        tally.add("event Forked")
        this.stopped = "forked"
        return
      case "PathChanged":
        if (this.link.status.window > largestFirstWindow) throw new Violation("the window of the former path stays")
        tally.add("event PathChanged")
        return
      case "InboxBehind":
        judge.handleBehind(this, event.n)
        tally.add("event InboxBehind")
        this.stopped = "behind"
        return
      default:
        tally.add(`event ${event._tag}`)
    }
  }

  get name(): string {
    return `output ${this.stream.source} → ${this.stream.input}, run ${this.link.run.toString(16)}`
  }
}

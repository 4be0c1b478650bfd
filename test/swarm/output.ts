import { nodeSuite } from "@pure-link/keys"
import { type SenderEvent, SenderLink } from "@pure-link/sender"
import { largestDatagram, RefusalReason } from "@pure-link/wire"
import { Alarm } from "./alarm.ts"
import { Chance } from "./chance.ts"
import type { Delivery } from "./network.ts"
import type { OutboxDisk } from "./outboxDisk.ts"
import type { SenderNode } from "./senderNode.ts"
import type { Stream } from "./stream.ts"
import { Violation } from "./violation.ts"
import { ZeroEpoch } from "./zeroEpoch.ts"

/** One output of a sender process: the machine, its outbox, and the checks of all that it sends, hears and says. */
export class Output {
  alive = true
  readonly link: SenderLink
  /** Why it waits for an operator; undefined while it does not. */
  stopped: "forked" | "behind" | undefined
  readonly #datagram = new Uint8Array(largestDatagram)
  readonly #alarm: Alarm
  readonly #zeroEpoch: ZeroEpoch
  /** The answers that it opened. */
  readonly #opened = new Set<number>()

  readonly node: SenderNode
  readonly stream: Stream
  readonly disk: OutboxDisk
  readonly seed: number

  constructor(node: SenderNode, stream: Stream, disk: OutboxDisk, seed: number) {
    const { world } = node
    this.node = node
    this.stream = stream
    this.disk = disk
    this.seed = seed
    const own = new Chance(seed)
    const { source, input, shape } = stream
    this.link = new SenderLink({
      suite: nodeSuite,
      entropy: { fill: (bytes) => own.fill(bytes) },
      identity: world.senderKeys,
      peerPublicKey: world.receiverKeys.publicKey,
      staticSecret: world.staticSecret,
      stream: { source, input, shape },
      outbox: disk.state(),
      ...(world.fault === "ignoreCredit" ? { faults: { ignoreCredit: true } } : {})
    })
    this.#zeroEpoch = new ZeroEpoch(world.staticSecret, world.pair, this.link.run)
    world.judge.runs.set(this.link.run, this)
    this.#alarm = new Alarm(world.timeline, () => {
      if (!this.alive) return
      this.link.handleTimeout(world.timeline.now)
      this.turn()
    })
  }

  /** Everything is stored, or it said why it stops. */
  get isDone(): boolean {
    return this.stopped !== undefined || this.link.stored === this.disk.last
  }

  end(): void {
    this.alive = false
    this.node.world.tally.addMachine(this.link.counters)
  }

  appended(): void {
    const { last, lives } = this.disk.state()
    this.link.handleAppended(this.node.world.timeline.now, last, lives)
    this.turn()
  }

  /** An answer, or a copy of one: what came before changes nothing. True: it was for this output. */
  deliver(delivery: Delivery): boolean {
    const { link } = this
    const isCopy = delivery.intact && this.#opened.has(delivery.id)
    const before = isCopy ? this.#standing : ""
    const opened = link.handleDatagram(this.node.world.timeline.now, delivery.bytes, 0, delivery.bytes.length)
    if (isCopy && (opened || this.#standing !== before)) throw new Violation("an answer had an effect twice")
    if (!opened) return false
    if (!delivery.intact) throw new Violation("a damaged answer opened")
    this.#opened.add(delivery.id)
    if (link.counters.violations > 0) throw new Violation("an honest receiver was said to break a rule")
    this.turn()
    return true
  }

  turn(): void {
    const { link, node } = this
    const { world } = node
    const { now } = world.timeline
    for (let wanted = link.wanted(); wanted !== undefined; wanted = link.wanted()) {
      link.supply(now, this.disk.read(wanted.from, wanted))
    }
    for (let length; (length = link.pollTransmit(now, this.#datagram, 0)) > 0;) {
      const packet = this.#datagram.slice(0, length)
      world.nonces.check(packet, link.run)
      this.#zeroEpoch.check(packet, link.counters.answers > 0)
      world.network.sendData(link.run, packet, node.address, world.receiver.address)
    }
    for (let event = link.pollEvent(); event !== undefined; event = link.pollEvent()) this.#hear(event)
    this.#alarm.set(link.deadline())
  }

  get #standing(): string {
    const { epoch, window, inFlight } = this.link.status
    return `${this.link.stored} ${this.link.state} ${this.link.deadline()} ${epoch} ${window} ${inFlight}`
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

import { Receiver, type ReceiverCounters, type ReceiverEvent } from "@pure-link/receiver"
import {
  type Address,
  epochBitsOf,
  type Id64,
  Kind,
  largestDatagram,
  PacketHeader,
  RefusalReason,
  runPrefixOf,
  type StoreIntent
} from "@pure-link/wire"
import { Alarm } from "./alarm.ts"
import { Chance } from "../world/chance.ts"
import { receiverFaults } from "./fault.ts"
import type { InboxDisk } from "./inboxDisk.ts"
import { LostRules } from "./lostRules.ts"
import { MemoRules } from "./memoRules.ts"
import type { Delivery } from "./network.ts"
import { Paths } from "./paths.ts"
import { Process } from "./process.ts"
import { Overheard } from "./spoken.ts"
import { Violation } from "./violation.ts"
import type { World } from "./world.ts"

/** A receiver process: the machine, its inbox, and the checks of all that it hears, asks to store and says. */
export class ReceiverNode {
  readonly process: Process
  readonly address: Address
  readonly machine: Receiver
  /** Commits that are durable, of which the machine has not heard yet. */
  untold = 0
  readonly #datagram = new Uint8Array(largestDatagram)
  readonly #header = new PacketHeader()
  readonly #alarm: Alarm
  readonly #overheard = new Overheard()
  readonly #lostRules: LostRules
  readonly #memoRules: MemoRules
  readonly #paths = new Paths()
  /** What was just read was made up by someone without keys: nothing may follow from it but LOST. */
  #isForged = false
  readonly #delivered = new Set<number>()
  /** Packets that opened, with the number of runs begun at that time. */
  readonly #opened = new Map<number, number>()

  readonly world: World

  constructor(world: World) {
    this.world = world
    this.process = new Process(world.timeline, world.chance)
    this.address = world.receiverAddress
    const own = new Chance(world.chance.bits())
    const { epochLimits, fault, memo, plan } = world
    memo?.open()
    this.#memoRules = new MemoRules(memo, world.senderKeys.publicKey)
    const isHeld = (run: Id64) => memo?.run(run) !== undefined
    this.#lostRules = new LostRules(world.staticSecret, world.pair, isHeld, this.#memoRules.rememberedEpochs)
    this.machine = new Receiver({
      suite: this.#overheard.suite,
      entropy: { fill: (bytes) => own.fill(bytes) },
      identity: world.receiverKeys,
      cursors: world.inbox,
      streamBytes: plan.streamBytes,
      totalBytes: plan.totalBytes,
      ...(memo === undefined ? {} : { memo }),
      ...(epochLimits === undefined ? {} : { epochLimits }),
      faults: receiverFaults(fault)
    })
    this.#alarm = new Alarm(this.process, () => {
      this.machine.handleTimeout(this.process.now)
      this.turn()
    })
    this.configure()
  }

  end(): void {
    const { tally } = this.world
    if (this.process.alive) {
      tally.addMachine(this.machine.counters)
      tally.add("world datagrams overflowed", this.process.overflowed)
    }
    this.process.alive = false
  }

  /** The configuration is read (again). */
  configure(): void {
    this.process.doFirst(() => {
      const { configuration, senderKeys, streams } = this.world
      this.machine.allow({ publicKey: senderKeys.publicKey, sources: [...configuration.sources] })
      for (const { input } of streams) {
        const shape = configuration.inputs.get(input)
        if (shape === undefined) this.machine.removeInput(input)
        else this.machine.addInput(input, shape)
      }
      this.turn()
    })
  }

  deliver(delivery: Delivery): void {
    this.process.receive(delivery, (all) => this.#readAll(all))
  }

  turn(): void {
    const { machine, process, world } = this
    const { now } = process
    for (let event = machine.pollEvent(); event !== undefined; event = machine.pollEvent()) this.#hear(event)
    for (let intent = machine.pollStore(); intent !== undefined; intent = machine.pollStore()) this.#commit(intent)
    for (let length; (length = machine.pollTransmit(now, this.#datagram, 0)) > 0;) {
      const packet = this.#datagram.slice(0, length)
      const isLost = this.#check(packet)
      world.network.sendBack(isLost, packet, this.#overheard.last, this.address, machine.target)
    }
    this.#alarm.set(machine.deadline())
  }

  #readAll(all: ReadonlyArray<Delivery>): void {
    this.#lostRules.beginBatch()
    for (const delivery of all) this.#read(delivery)
    this.#isForged = all.length === 1 && all[0]!.origin === "forged"
    this.machine.endBatch(this.process.now)
    this.turn()
    this.#isForged = false
  }

  #read(delivery: Delivery): void {
    const { machine } = this
    const { bytes, from, intact, sent } = delivery
    const header = this.#header
    const isRead = header.read(bytes, 0, bytes.length)
    const { epochBits, runPrefix } = header
    if (isRead) this.#paths.receive(runPrefix, delivery)
    if (isRead) this.#lostRules.handleRead(delivery, runPrefix)
    const before = delivery.origin === "forged" ? this.#standing : ""
    const { replayed, "not authentic": refused } = machine.counters.dropped
    const { runsBegun } = machine.counters
    const check = intact && sent!.run !== 0n ? this.#memoRules.before(sent!, from, machine.counters) : undefined
    const datagrams = { bytes, starts: Uint32Array.of(0), ends: Uint32Array.of(bytes.length), from: [from] }
    const opened = machine.handleBatch(this.process.now, datagrams, 0, 1) === 1
    if (delivery.origin === "forged" && (opened || this.#standing !== before))
      throw new Violation(`a packet that was made up ${opened ? "opened" : `made ${before} ${this.#standing}`}`)
    if (intact) this.#checkCopies(sent!.id, opened, machine.counters.dropped.replayed > replayed)
    if (opened && !intact) throw new Violation("a damaged packet opened")
    if (machine.counters.dropped["not authentic"] > refused) this.#checkHonest(delivery)
    if (machine.counters.framesWithoutRoom > 0 && this.world.hasRoom)
      throw new Violation("records came beyond the credit")
    if (machine.counters.contradictions > 0) throw new Violation("records came that contradict what was held")
    if (!opened) return
    sent!.arrived = true
    if (machine.counters.runsBegun > runsBegun) this.#handleBegun(sent!.run)
    this.#lostRules.handleOpened(sent!.run)
    this.#paths.handleOpened(runPrefix, epochBits, delivery)
    this.#memoRules.handleOpened(sent!, epochBits)
    check?.()
  }

  /** A run began here: from nothing but an old packet, if its sender is past epoch 0 already, or not for the first time. */
  #handleBegun(run: Id64): void {
    const { begun, runs } = this.world.judge
    const output = runs.get(run)
    const isNew = !begun.has(run) && output?.link.run === run && output.link.status.epoch === 0
    begun.add(run)
    if (isNew) return
    this.#memoRules.handleDoubtful(run)
  }

  /** A packet back leaves; true for LOST. */
  #check(packet: Uint8Array): boolean {
    const { machine, process, world } = this
    const header = this.#header
    world.nonces.check(packet, 0n)
    header.read(packet, 0, packet.length)
    const { last } = this.#overheard
    if (header.kind === Kind.lost) {
      this.#lostRules.check(packet, machine.target, process.now)
      return true
    }
    if (this.#isForged) throw new Violation("a packet that was made up drew an answer")
    const { accepts } = last
    if (accepts !== undefined) this.#memoRules.handleAccept(header.runPrefix, accepts)
    this.#memoRules.handleAnswer(header.runPrefix, machine.target)
    const accepted = accepts === undefined ? undefined : epochBitsOf(accepts)
    this.#paths.answer(header.runPrefix, machine.target, packet.length, last, accepted)
    return false
  }

  /** What nobody without keys can change. */
  get #standing(): string {
    const { machine } = this
    const { dropped: _dropped, ...counters } = machine.counters
    const rest = Object.entries(counters).filter(([name]) => !costs.has(name as keyof ReceiverCounters))
    return `${rest.map(([name, count]) => `${name} ${count}`).join()} ${machine.heldBytes} ${machine.deadline()}`
  }

  /** Copies have no effect, unless their run was forgotten since; what is no copy is not taken for one (spec §10.1). */
  #checkCopies(id: number, opened: boolean, replayed: boolean): void {
    if (replayed && !this.#delivered.has(id))
      throw new Violation("a packet that never came before was taken for a replay")
    this.#delivered.add(id)
    if (!opened) return
    const { runsBegun } = this.machine.counters
    if (this.#opened.get(id) === runsBegun) throw new Violation("a data packet had an effect twice")
    this.#opened.set(id, runsBegun)
  }

  /** A packet came straight from its sender and did not open: its secrets must be lost, or long over. */
  #checkHonest({ origin, intact, sent }: Delivery): void {
    const { network, timeline } = this.world
    if (origin !== "sent" || !intact || sent!.run === 0n || timeline.now - sent!.at > network.longestDelay) return
    if (this.#memoRules.mayHaveForgotten(sent!.run)) return
    throw new Violation("an honest packet failed authentication")
  }

  #hear(event: ReceiverEvent): void {
    const { world } = this
    const { tally } = world
    world.note(`receiver says ${describe(event)}`)
    tally.add(event._tag === "RunEnded" ? `event RunEnded ${event.cause}` : `event ${event._tag}`)
    if (event._tag === "Violation") throw new Violation(`an honest sender was said to break a rule: ${event.detail}`)
    if (event._tag === "RunRestored") {
      this.#memoRules.handleRestored(event.run)
      this.#lostRules.handleRestored(event.run)
    }
    if (event._tag === "RunEnded") {
      this.#memoRules.handleEnded(event.run)
      this.#lostRules.handleEnded(event.run)
    }
    if (event._tag === "PathValidated") this.#paths.handleValidated(runPrefixOf(event.run), event.address)
    if (event._tag !== "RefusalBegan") return
    if (event.reason === RefusalReason.retiredGeneration) this.#memoRules.handleRetired(event.run)
    tally.add(`receiver refused for reason ${event.reason}`)
    world.judge.handleRefusalBegan(event)
  }

  /** A transaction: at some moment it becomes durable, later the process hears of it, unless it died in between. */
  #commit(intent: StoreIntent): void {
    const { world } = this
    const { chance, plan, timeline } = world
    const entries = world.judge.identify(intent)
    const start = timeline.now
    const failed = world.isDiskFull || (!world.calm && chance.happens(plan.commitFailure))
    const durableAfter = Math.floor(plan.commitDelay * chance.unit())
    let outcome: ReturnType<InboxDisk["commit"]> | undefined
    timeline.at(start + durableAfter, () => {
      if (!this.process.alive || failed) return
      outcome = world.inbox.commit(intent)
      if (outcome._tag === "Stored") world.judge.handleDurable(intent, entries)
      this.untold += 1
    })
    timeline.at(start + plan.commitDelay, () => {
      this.process.do(() => {
        if (outcome !== undefined) this.untold -= 1
        if (outcome === undefined) this.machine.handleStoreFailed(this.process.now, intent)
        else this.machine.handleStored(this.process.now, intent, outcome)
        this.turn()
      })
    })
  }
}

/** What packets of strangers may cost, and be counted as. */
const costs: ReadonlySet<keyof ReceiverCounters> = new Set([
  "lostSent",
  "lostLimited",
  "keyAgreements",
  "keyDerivations",
  "keyDerivationsLimited",
  "forgedPackets"
])

const describe = (event: ReceiverEvent): string =>
  JSON.stringify(event, (key, value) =>
    key === "peer" ? undefined : typeof value === "bigint" ? value.toString(16) : value
  )

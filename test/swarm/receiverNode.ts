import { nodeSuite } from "@pure-link/keys"
import { Receiver, type ReceiverEvent } from "@pure-link/receiver"
import {
  type Address,
  amplificationLimit,
  formatAddress,
  largestDatagram,
  PacketHeader,
  type StoreIntent
} from "@pure-link/wire"
import { Alarm } from "./alarm.ts"
import { Chance } from "./chance.ts"
import type { InboxDisk } from "./inboxDisk.ts"
import type { Delivery } from "./network.ts"
import { Violation } from "./violation.ts"
import type { World } from "./world.ts"

/** What came from an address and went to it, for the amplification limit (spec §10.9). */
interface Traffic {
  received: number
  sent: number
  isValidated: boolean
}

/** A receiver process: the machine, its inbox, and the checks of all that it hears, asks to store and says. */
export class ReceiverNode {
  alive = true
  readonly address: Address = { host: "10.0.0.2", port: 5_000 }
  readonly machine: Receiver
  /** Commits that are durable, of which the machine has not heard yet. */
  untold = 0
  readonly #datagram = new Uint8Array(largestDatagram)
  readonly #header = new PacketHeader()
  readonly #alarm: Alarm
  readonly #delivered = new Set<number>()
  /** Packets that opened, with the number of runs begun at that time. */
  readonly #opened = new Map<number, number>()
  readonly #traffic = new Map<string, Traffic>()

  readonly world: World

  constructor(world: World) {
    this.world = world
    const own = new Chance(world.chance.bits())
    const { fault, plan } = world
    const broken = fault === "storedBeforeCommit" || fault === "acceptGap" || fault === "markBeforeVerify"
    this.machine = new Receiver({
      suite: nodeSuite,
      entropy: { fill: (bytes) => own.fill(bytes) },
      identity: world.receiverKeys,
      cursors: world.inbox,
      streamBytes: plan.streamBytes,
      totalBytes: plan.totalBytes,
      ...(broken ? { faults: { [fault]: true } } : {})
    })
    this.#alarm = new Alarm(world.timeline, () => {
      if (!this.alive) return
      this.machine.handleTimeout(world.timeline.now)
      this.turn()
    })
    this.configure()
  }

  end(): void {
    if (this.alive) this.world.tally.addMachine(this.machine.counters)
    this.alive = false
  }

  /** The configuration is read (again). */
  configure(): void {
    const { configuration, senderKeys, streams } = this.world
    this.machine.allow({ publicKey: senderKeys.publicKey, sources: [...configuration.sources] })
    for (const { input } of streams) {
      const shape = configuration.inputs.get(input)
      if (shape === undefined) this.machine.removeInput(input)
      else this.machine.addInput(input, shape)
    }
    this.turn()
  }

  deliver(delivery: Delivery): void {
    if (!this.alive) return
    const { machine } = this
    const { now } = this.world.timeline
    const traffic = this.#receive(delivery)
    const replays = machine.counters.dropped.replayed
    const opened = machine.handleDatagram(now, delivery.bytes, 0, delivery.bytes.length, delivery.from)
    if (delivery.intact) this.#checkCopies(delivery.id, opened, machine.counters.dropped.replayed > replays)
    if (opened && !delivery.intact) throw new Violation("a damaged packet opened")
    if (machine.counters.framesWithoutRoom > 0 && this.world.hasRoom)
      throw new Violation("records came beyond the credit")
    if (machine.counters.contradictions > 0) throw new Violation("records came that contradict what was held")
    if (opened && this.#header.epochBits > 0) traffic.isValidated = true
    machine.endBatch(now)
    this.turn()
  }

  turn(): void {
    const { machine, world } = this
    const { now } = world.timeline
    for (let event = machine.pollEvent(); event !== undefined; event = machine.pollEvent()) this.#hear(event)
    for (let intent = machine.pollStore(); intent !== undefined; intent = machine.pollStore()) this.#commit(intent)
    for (let length; (length = machine.pollTransmit(now, this.#datagram, 0)) > 0;) {
      const packet = this.#datagram.slice(0, length)
      world.nonces.check(packet, 0n)
      this.#checkAmplification(machine.target, length)
      world.network.sendAnswer(packet, this.address, machine.target)
    }
    this.#alarm.set(machine.deadline())
  }

  #receive({ bytes, from }: Delivery): Traffic {
    this.#header.read(bytes, 0, bytes.length)
    const key = formatAddress(from)
    const traffic = this.#traffic.get(key) ?? { received: 0, sent: 0, isValidated: false }
    traffic.received += bytes.length
    this.#traffic.set(key, traffic)
    return traffic
  }

  #checkAmplification(target: Address, length: number): void {
    const traffic = this.#traffic.get(formatAddress(target))
    if (traffic === undefined) throw new Violation("an answer went to an address that nothing came from")
    traffic.sent += length
    if (!traffic.isValidated && traffic.sent > amplificationLimit * traffic.received)
      throw new Violation(`${traffic.sent} B went to an address that sent ${traffic.received} B`)
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

  #hear(event: ReceiverEvent): void {
    const { world } = this
    const { tally } = world
    world.note(`receiver says ${describe(event)}`)
    tally.add(event._tag === "RunEnded" ? `event RunEnded ${event.cause}` : `event ${event._tag}`)
    if (event._tag === "Violation") throw new Violation(`an honest sender was said to break a rule: ${event.detail}`)
    if (event._tag !== "RefusalBegan") return
    tally.add(`receiver refused for reason ${event.reason}`)
    world.judge.handleRefusalBegan(event)
  }

  /** A transaction: at some moment it becomes durable, later the process hears of it, unless it died in between. */
  #commit(intent: StoreIntent): void {
    const { world } = this
    const entries = world.judge.identify(intent)
    const start = world.timeline.now
    const failed = !world.calm && world.chance.happens(world.plan.commitFailure)
    const durableAfter = Math.floor(world.plan.commitDelay * world.chance.unit())
    let outcome: ReturnType<InboxDisk["commit"]> | undefined
    world.timeline.at(start + durableAfter, () => {
      if (!this.alive || failed) return
      outcome = world.inbox.commit(intent)
      if (outcome._tag === "Stored") world.judge.handleDurable(intent, entries)
      this.untold += 1
    })
    world.timeline.at(start + world.plan.commitDelay, () => {
      if (!this.alive) return
      if (outcome !== undefined) this.untold -= 1
      if (outcome === undefined) this.machine.handleStoreFailed(world.timeline.now, intent)
      else this.machine.handleStored(world.timeline.now, intent, outcome)
      this.turn()
    })
  }
}

const describe = (event: ReceiverEvent): string =>
  JSON.stringify(event, (key, value) =>
    key === "peer" ? undefined : typeof value === "bigint" ? value.toString(16) : value
  )

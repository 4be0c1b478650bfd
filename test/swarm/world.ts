/**
 * One random world: a sender and a receiver machine, real keys, a bad network, disks that outlive their processes, and a
 * reference model that knows what was appended. Processes die at any moment; the disks stay. Every guarantee of spec §2
 * that can be seen from outside is asserted as the world turns; at the end the weather clears and everything must be
 * stored.
 */
import { type KeyPair, nodeSuite } from "@pure-link/keys"
import { Cubic } from "@pure-link/recovery"
import { Receiver } from "@pure-link/receiver"
import { SenderLink } from "@pure-link/sender"
import { largestDatagram, type Micros, type StoreIntent } from "@pure-link/wire"
import { Chance } from "./chance.ts"
import { clear, type Delivery, Network, type Weather } from "./network.ts"
import { Nonces } from "./nonces.ts"
import { InboxDisk, OutboxDisk, Violation } from "./stores.ts"
import { Timeline } from "./timeline.ts"

/** Deliberate faults: each breaks one rule, to prove that the worlds would notice. */
export const faults = ["storedBeforeCommit", "acceptGap", "markBeforeVerify", "numberReuse", "ignoreCredit"] as const
export type Fault = (typeof faults)[number]

export interface Plan {
  readonly records: number
  readonly largestRecord: number
  readonly appendEvery: Micros
  readonly weather: Weather
  readonly streamBytes: number
  readonly commitDelay: Micros
  readonly commitFailure: number
  readonly senderCrashes: number
  readonly receiverCrashes: number
  readonly chaosEnds: Micros
}

const second: Micros = 1_000_000
/** A clear sky must settle everything within this time after the chaos (probes back off to 2.8 s, commit retries to 1 s). */
const patience: Micros = 120 * second
const shape = 0x5045_5249_4f44_0001n
const name = { source: "till-7", input: "orders" }
const senderAddress = { host: "10.0.0.1", port: 4_000 }

/** Draws what kind of world this is; whole kinds of trouble are absent from many worlds, so that others show alone. */
export const planOf = (chance: Chance): Plan => {
  const delay = chance.pick([100, 5_000, 20_000, 100_000])
  return {
    records: chance.between(1, 90),
    largestRecord: chance.pick([0, 80, 1_400, 6_000, 60_000]),
    appendEvery: chance.pick([0, 0, 2_000, 50_000]),
    weather: {
      delay,
      jitter: chance.pick([0, delay, 3 * delay]),
      loss: chance.pick([0, 0, 0.01, 0.1, 0.3]),
      duplicate: chance.pick([0, 0.05, 0.3]),
      corrupt: chance.pick([0, 0.02, 0.1])
    },
    streamBytes: chance.pick([16_777_216, 256 * 1024, 20_000]),
    commitDelay: chance.pick([0, 500, 30_000, 900_000]),
    commitFailure: chance.pick([0, 0, 0.2, 0.5]),
    senderCrashes: chance.pick([0, 0, 1, 3]),
    receiverCrashes: chance.pick([0, 0, 1, 3]),
    chaosEnds: chance.between(1, 8) * second
  }
}

const keyPair = (chance: Chance): KeyPair => {
  const privateKey = new Uint8Array(32)
  chance.fill(privateKey)
  return { privateKey, publicKey: nodeSuite.agreement.publicKey(privateKey) }
}

export class World {
  readonly chance: Chance
  readonly plan: Plan
  readonly timeline = new Timeline()
  readonly network: Network
  readonly outbox: OutboxDisk
  readonly inbox = new InboxDisk()
  readonly nonces = new Nonces()
  readonly senderKeys: KeyPair
  readonly receiverKeys: KeyPair
  readonly fault: Fault | undefined
  sender: SenderProcess
  receiver: ReceiverProcess
  calm = false

  constructor(seed: number, options: { readonly fault?: Fault; readonly plan?: Partial<Plan> } = {}) {
    this.chance = new Chance(seed)
    this.plan = { ...planOf(this.chance), ...options.plan }
    this.fault = options.fault
    this.senderKeys = keyPair(this.chance)
    this.receiverKeys = keyPair(this.chance)
    this.outbox = new OutboxDisk(this.chance)
    this.network = new Network(this.timeline, this.chance, this.plan.weather)
    this.receiver = new ReceiverProcess(this)
    this.sender = new SenderProcess(this, this.chance.bits())
    this.#schedule()
  }

  /** Runs the world to its end; throws a `Violation` when a guarantee is broken. */
  run(): void {
    const end = this.plan.chaosEnds + this.plan.records * this.plan.appendEvery + patience
    while (!this.#isSettled()) {
      if (this.timeline.now > end) throw new Violation(this.#stuck())
      if (!this.timeline.step()) throw new Violation(`nothing is left to happen; ${this.#stuck()}`)
    }
    this.compare()
  }

  /** The inbox holds what was appended, byte for byte. */
  compare(): void {
    const stored = this.inbox.records(name)
    for (let i = 0; i < stored.length; i++) {
      if (Buffer.compare(stored[i]!, this.outbox.records[i] ?? new Uint8Array(0)) !== 0 || i >= this.outbox.last) {
        throw new Violation(`record ${i + 1} differs from what was appended`)
      }
    }
  }

  get storedThrough(): number {
    return this.inbox.cursor(name)?.n ?? 0
  }

  restartSender(): void {
    this.sender.alive = false
    this.outbox.reopen()
    this.sender = new SenderProcess(this, this.fault === "numberReuse" ? this.sender.seed : this.chance.bits())
    this.sender.turn()
  }

  restartReceiver(): void {
    this.receiver.alive = false
    this.receiver = new ReceiverProcess(this)
  }

  append(): void {
    const record = new Uint8Array(this.chance.between(0, this.plan.largestRecord))
    this.chance.fill(record)
    this.outbox.append(record)
    this.sender.appended()
  }

  #schedule(): void {
    const { chance, plan, timeline } = this
    for (let i = 0; i < plan.records; i++) timeline.at(i * plan.appendEvery, () => this.append())
    for (let i = 0; i < plan.senderCrashes; i++)
      timeline.at(chance.between(0, plan.chaosEnds), () => this.restartSender())
    for (let i = 0; i < plan.receiverCrashes; i++)
      timeline.at(chance.between(0, plan.chaosEnds), () => this.restartReceiver())
    timeline.at(plan.chaosEnds, () => {
      this.calm = true
      this.network.weather = { ...clear, delay: plan.weather.delay }
    })
  }

  #isSettled(): boolean {
    return this.calm && this.outbox.last === this.plan.records && this.sender.link.stored === this.plan.records
  }

  #stuck(): string {
    return (
      `stored ${this.storedThrough}, sender knows ${this.sender.link.stored}, appended ${this.outbox.last} of ${this.plan.records} ` +
      `at ${this.timeline.now / second} s; plan ${JSON.stringify(this.plan)}`
    )
  }
}

/** Wakes a machine at its deadline; of several asked wake-ups the earliest counts. */
class Alarm {
  #at = Number.POSITIVE_INFINITY

  readonly #timeline: Timeline
  readonly #ring: () => void

  constructor(timeline: Timeline, ring: () => void) {
    this.#timeline = timeline
    this.#ring = ring
  }

  set(at: Micros): void {
    if (at >= this.#at || at === Number.POSITIVE_INFINITY) return
    this.#at = at
    this.#timeline.at(at, () => {
      if (this.#at !== at) return
      this.#at = Number.POSITIVE_INFINITY
      this.#ring()
    })
  }
}

class SenderProcess {
  alive = true
  readonly link: SenderLink
  readonly #datagram = new Uint8Array(largestDatagram)
  readonly #alarm: Alarm

  readonly world: World
  readonly seed: number

  constructor(world: World, seed: number) {
    this.world = world
    this.seed = seed
    const own = new Chance(seed)
    this.link = new SenderLink({
      suite: nodeSuite,
      entropy: { fill: (bytes) => own.fill(bytes) },
      identity: world.senderKeys,
      peerPublicKey: world.receiverKeys.publicKey,
      stream: { ...name, shape },
      outbox: world.outbox.state(),
      makeController: (options) => new Cubic(options),
      ...(world.fault === "ignoreCredit" ? { faults: { ignoreCredit: true } } : {})
    })
    this.#alarm = new Alarm(world.timeline, () => {
      if (!this.alive) return
      this.link.handleTimeout(world.timeline.now)
      this.turn()
    })
  }

  appended(): void {
    const { last, lives } = this.world.outbox.state()
    this.link.handleAppended(this.world.timeline.now, last, lives)
    this.turn()
  }

  deliver(delivery: Delivery): void {
    if (!this.alive) return
    this.link.handleDatagram(this.world.timeline.now, delivery.bytes, 0, delivery.bytes.length)
    this.turn()
  }

  turn(): void {
    const { link, world } = this
    const now = world.timeline.now
    for (let wanted = link.wanted(); wanted !== undefined; wanted = link.wanted()) {
      link.supply(now, world.outbox.read(wanted.from, wanted))
    }
    for (let length; (length = link.pollTransmit(now, this.#datagram, 0)) > 0;) {
      const packet = this.#datagram.slice(0, length)
      world.nonces.check(packet, link.run)
      world.network.send(packet, (delivery) => world.receiver.deliver(delivery))
    }
    this.#events()
    this.#alarm.set(link.deadline())
  }

  #events(): void {
    const { link, world } = this
    for (let event = link.pollEvent(); event !== undefined; event = link.pollEvent()) {
      if (event._tag === "Stored") {
        if (event.n > world.storedThrough)
          throw new Violation(`STORED ${event.n} while the disk holds ${world.storedThrough}`)
        world.outbox.removeThrough(event.n)
      }
      if (event._tag === "Refused" || event._tag === "Forked")
        throw new Violation(`an honest stream got ${JSON.stringify(event)}`)
    }
  }
}

class ReceiverProcess {
  alive = true
  readonly machine: Receiver
  readonly #datagram = new Uint8Array(largestDatagram)
  readonly #alarm: Alarm
  readonly #delivered = new Set<number>()

  readonly world: World

  constructor(world: World) {
    this.world = world
    const own = new Chance(world.chance.bits())
    const { fault } = world
    const broken = fault === "storedBeforeCommit" || fault === "acceptGap" || fault === "markBeforeVerify"
    this.machine = new Receiver({
      suite: nodeSuite,
      entropy: { fill: (bytes) => own.fill(bytes) },
      identity: world.receiverKeys,
      cursors: world.inbox,
      streamBytes: world.plan.streamBytes,
      ...(broken ? { faults: { [fault]: true } } : {})
    })
    this.machine.allow({ publicKey: world.senderKeys.publicKey, sources: [name.source] })
    this.machine.addInput(name.input, shape)
    this.#alarm = new Alarm(world.timeline, () => {
      if (!this.alive) return
      this.machine.handleTimeout(world.timeline.now)
      this.turn()
    })
  }

  deliver(delivery: Delivery): void {
    if (!this.alive) return
    const { machine } = this
    const now = this.world.timeline.now
    const replays = machine.counters.dropped.replayed
    machine.handleDatagram(now, delivery.bytes, 0, delivery.bytes.length, senderAddress)
    if (delivery.intact && !this.#delivered.has(delivery.id) && machine.counters.dropped.replayed > replays) {
      throw new Violation("a packet that never came before was taken for a replay")
    }
    if (machine.counters.framesWithoutRoom > 0) throw new Violation("records came beyond the credit")
    if (delivery.intact) this.#delivered.add(delivery.id)
    machine.endBatch(now)
    this.turn()
  }

  turn(): void {
    const { machine, world } = this
    const now = world.timeline.now
    for (let intent = machine.pollStore(); intent !== undefined; intent = machine.pollStore()) this.#commit(intent)
    for (let length; (length = machine.pollTransmit(now, this.#datagram, 0)) > 0;) {
      const packet = this.#datagram.slice(0, length)
      world.nonces.check(packet, 0n)
      world.network.send(packet, (delivery) => world.sender.deliver(delivery))
    }
    while (machine.pollEvent() !== undefined) {
      /* events are for operators */
    }
    this.#alarm.set(machine.deadline())
  }

  /** A transaction: at some moment it becomes durable, later the process hears of it, unless it died in between. */
  #commit(intent: StoreIntent): void {
    const { world } = this
    this.#judge(intent)
    const start = world.timeline.now
    const failed = !world.calm && world.chance.happens(world.plan.commitFailure)
    const durableAfter = Math.floor(world.plan.commitDelay * world.chance.unit())
    let outcome: ReturnType<InboxDisk["commit"]> | undefined
    world.timeline.at(start + durableAfter, () => {
      if (this.alive && !failed) outcome = world.inbox.commit(intent)
    })
    world.timeline.at(start + world.plan.commitDelay, () => {
      if (!this.alive) return
      if (outcome === undefined) this.machine.handleStoreFailed(world.timeline.now, intent)
      else this.machine.handleStored(world.timeline.now, intent, outcome)
      this.turn()
    })
  }

  /** What an honest receiver asks to store follows the disk and is what was appended. */
  #judge(intent: StoreIntent): void {
    const { outbox, storedThrough } = this.world
    if (intent.batch.first !== storedThrough + 1) {
      throw new Violation(`asked to store from ${intent.batch.first} on while the disk holds ${storedThrough}`)
    }
    let at = 0
    intent.batch.sizes.forEach((size, i) => {
      const appended = outbox.records[intent.batch.first - 1 + i]
      const bytes = intent.batch.bytes.subarray(at, (at += size))
      if (appended === undefined || Buffer.compare(appended, bytes) !== 0) {
        throw new Violation(`record ${intent.batch.first + i} to be stored is not what was appended`)
      }
    })
  }
}

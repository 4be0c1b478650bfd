/**
 * One random world: outputs of a sender node, a receiver, real keys, a bad network, disks that outlive their processes,
 * operators who restore backups, and a reference model that knows every history. Every guarantee of spec §2 that can be
 * seen from outside is asserted as the world turns; at the end the weather clears and everything must be stored, or its
 * sender must have said why not.
 */
import { type EpochLimits, type KeyPair, keyPair, type Pair, staticSecret } from "@pure-link/keys"
import { type Address, type Micros, sameAddress } from "@pure-link/wire"
import { Attacker } from "./attacker.ts"
import { Chance } from "../world/chance.ts"
import { Configuration } from "./configuration.ts"
import type { Fault } from "./fault.ts"
import type { Entry } from "./history.ts"
import { InboxDisk } from "./inboxDisk.ts"
import { Judge } from "./judge.ts"
import { MemoDisk } from "./memoDisk.ts"
import { clear, type Delivery, Network } from "./network.ts"
import { Nonces } from "./nonces.ts"
import type { OutboxDisk } from "./outboxDisk.ts"
import type { Output } from "./output.ts"
import { type Plan, planOf, second } from "./plan.ts"
import { ReceiverNode } from "./receiverNode.ts"
import { quickSuite as suite } from "../world/quickSuite.ts"
import { SenderNode } from "./senderNode.ts"
import { makeStreams, type Stream } from "./stream.ts"
import { Tally } from "./tally.ts"
import { Timeline } from "../world/timeline.ts"
import { replayRun, scheduleTroubles } from "./troubles.ts"
import { Violation } from "./violation.ts"

/** A clear sky must settle everything within this time after the last trouble (refused senders wait up to 64 s). */
const patience: Micros = 180 * second
/** How much later the epilogue begins. */
const minutes: Micros = 180 * second

export interface WorldOptions {
  readonly fault?: Fault
  readonly plan?: Partial<Plan>
  /** Hears what happens, line by line. */
  readonly note?: (line: string) => void
}

export class World {
  readonly chance: Chance
  readonly plan: Plan
  readonly timeline = new Timeline()
  readonly network: Network
  readonly streams: ReadonlyArray<Stream>
  readonly configuration: Configuration
  readonly inbox = new InboxDisk()
  /** The receiver's memo; undefined where it has none. */
  readonly memo: MemoDisk | undefined
  /** When the sender offers the next epoch, if not by spec §18. */
  readonly epochLimits: Partial<EpochLimits> | undefined
  readonly judge: Judge
  readonly nonces = new Nonces()
  readonly tally = new Tally()
  readonly senderKeys: KeyPair
  readonly receiverKeys: KeyPair
  readonly pair: Pair
  readonly staticSecret: Uint8Array
  readonly fault: Fault | undefined
  readonly sender: SenderNode
  receiver: ReceiverNode
  receiverAddress: Address = { host: "10.0.0.2", port: 5_000 }
  calm = false
  isDiskFull = false
  readonly #attacker: Attacker
  #clone: SenderNode | undefined
  /** Scheduled things that have not happened yet, and when the last of them happened or will. */
  #pending = 0
  #lastAt: Micros = 0
  readonly #note: ((line: string) => void) | undefined

  constructor(seed: number, options: WorldOptions = {}) {
    this.chance = new Chance(seed)
    this.plan = { ...planOf(this.chance), ...options.plan }
    this.fault = options.fault
    this.#note = options.note
    this.senderKeys = keyPair(suite, this.chance)
    this.receiverKeys = keyPair(suite, this.chance)
    this.pair = { sender: this.senderKeys.publicKey, receiver: this.receiverKeys.publicKey }
    this.staticSecret = staticSecret(suite, this.senderKeys.privateKey, this.pair.receiver, this.pair)!
    this.network = new Network(this.timeline, this.chance, this.plan.weather, (delivery) => this.#deliver(delivery))
    this.streams = makeStreams(this.plan.streams, this.chance)
    this.configuration = new Configuration(this.streams)
    this.judge = new Judge(this.streams, this.configuration)
    this.memo = this.plan.memo === "none" ? undefined : new MemoDisk()
    this.epochLimits = epochLimitsOf(this.plan)
    this.sender = new SenderNode(this, { host: "10.0.0.1", port: 4_000 })
    this.#attacker = new Attacker(this)
    this.note(`plan ${JSON.stringify(this.plan)}`)
    this.receiver = new ReceiverNode(this)
    this.#scheduleAppends()
    scheduleTroubles(this)
    this.schedule(this.plan.chaosEnds, () => {
      this.calm = true
      this.network.weather = { ...clear, delay: this.plan.weather.delay }
    })
  }

  /** Runs the world to its end; throws a `Violation` when a guarantee is broken. */
  run(): void {
    this.#settle()
    if (this.plan.epilogue) this.#epilogue()
    for (const output of this.outputs) output.end()
    this.receiver.end()
    if (this.streams.length > 1) this.tally.add("world settled with several streams")
    this.tally.add(`world settled after ${this.plan.upheaval}`)
    this.tally.add("world records stored", this.streams.flatMap((stream) => this.inbox.records(stream)).length)
  }

  /** Something happens at a time; the world does not end before. */
  schedule(at: Micros, act: () => void): void {
    this.#pending += 1
    this.#lastAt = Math.max(this.#lastAt, at)
    this.timeline.at(at, () => {
      this.#pending -= 1
      act()
    })
  }

  append(disk: OutboxDisk): void {
    const stream = this.streams.find(({ generations }) => generations.includes(disk.generation))
    if (stream === undefined || (stream.isClosed && disk === stream.disk)) return
    const record = new Uint8Array(this.chance.between(0, this.plan.largestRecord))
    this.chance.fill(record)
    disk.append(record)
    stream.appended += 1
    for (const node of this.#nodes) node.appended(disk)
  }

  startReceiver(): void {
    this.receiver.end()
    this.note("a receiver starts")
    this.receiver = new ReceiverNode(this)
    this.#attacker.greet()
  }

  /** The receiver's next process has another address; each sender is told of it at some later time. */
  moveReceiver(address: Address, toldAfter: () => Micros): void {
    this.receiverAddress = address
    for (const node of this.#nodes)
      this.schedule(this.timeline.now + toldAfter(), () => node.redirect(this.receiverAddress))
  }

  startClone(stream: Stream, disk: OutboxDisk): void {
    this.#clone ??= new SenderNode(this, { host: "10.0.0.3", port: 4_000 })
    this.#clone.open(stream, disk)
  }

  /** Copies the inbox, for the returned function to put back. */
  backupInbox(): () => void {
    const copy = this.inbox.backup()
    const tips: ReadonlyArray<ReadonlyArray<Entry>> = this.streams.map((stream) => stream.tips)
    return () => {
      this.note("the inbox goes back to its backup")
      this.inbox.restore(copy)
      this.streams.forEach((stream, i) => {
        stream.tips = tips[i]!
        stream.fell()
      })
    }
  }

  /** No honest sender may meet a full receiver: one stream of one outbox knows all that is held. */
  get hasRoom(): boolean {
    return this.plan.streams === 1 && this.plan.upheaval === "none"
  }

  get outputs(): ReadonlyArray<Output> {
    return this.#nodes.flatMap((node) => node.outputs)
  }

  /** For whoever watches one world. */
  note(line: string): void {
    this.#note?.(`${(this.timeline.now / second).toFixed(6)} ${line}`)
  }

  get #nodes(): ReadonlyArray<SenderNode> {
    return this.#clone === undefined ? [this.sender] : [this.sender, this.#clone]
  }

  #scheduleAppends(): void {
    const { plan } = this
    for (const stream of this.streams) {
      this.schedule(0, () => this.sender.open(stream, stream.disk))
      for (let i = 0; i < plan.records; i++) this.schedule(i * plan.appendEvery, () => this.append(stream.disk))
    }
  }

  #deliver(delivery: Delivery): void {
    if (sameAddress(delivery.to, this.receiver.address)) return this.receiver.deliver(delivery)
    for (const node of this.#nodes) if (sameAddress(delivery.to, node.address)) node.deliver(delivery)
  }

  #settle(): void {
    while (this.#pending > 0 || !this.outputs.every((output) => output.isDone)) {
      if (this.timeline.now > this.#lastAt + patience) throw new Violation(`stuck: ${this.#standing()}`)
      if (!this.timeline.step()) throw new Violation(`nothing is left to happen: ${this.#standing()}`)
    }
    this.#compare()
  }

  /** Minutes later all that ever travelled comes once more; it changes nothing, and the streams go on. */
  #epilogue(): void {
    let before = ""
    const later = this.timeline.now + minutes
    this.note("the epilogue begins")
    this.schedule(later, () => {
      before = this.#standing()
      for (const answer of this.network.answers.slice(-500)) this.network.repeat(answer, later)
      for (const lost of this.network.lost.slice(-100)) this.network.repeat(lost, later)
      for (const run of [...this.network.runs.keys()].slice(-4)) replayRun(this, run)
    })
    this.schedule(later + second, () => {
      // An inbox that was put back may regain from copies what its senders have removed; and where an outbox was put
      // back, what its former self had sent may arrive at last: a fork that is real, and is noticed.
      const fell =
        this.streams.some(({ fallenTo }) => fallenTo.size > 0) || this.outputs.some(({ disk }) => disk.isForked)
      if (!fell && this.#standing() !== before)
        throw new Violation(`replays changed ${before} into ${this.#standing()}`)
      for (const { disk } of this.outputs) this.append(disk)
    })
    this.#settle()
    this.tally.add("world epilogue")
  }

  /** The inbox holds what was appended, byte for byte, and every output that did not stop sees it so. */
  #compare(): void {
    for (const stream of this.streams) {
      const stored = this.inbox.records(stream)
      const { expected } = stream
      expected.forEach((record, i) => {
        if (stored[i] === undefined || Buffer.compare(stored[i], record) !== 0)
          throw new Violation(`record ${i + 1} of the inbox is not what was appended`)
      })
      if (stored.length !== expected.length)
        throw new Violation(`the inbox holds ${stored.length} of ${expected.length}`)
      if (this.plan.upheaval === "none" && stored.length !== stream.appended)
        throw new Violation(`the inbox holds ${stored.length} records of ${stream.appended} appended ones`)
    }
    for (const { stream, disk, stopped } of this.outputs) {
      if (stopped !== undefined || stream.holds(disk.entry(disk.last)!)) continue
      throw new Violation(`the last record of an outbox, ${disk.last}, is not in the inbox`)
    }
  }

  #standing(): string {
    return this.outputs
      .map(
        ({ name, stream, disk, link }) =>
          `${name}: ${link.state}, stored ${link.stored} of ${disk.last}; in the inbox ${stream.tip?.number ?? 0}`
      )
      .join(" | ")
  }
}

/** Most worlds keep the epochs of spec §18; in others the sender rotates as soon as it may. */
const epochLimitsOf = ({ epochPackets, epochLifetime }: Plan): Partial<EpochLimits> | undefined =>
  epochPackets === undefined && epochLifetime === undefined
    ? undefined
    : {
        ...(epochPackets === undefined ? {} : { packets: epochPackets }),
        ...(epochLifetime === undefined ? {} : { lifetimeMicros: epochLifetime })
      }

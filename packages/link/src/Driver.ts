/**
 * The one loop of a node, without the waiting: a turn reads what came, lets every machine act on it and on the time,
 * and sends what they have to say, all within bounds. `LinkNode` decides when turns happen; nothing here is an Effect
 * (spec §9, §10).
 */
import type { OpenSocket, ReceivedDatagrams } from "@pure-link/ports"
import {
  type Address,
  largestDatagram,
  type Micros,
  never,
  readUint32,
  sameAddress,
  type StreamName
} from "@pure-link/wire"

/** What the driver calls on a sender machine; `SenderLink` of room `sender` is one. */
export interface SenderMachine {
  /** Of its present run; a fresh one, which begins within `pollTrain` or by LOST in `handleDatagram`, has another. */
  readonly runPrefix: number
  handleDatagram(now: Micros, bytes: Uint8Array, start: number, end: number): boolean
  handleTimeout(now: Micros): void
  pollTrain(now: Micros, slab: Uint8Array, stride: number, lengths: Uint32Array, most: number): number
  deadline(): Micros
}

/** What the driver calls on a receiver machine; `Receiver` of room `receiver` is one. */
export interface ReceiverMachine {
  handleBatch(now: Micros, received: ReceivedDatagrams, from: number, to: number): unknown
  endBatch(now: Micros): void
  handleTimeout(now: Micros): void
  pollTransmit(now: Micros, out: Uint8Array, offset: number): number
  readonly target: Address
  deadline(): Micros
}

/** A machine with what stands around it. */
interface Driven {
  /** The machine's counters, for metrics. */
  readonly counters: Readonly<Record<string, number>>
  /** Takes from the machine what it asks for and reports. Called within a turn: resumes no fiber. */
  collect(now: Micros): void
  /** Resumes the fibers that wait for what was collected. Called after the turn. */
  settle(now: Micros): void
  /** The node closes: nothing more will come. */
  close(): void
}

export interface DrivenSender extends Driven {
  readonly machine: SenderMachine
  readonly name: StreamName
  /** Where its datagrams go; undefined while the peer's address is not known. */
  readonly destination: Address | undefined
}

export interface DrivenReceiver extends Driven {
  readonly machine: ReceiverMachine
}

/** What the driver counted since the node opened. */
export interface DriverCounters {
  turns: number
  datagramsReceived: number
  datagramsSent: number
  /** Answers that no output could open: late ones for outputs that are gone, or forged ones. */
  answersUnclaimed: number
  /** Data packets that came to a node without a receiver. */
  dataUnclaimed: number
  /** Datagrams too short to be packets. */
  runts: number
  /** Times the socket failed and was opened again. */
  socketFailures: number
}

/** Datagrams that one call asks the socket for, that wait in the slab, and that a turn receives and sends at most. */
const receiveBatch = 512
const slabSlots = 64
const receivedPerTurn = 1_024
const sentPerTurn = 1_024
/** Bytes from the flags to the end of the run prefix (spec §3.3): less is no packet. */
const claimLength = 9
/** Flags from here on are those of answers and LOST, below of data packets (spec §3.2). */
const firstAnswerFlags = 0x80
/** A machine that wants the time at once, turn after turn, without doing anything: it gets it a millisecond later. */
const stallPause: Micros = 1_000

export class Driver {
  readonly counters: DriverCounters = {
    turns: 0,
    datagramsReceived: 0,
    datagramsSent: 0,
    answersUnclaimed: 0,
    dataUnclaimed: 0,
    runts: 0,
    socketFailures: 0
  }
  /** The open socket; undefined while it is being opened again. */
  socket: OpenSocket | undefined
  receiver: DrivenReceiver | undefined
  readonly #senders: Array<DrivenSender> = []
  readonly #byRunPrefix = new Map<number, ReadonlyArray<DrivenSender>>()
  /** The run prefix under which each sender is found. */
  readonly #prefixes = new Map<DrivenSender, number>()
  readonly #slab = new Uint8Array(slabSlots * largestDatagram)
  readonly #lengths = new Uint32Array(slabSlots)
  #now: Micros = 0
  #received = 0
  #heardData = false
  #nextSender = 0
  #stalled = false

  addSender(sender: DrivenSender): void {
    this.#senders.push(sender)
    this.#enlist(sender)
  }

  removeSender(sender: DrivenSender): void {
    const index = this.#senders.indexOf(sender)
    if (index < 0) return
    this.#senders.splice(index, 1)
    this.#delist(sender)
  }

  #enlist(sender: DrivenSender): void {
    const prefix = sender.machine.runPrefix
    this.#prefixes.set(sender, prefix)
    this.#byRunPrefix.set(prefix, [...(this.#byRunPrefix.get(prefix) ?? []), sender])
  }

  #delist(sender: DrivenSender): void {
    const prefix = this.#prefixes.get(sender)!
    const rest = this.#byRunPrefix.get(prefix)!.filter((other) => other !== sender)
    if (rest.length > 0) this.#byRunPrefix.set(prefix, rest)
    else this.#byRunPrefix.delete(prefix)
    this.#prefixes.delete(sender)
  }

  /** Datagrams that the latest turn received. */
  get receivedInTurn(): number {
    return this.#received
  }

  get senders(): ReadonlyArray<DrivenSender> {
    return this.#senders
  }

  /** One turn. True: there is more to do at once. */
  turn(now: Micros): boolean {
    this.#now = now
    this.counters.turns++
    const receivedAll = this.#receive()
    this.#expire(now)
    for (const sender of this.#senders) sender.collect(now)
    this.receiver?.collect(now)
    const sent = this.#transmit(now)
    this.#stalled = this.#received === 0 && sent === 0 && this.deadlineOfMachines() <= now
    return !receivedAll || sent >= sentPerTurn
  }

  /** After a turn: resumes whoever waits for what it brought. They may call back into machines. */
  settle(now: Micros): void {
    for (const sender of this.#senders.slice()) sender.settle(now)
    this.receiver?.settle(now)
  }

  /** When the next turn is due without any datagram or call. */
  deadline(now: Micros): Micros {
    const deadline = this.deadlineOfMachines()
    return this.#stalled ? Math.max(deadline, now + stallPause) : deadline
  }

  close(): void {
    for (const sender of this.#senders.slice()) sender.close()
    this.receiver?.close()
  }

  /** Reads what waits, up to the bound of a turn; false when more may wait. */
  #receive(): boolean {
    const socket = this.socket
    this.#received = 0
    this.#heardData = false
    let more = socket !== undefined
    while (more && this.#received < receivedPerTurn) {
      const received = socket!.receive(receiveBatch)
      this.#received += received.count
      more = received.more
      this.#handOut(received)
    }
    this.counters.datagramsReceived += this.#received
    if (this.#heardData) this.receiver?.machine.endBatch(this.#now)
    return !more
  }

  /**
   * Hands datagrams to the machines that they may be for: by their kind, data packets in a row together, answers by run
   * prefix (spec §3.3, §3.4).
   */
  #handOut(received: ReceivedDatagrams): void {
    const { count, bytes, starts, ends } = received
    for (let i = 0; i < count;) {
      const start = starts[i]!
      if (ends[i]! - start < claimLength) {
        this.counters.runts++
        i++
      } else if (bytes[start]! < firstAnswerFlags) i = this.#handOutData(received, i)
      else {
        if (!this.#claimAnswer(bytes, start, ends[i]!)) this.counters.answersUnclaimed++
        i++
      }
    }
  }

  /** The data packets in a row from `from` on; returns the index after them. */
  #handOutData(received: ReceivedDatagrams, from: number): number {
    const { count, bytes, starts, ends } = received
    let to = from + 1
    while (to < count && bytes[starts[to]!]! < firstAnswerFlags && ends[to]! - starts[to]! >= claimLength) to++
    if (this.receiver) {
      this.#heardData = true
      this.receiver.machine.handleBatch(this.#now, received, from, to)
    } else this.counters.dataUnclaimed += to - from
    return to
  }

  #claimAnswer(bytes: Uint8Array, start: number, end: number): boolean {
    const candidates = this.#byRunPrefix.get(readUint32(bytes, start + 5))
    if (candidates === undefined) return false
    for (const sender of candidates) {
      if (!sender.machine.handleDatagram(this.#now, bytes, start, end)) continue
      this.#followRun(sender)
      return true
    }
    return false
  }

  /** LOST, and the first packet of a fresh run, give a sender another run prefix (spec §12.3). */
  #followRun(sender: DrivenSender): void {
    if (sender.machine.runPrefix === this.#prefixes.get(sender)) return
    this.#delist(sender)
    this.#enlist(sender)
  }

  #expire(now: Micros): void {
    for (const sender of this.#senders) {
      if (sender.destination !== undefined && sender.machine.deadline() <= now) sender.machine.handleTimeout(now)
    }
    if (this.receiver && this.receiver.machine.deadline() <= now) this.receiver.machine.handleTimeout(now)
  }

  /**
   * Lets everyone send in turn, a slab at a time, until nobody has more or the turn is full. Returns datagrams sent.
   */
  #transmit(now: Micros): number {
    let sent = this.#transmitReceiver(now)
    const count = this.#senders.length
    let idle = 0
    while (idle < count && sent < sentPerTurn) {
      const sender = this.#senders[this.#nextSender % count]!
      const wrote = this.#transmitSender(now, sender)
      this.#nextSender = (this.#nextSender + 1) % count
      sent += wrote
      idle = wrote === slabSlots ? 0 : idle + 1
    }
    return sent
  }

  #transmitSender(now: Micros, sender: DrivenSender): number {
    const destination = sender.destination
    if (destination === undefined) return 0
    const count = sender.machine.pollTrain(now, this.#slab, largestDatagram, this.#lengths, slabSlots)
    if (count > 0) this.#followRun(sender)
    this.#send(count, destination)
    return count
  }

  /** Answers go to many places: consecutive ones to one place leave together. */
  #transmitReceiver(now: Micros): number {
    const machine = this.receiver?.machine
    if (machine === undefined) return 0
    let sent = 0
    let count = 0
    let destination: Address | undefined
    while (sent + count < sentPerTurn) {
      const length = machine.pollTransmit(now, this.#slab, count * largestDatagram)
      if (length === 0) break
      if (destination !== undefined && !sameAddress(destination, machine.target)) {
        this.#send(count, destination)
        this.#slab.copyWithin(0, count * largestDatagram, count * largestDatagram + length)
        sent += count
        count = 0
      }
      destination = machine.target
      this.#lengths[count++] = length
      if (count === slabSlots) {
        this.#send(count, destination)
        sent += count
        count = 0
        destination = undefined
      }
    }
    if (destination !== undefined) this.#send(count, destination)
    return sent + count
  }

  /** Without a socket the datagrams are lost, as on any broken path; the machines' timers send them again. */
  #send(count: number, destination: Address): void {
    if (count === 0 || this.socket === undefined) return
    this.socket.send(this.#slab, largestDatagram, this.#lengths, count, destination)
    this.counters.datagramsSent += count
  }

  deadlineOfMachines(): Micros {
    let deadline = this.receiver?.machine.deadline() ?? never
    for (const sender of this.#senders) {
      if (sender.destination !== undefined) deadline = Math.min(deadline, sender.machine.deadline())
    }
    return deadline
  }
}

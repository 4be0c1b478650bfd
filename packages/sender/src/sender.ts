import {
  type CryptoSuite,
  type Entropy,
  type EpochLimits,
  epochLimits,
  keyIdOf,
  type KeyPair,
  type Pair,
  staticSecret,
  TokenBucket
} from "@pure-link/keys"
import { Policies, type PolicyMakers, type RecoveryCounters } from "@pure-link/recovery"
import { silentTrace, type Trace } from "@pure-link/trace"
import {
  type Bytes,
  endOf,
  type Epoch,
  type Id64,
  Kind,
  type Life,
  type Micros,
  never,
  PacketHeader,
  type RecordBatch,
  type RecordNumber,
  recordNumbersOfRun,
  largestDatagram,
  smallestDatagram,
  type StreamName,
  tagLength
} from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import { Answer } from "./answer.ts"
import type { SenderCounters } from "./counters.ts"
import type { SenderEvent } from "./events.ts"
import { LostNotice } from "./lostNotice.ts"
import { mostQueuedRecords } from "./recordQueue.ts"
import { SenderState } from "./senderState.ts"
import { Settlement } from "./settlement.ts"
import { Train } from "./train.ts"
import { Transmitter } from "./transmitter.ts"

/**
 * The sender of one stream (spec §9): records and answers go in, sealed packets, events and the next deadline come
 * out. What is known is in `SenderState`, what answers and timeouts do to it in `Settlement`, and which packet goes
 * next in `Transmitter`.
 */

export interface SenderOptions {
  readonly suite: CryptoSuite
  readonly entropy: Entropy
  readonly identity: KeyPair
  readonly peerPublicKey: Uint8Array
  /** E0 of the pair, if the caller has it already (spec §6.3). */
  readonly staticSecret?: Uint8Array
  readonly stream: StreamName & { readonly shape: Id64 }
  /** The outbox as it is at the start. */
  readonly outbox: {
    readonly generation: Id64
    readonly lowestHeld: RecordNumber
    readonly last: RecordNumber
    readonly lives: ReadonlyArray<Life>
  }
  /** How losses, congestion, pacing and the path's MTU are dealt with; `Policies.defaults` if not given. */
  readonly policies?: PolicyMakers
  /** What the path is taken to carry at first; 1,200 B if not given. */
  readonly datagramSize?: Bytes
  /** Bytes of records that are read ahead from the outbox (spec §18). */
  readonly queueBytes?: Bytes
  /** Flights that are remembered: a power of two, 256 to 16,384, the default. The window takes half of them at most. */
  readonly flights?: number
  /** How long an epoch serves (spec §7.6). */
  readonly epochLimits?: Partial<EpochLimits>
  readonly trace?: Trace
  /** Record numbers that one run may use; a test may lower the wire's limit (spec §4.3). */
  readonly recordNumbersOfRun?: number
  /** Deliberate faults, for tests of the tests only. */
  readonly faults?: SenderFaults
}

/** Each breaks one rule at the line that keeps it, so that a test of the whole can prove that it would notice. */
export interface SenderFaults {
  /** Records go out whatever credit the receiver gave (breaks spec §9.3). */
  readonly ignoreCredit?: boolean
  /** A LOST starts a fresh run whatever packet it repeats (breaks spec §12.3). */
  readonly acceptAnyLost?: boolean
  /** Records go under epoch 0 also after the first answer, and without bound (breaks spec §7.1). */
  readonly recordsInEpochZero?: boolean
  /** Window, round trip and path MTU stay when the path changes (breaks spec §13.3). */
  readonly windowKeptOnMove?: boolean
}

/** What to read from the outbox: records from a number on, at least one, as long as they fit both bounds. */
export interface WantedRecords {
  readonly from: RecordNumber
  readonly records: number
  readonly bytes: Bytes
}

/** How a run stands at present. */
export interface SenderStatus {
  readonly epoch: Epoch
  readonly smoothedRtt: Micros
  readonly window: Bytes
  /** The largest datagram that the path is known to carry. */
  readonly datagramSize: Bytes
  readonly inFlight: Bytes
}

const defaultQueueBytes: Bytes = 32 * 1024 * 1024
/** One request to the outbox is for at most this much … */
const mostRequestedBytes: Bytes = 4 * 1024 * 1024
const mostRequestedRecords = 16_384
/** … and is not made before this part of the queue is free, so that a drain makes few of them. */
const requestedPart = 8
const mostFlights = 16_384
const leastFlights = 256
/** Whether an answer of an unknown reply run, or a LOST, is authentic takes one derivation and one opening. */
const unknownReplyRunsPerSecond = 4_096

export class SenderLink {
  readonly keyId: number
  readonly #queueBytes: Bytes
  readonly #state: SenderState
  readonly #settlement: Settlement
  readonly #transmitter: Transmitter
  readonly #train = new Train()
  /** The length of a train of one. */
  readonly #length = new Uint32Array(1)
  readonly #header = new PacketHeader()
  readonly #answer = new Answer()
  readonly #lost: LostNotice
  readonly #strangers = new TokenBucket(unknownReplyRunsPerSecond, unknownReplyRunsPerSecond)
  /** A request to the outbox is under way. */
  #requested = false

  constructor(options: SenderOptions) {
    const { suite, entropy, identity, peerPublicKey, stream, outbox } = options
    const pair: Pair = { sender: identity.publicKey, receiver: peerPublicKey }
    const secret = options.staticSecret ?? staticSecret(suite, identity.privateKey, peerPublicKey, pair)
    if (secret === undefined) throw new Error("the peer's public key is not one that X25519 accepts (spec §6.1)")
    const size = options.datagramSize ?? smallestDatagram
    if (!(size >= smallestDatagram && size <= largestDatagram)) {
      throw new RangeError(`datagrams of ${size} B: ${smallestDatagram} to ${largestDatagram} B are possible`)
    }
    const flights = options.flights ?? mostFlights
    if (!(flights >= leastFlights && flights <= mostFlights && Number.isInteger(Math.log2(flights)))) {
      throw new RangeError(`${flights} flights: a power of two from ${leastFlights} to ${mostFlights} is possible`)
    }
    this.keyId = keyIdOf(suite, identity.publicKey)
    this.#queueBytes = options.queueBytes ?? defaultQueueBytes
    this.#state = new SenderState({
      suite,
      entropy,
      pair,
      staticSecret: secret,
      stream,
      outbox,
      generation: outbox.generation,
      flights,
      epochLimits: epochLimits(options.epochLimits),
      policies: options.policies ?? Policies.defaults,
      datagramSize: size,
      trace: options.trace ?? silentTrace,
      recordNumbersOfRun: options.recordNumbersOfRun ?? recordNumbersOfRun,
      ignoreCredit: options.faults?.ignoreCredit ?? false,
      acceptAnyLost: options.faults?.acceptAnyLost ?? false,
      recordsInEpochZero: options.faults?.recordsInEpochZero ?? false,
      windowKeptOnMove: options.faults?.windowKeptOnMove ?? false
    })
    if (options.staticSecret === undefined) this.#state.counters.keyAgreements++
    this.#lost = new LostNotice(this.#state.options)
    this.#settlement = new Settlement(this.#state, this.#header, this.#answer)
    this.#transmitter = new Transmitter(this.#state, this.#train, this.keyId)
  }

  /** The present run; another one follows when its numbers are nearly used up (spec §4.3), or when it is lost (§12.3). */
  get run(): Id64 {
    return this.#state.run.id
  }

  get runPrefix(): number {
    return this.#state.run.prefix
  }

  get counters(): Readonly<SenderCounters> {
    return this.#state.counters
  }

  /** What happened to flights and window, over all runs. */
  get recoveryCounters(): Readonly<RecoveryCounters> {
    return this.#state.run.recovery.counters
  }

  /** Everything up to this record is stored. */
  get stored(): RecordNumber {
    return this.#state.backlog.queue.first - 1
  }

  /** Records wait that may go as soon as window and pacer allow: more of them change nothing at once. */
  get hasWaiting(): boolean {
    return this.#state.hasSendable
  }

  get state(): "sending" | "refused" | "forked" {
    return this.#state.forked ? "forked" : this.#state.refusal.active ? "refused" : "sending"
  }

  /** How the run stands, to show. */
  get status(): SenderStatus {
    const { epochs, recovery } = this.#state.run
    return {
      epoch: epochs.epoch,
      smoothedRtt: recovery.rtt.smoothed,
      window: recovery.controller.window,
      datagramSize: recovery.datagramSize,
      inFlight: recovery.inFlightBytes
    }
  }

  pollEvent(): SenderEvent | undefined {
    return this.#state.pollEvent()
  }

  /** The outbox grew to `last`; `lives` are all that it lists. */
  handleAppended(_now: Micros, last: RecordNumber, lives: ReadonlyArray<Life>): void {
    assert(last >= this.#state.backlog.last, "an outbox only grows")
    this.#state.backlog.last = last
    this.#state.lives = lives
  }

  /** What to read from the outbox next, when there is room for it; one request at a time. */
  wanted(): WantedRecords | undefined {
    const {
      backlog: { queue, last },
      forked
    } = this.#state
    if (this.#requested || forked || queue.end > last) return undefined
    const bytes = this.#queueBytes - queue.bytes
    const records = mostQueuedRecords - queue.records
    if (bytes < this.#queueBytes / requestedPart || records < mostQueuedRecords / requestedPart) return undefined
    this.#requested = true
    return {
      from: queue.end,
      records: Math.min(records, mostRequestedRecords),
      bytes: Math.min(bytes, mostRequestedBytes)
    }
  }

  /** The records that were wanted, from the wanted number on; an empty batch gives the request up. */
  supply(_now: Micros, batch: RecordBatch): void {
    const { backlog } = this.#state
    assert(this.#requested, "nobody wanted records")
    this.#requested = false
    if (batch.sizes.length === 0) return
    assert(endOf(batch) - 1 <= backlog.last, "records that the outbox did not announce")
    backlog.queue.append(batch)
    this.#state.reachChanged()
  }

  /**
   * A datagram that may be an answer or LOST, in bytes[start, end), opened in place. True: it was one for this link, whose
   * run is another one afterwards if it was a LOST that counts.
   */
  handleDatagram(now: Micros, bytes: Uint8Array, start: number, end: number): boolean {
    const header = this.#header
    const { run, trace, counters } = this.#state
    if (!header.read(bytes, start, end) || header.keyId !== this.keyId || header.runPrefix !== run.prefix) return false
    if (header.kind === Kind.lost) return this.#handleLost(now, bytes, start, end)
    if (header.kind !== Kind.answer) return false
    const epoch = this.#open(now, bytes, start, end)
    if (epoch === undefined) return false
    counters.answers++
    if (trace.packets) trace.emit({ _tag: "PacketOpened", at: now, number: header.number, bytes: end - start, epoch })
    if (this.#state.forked) return true
    const isWellFormed = this.#answer.read(bytes, start + header.length, end - tagLength)
    if (!isWellFormed) this.#settlement.countViolation(now, "malformed answer")
    else if (this.#answer.reported >= run.recovery.nextNumber) this.#settlement.countViolation(now, "number never sent")
    else this.#settlement.handleAnswer(now, epoch)
    return true
  }

  /** The driver found another address for the peer: the path is a new one (spec §13.3), and is tried at once. */
  handlePathChanged(now: Micros): void {
    const state = this.#state
    if (state.forked) return
    state.changePath(now)
    if (!state.refusal.active && state.run.recovery.inFlightCount > 0) state.probeDue = state.backlog.hasUnstored
  }

  /** A deadline came, or any other time: what is due takes effect, and `pollTrain` may have more to say. */
  handleTimeout(now: Micros): void {
    const { silence, refusal, run, forked } = this.#state
    if (forked) return
    run.epochs.expire(now)
    if (now >= silence.reportAt) {
      silence.reported = true
      this.#state.tell({ _tag: "Silent", sinceMicros: silence.since })
    }
    if (!refusal.active && run.recovery.deadline() <= now) this.#settlement.handleTimeout(now)
  }

  /** When to call `handleTimeout` and `pollTrain` again, if nothing else happens before. */
  deadline(): Micros {
    const state = this.#state
    if (state.forked) return never
    const { silence, refusal, run, backlog } = state
    const always = Math.min(silence.reportAt, run.epochs.expiresAt)
    if (refusal.active) return Math.min(always, backlog.queue.records > 0 ? refusal.tryAt : never)
    const questionAt = state.waitsForPeer ? state.questionAt : never
    return Math.min(always, run.recovery.deadline(), this.#transmitter.wakeAt, questionAt)
  }

  /**
   * Writes sealed datagrams, at most `most`, at slab[0], slab[stride] and so on, and their lengths; returns how many. Fewer
   * than `most`: nothing more may or need go now, unless `deadline` says so, because a probe of the path goes alone.
   */
  pollTrain(now: Micros, slab: Uint8Array, stride: Bytes, lengths: Uint32Array, most: number): number {
    this.#train.begin(slab, 0, stride, lengths, most)
    while (this.#train.room > 0 && (this.#transmitter.transmitPlain(now) > 0 || this.#transmit(now))) {}
    this.#train.seal(this.#state.run.flights)
    return this.#train.count
  }

  /** A train of one at out[offset…]: returns its length, 0 when nothing may or need go now. */
  pollTransmit(now: Micros, out: Uint8Array, offset: number): Bytes {
    this.#train.begin(out, offset, 0, this.#length, 1)
    if (!this.#transmit(now)) return 0
    this.#train.seal(this.#state.run.flights)
    return this.#length[0]!
  }

  /** Adds the next datagram to the train; false when nothing may or need go into it now. */
  #transmit(now: Micros): boolean {
    const state = this.#state
    const transmitter = this.#transmitter
    transmitter.forgetWakes()
    if (state.forked) return false
    if (!this.#renewRun(now)) return transmitter.comeBackAt(now)
    if (state.refusal.active) return transmitter.isTryDue(now) && transmitter.transmitTry(now) > 0
    if (state.run.recovery.ringIsFull()) {
      state.run.recovery.setLimited(now, false)
      return transmitter.waitForRoom(now)
    }
    if (state.probeDue) return transmitter.transmitProbe(now) > 0
    const length = state.run.recovery.isPathProbeUrgent
      ? transmitter.transmitWaiting(now) || transmitter.transmitPathProbe(now)
      : transmitter.transmitPathProbe(now) || transmitter.transmitWaiting(now)
    if (length > 0) return true
    if (state.packetDue || state.challenges.due !== undefined) return transmitter.transmitControl(now) > 0
    return state.waitsForPeer && now >= state.questionAt && transmitter.transmitQuestion(now) > 0
  }

  /** A fresh run or another key where the present one has done all that it may; false: after the train that is under way. */
  #renewRun(now: Micros): boolean {
    const state = this.#state
    if (!state.isRunUsedUp && !state.isKeySpent) return true
    if (this.#train.count > 0) return false
    if (state.isRunUsedUp) state.startFreshRun(now, true)
    state.renewSpentKey(now)
    return true
  }

  /** Opens the answer whose header was read and returns its epoch; `undefined` when it is not one for this run. */
  #open(now: Micros, bytes: Uint8Array, start: number, end: number): Epoch | undefined {
    const { counters, run } = this.#state
    const { replyRuns, epochs } = run
    const { replyRun, number, epochBits, length } = this.#header
    if (!replyRuns.accepts(replyRun, number)) {
      counters.replayed++
      return this.#drop(now, end - start, "replayed")
    }
    const known = replyRuns.knows(replyRun)
    if (!known && !this.#strangers.take(now)) {
      counters.limited++
      return this.#drop(now, end - start, "limit")
    }
    for (const key of epochs.answerKeys(now, epochBits, replyRun)) {
      if (!key.open(bytes, start, start + length, end, number)) continue
      replyRuns.mark(replyRun, number)
      const epoch = epochs.epochOfAnswerKey(key)
      if (epochs.handleOpened(now, epoch)) {
        counters.epochsConfirmed++
        run.confirmed = true
      }
      return epoch
    }
    epochs.handleForged(epochBits)
    if (!known) epochs.forgetReplyRun(replyRun)
    counters.unopened++
    return this.#drop(now, end - start, "not authentic")
  }

  /** A LOST for the present run. True: it was authentic. */
  #handleLost(now: Micros, bytes: Uint8Array, start: number, end: number): boolean {
    const state = this.#state
    const { run, counters } = state
    if (state.forked || !this.#lost.isPossible(run, start, end)) return this.#ignoreLost()
    if (!this.#strangers.take(now)) {
      counters.limited++
      this.#drop(now, end - start, "limit")
      return this.#ignoreLost()
    }
    if (!this.#lost.open(bytes, start, end, this.#header)) {
      this.#drop(now, end - start, "not authentic")
      return this.#ignoreLost()
    }
    const how = this.#lost.isOfFlight(run) ? state.lostStarts.take(now, run.confirmed) : "not now"
    if (how === "not now") return !this.#ignoreLost()
    state.loseRun(now, how === "with records")
    return true
  }

  #ignoreLost(): false {
    this.#state.counters.lostIgnored++
    return false
  }

  #drop(now: Micros, bytes: Bytes, reason: "replayed" | "limit" | "not authentic"): undefined {
    const { trace } = this.#state
    if (trace.packets) trace.emit({ _tag: "PacketDropped", at: now, bytes, reason })
  }
}

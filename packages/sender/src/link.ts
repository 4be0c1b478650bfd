import { type CryptoSuite, type Entropy, keyIdOf, type KeyPair, type Pair, staticSecret } from "@pure-link/keys"
import type { CongestionController, ControllerOptions } from "@pure-link/recovery"
import { silentTrace, type Trace } from "@pure-link/trace"
import {
  type Bytes,
  endOf,
  type Epoch,
  type Id64,
  Kind,
  type Life,
  lifeOf,
  type Micros,
  never,
  PacketHeader,
  type PacketNumber,
  type RecordBatch,
  type RecordNumber,
  recordNumbersOfRun,
  smallestDatagram,
  type StreamName,
  tagLength
} from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import { Answer } from "./answer.ts"
import { Asking } from "./asking.ts"
import { Backlog } from "./backlog.ts"
import type { SenderEvent } from "./events.ts"
import { Mark } from "./flightContents.ts"
import { PacketBuilder } from "./packetBuilder.ts"
import { mostQueuedRecords, type Position } from "./recordQueue.ts"
import { Refusal } from "./refusal.ts"
import { type RunOptions, SenderRun } from "./senderRun.ts"
import { Silence } from "./silence.ts"
import { TokenBucket } from "./tokenBucket.ts"

/**
 * The sender of one stream (spec §9): records and answers go in, sealed packets, events and the next deadline come out. It is the
 * one parent that applies what recovery, epochs, reply runs, credit and refusal say.
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
  readonly makeController: (options: ControllerOptions) => CongestionController
  readonly datagramSize?: Bytes
  /** Bytes of records that are read ahead from the outbox (spec §18). */
  readonly queueBytes?: Bytes
  readonly trace?: Trace
  /** Record numbers that one run may use; a test may lower the wire's limit (spec §4.3). */
  readonly recordNumbersOfRun?: number
}

export interface SenderCounters {
  packetsSent: number
  recordPacketsSent: number
  bytesSent: number
  recordBytesSent: number
  probesSent: number
  questionsSent: number
  triesSent: number
  answers: number
  /** Answers of a reply run that is not, or not yet, current. */
  ignoredAnswers: number
  /** Datagrams for this run that did not open, were replayed, or came while strangers used up their tokens. */
  unopened: number
  replayed: number
  limited: number
  violations: number
  replyRunSwitches: number
  silentRecoveries: number
  refusals: number
}

const defaultQueueBytes: Bytes = 32 * 1024 * 1024
/** One request to the outbox is for at most this much … */
const mostRequestedBytes: Bytes = 4 * 1024 * 1024
const mostRequestedRecords = 16_384
/** … and is not made before this part of the queue is free, so that a drain makes few of them. */
const requestedPart = 8
/** After this much idle time the long header and STREAM return (spec §3.7). */
const idleTime: Micros = 10_000_000
/** Packets in flight beyond what was reported, from which on short numbers are not relied on (spec §17). */
const shortNumberReach = 32_768
const unknownReplyRunsPerSecond = 256
const unknownReplyRunsAtOnce = 64

export class SenderLink {
  readonly keyId: number
  readonly counters: SenderCounters = {
    packetsSent: 0,
    recordPacketsSent: 0,
    bytesSent: 0,
    recordBytesSent: 0,
    probesSent: 0,
    questionsSent: 0,
    triesSent: 0,
    answers: 0,
    ignoredAnswers: 0,
    unopened: 0,
    replayed: 0,
    limited: 0,
    violations: 0,
    replyRunSwitches: 0,
    silentRecoveries: 0,
    refusals: 0
  }

  readonly #options: RunOptions
  readonly #queueBytes: Bytes
  readonly #numbersOfRun: number
  readonly #trace: Trace
  readonly #backlog: Backlog
  readonly #builder: PacketBuilder
  readonly #refusal = new Refusal()
  readonly #asking = new Asking()
  readonly #silence = new Silence()
  readonly #strangers = new TokenBucket(unknownReplyRunsPerSecond, unknownReplyRunsAtOnce)
  readonly #header = new PacketHeader()
  readonly #answer = new Answer()
  readonly #events: Array<SenderEvent> = []
  #run: SenderRun
  #lives: ReadonlyArray<Life>
  #forked = false
  /** A request to the outbox is under way. */
  #requested = false
  /** Records were SEEN although nothing told the sender to wait: they are held until something changes (spec §9.4, §9.6). */
  #held = false
  /** The largest number of a flight that led to holding. */
  #heldBy: PacketNumber = -1
  /** A SEEN flight before this number was judged under circumstances that have changed since. */
  #changedAt: PacketNumber = 0
  /** A packet must go whatever waits: the first under a new epoch (spec §7.4), or the first of a run that only offers. */
  #packetDue = false
  #probeDue = false
  #response: Id64 | undefined
  #lastSentAt: Micros = -Infinity
  #pacedUntil: Micros = never
  /** The n of an inbox that lacks removed records; −1 while it does not. */
  #behind: RecordNumber = -1
  /** The position up to which records may be sent; −1 when it must be found anew. */
  #reachPosition: Position = -1

  constructor(options: SenderOptions) {
    const { suite, entropy, identity, peerPublicKey, stream, outbox, makeController } = options
    const pair: Pair = { sender: identity.publicKey, receiver: peerPublicKey }
    const secret = options.staticSecret ?? staticSecret(suite, identity.privateKey, peerPublicKey, pair)
    if (secret === undefined) throw new Error("the peer's public key is not one that X25519 accepts (spec §6.1)")
    const datagramSize = options.datagramSize ?? smallestDatagram
    this.#trace = options.trace ?? silentTrace
    this.#options = {
      suite,
      entropy,
      pair,
      staticSecret: secret,
      stream,
      generation: outbox.generation,
      makeController,
      datagramSize,
      trace: this.#trace
    }
    this.#queueBytes = options.queueBytes ?? defaultQueueBytes
    this.#numbersOfRun = options.recordNumbersOfRun ?? recordNumbersOfRun
    this.keyId = keyIdOf(suite, identity.publicKey)
    this.#builder = new PacketBuilder(this.keyId)
    this.#backlog = new Backlog(outbox.lowestHeld, outbox.last)
    this.#lives = outbox.lives
    this.#run = this.#newRun(false)
  }

  /** The present run; another one follows when its record numbers are nearly used up (spec §4.3). */
  get run(): Id64 {
    return this.#run.id
  }

  get runPrefix(): number {
    return this.#run.prefix
  }

  /** Everything up to this record is stored. */
  get stored(): RecordNumber {
    return this.#backlog.queue.first - 1
  }

  get state(): "sending" | "refused" | "forked" {
    return this.#forked ? "forked" : this.#refusal.active ? "refused" : "sending"
  }

  /** The present epoch, round trip and window, to show. */
  get status(): { readonly epoch: Epoch; readonly smoothedRtt: Micros; readonly window: Bytes; readonly inFlight: Bytes } {
    const { epochs, recovery } = this.#run
    return {
      epoch: epochs.epoch,
      smoothedRtt: recovery.rtt.smoothed,
      window: recovery.controller.window,
      inFlight: recovery.inFlightBytes
    }
  }

  pollEvent(): SenderEvent | undefined {
    return this.#events.shift()
  }

  /** The outbox grew to `last`; `lives` are all that it lists. */
  handleAppended(_now: Micros, last: RecordNumber, lives: ReadonlyArray<Life>): void {
    assert(last >= this.#backlog.last, "an outbox only grows")
    this.#backlog.last = last
    this.#lives = lives
    this.#listLives()
  }

  /** What to read from the outbox next, when there is room for it; one request at a time. */
  wanted(): { readonly from: RecordNumber; readonly records: number; readonly bytes: Bytes } | undefined {
    const { queue, last } = this.#backlog
    if (this.#requested || this.#forked || queue.end > last) return undefined
    const bytes = this.#queueBytes - queue.bytes
    const records = mostQueuedRecords - queue.records
    if (bytes < this.#queueBytes / requestedPart || records < mostQueuedRecords / requestedPart) return undefined
    this.#requested = true
    return {
      from: queue.end,
      records: Math.min(records, mostRequestedRecords),
      bytes: Math.min(Math.max(1, bytes), mostRequestedBytes)
    }
  }

  /** The records that were wanted, from the wanted number on; an empty batch gives the request up. */
  supply(_now: Micros, batch: RecordBatch): void {
    assert(this.#requested, "nobody wanted records")
    this.#requested = false
    assert(batch.sizes.length === 0 || endOf(batch) - 1 <= this.#backlog.last, "records that the outbox did not announce")
    if (batch.sizes.length > 0) this.#backlog.queue.append(batch)
    this.#reachPosition = -1
  }

  /** A datagram that may be an answer, in bytes[start, end), opened in place. True: it was one for this link. */
  handleDatagram(now: Micros, bytes: Uint8Array, start: number, end: number): boolean {
    const header = this.#header
    if (!header.read(bytes, start, end) || header.kind !== Kind.answer) return false
    if (header.keyId !== this.keyId || header.runPrefix !== this.#run.prefix) return false
    const epoch = this.#open(now, bytes, start, end)
    if (epoch === undefined) return false
    this.counters.answers++
    if (this.#trace.packets) {
      this.#trace.emit({ _tag: "PacketOpened", at: now, number: header.number, bytes: end - start, epoch })
    }
    if (this.#forked) return true
    if (!this.#answer.read(bytes, start + header.length, end - tagLength)) this.#countViolation(now, "malformed answer")
    else if (this.#answer.reported >= this.#run.recovery.nextNumber) this.#countViolation(now, "number never sent")
    else this.#handleAnswer(now, epoch)
    return true
  }

  /** A deadline came, or any other time: what is due takes effect, and `pollTransmit` may have more to say. */
  handleTimeout(now: Micros): void {
    if (this.#forked) return
    if (now >= this.#silence.reportAt) {
      this.#silence.reported = true
      this.#events.push({ _tag: "Silent", sinceMicros: this.#silence.since })
    }
    if (!this.#refusal.active && this.#run.recovery.deadline() <= now) this.#handleRecoveryTimeout(now)
  }

  /** When to call `handleTimeout` and `pollTransmit` again, if nothing else happens before. */
  deadline(): Micros {
    if (this.#forked) return never
    const { recovery } = this.#run
    if (this.#refusal.active) return Math.min(this.#silence.reportAt, this.#backlog.queue.records > 0 ? this.#refusal.tryAt : never)
    const questionAt = this.#waitsForPeer ? this.#questionAt : never
    return Math.min(this.#silence.reportAt, recovery.deadline(), this.#pacedUntil, questionAt)
  }

  /** Writes the next sealed datagram at out[offset…] and returns its length; 0 when nothing may or need go now. */
  pollTransmit(now: Micros, out: Uint8Array, offset: number): Bytes {
    this.#pacedUntil = never
    if (this.#forked) return 0
    if (this.#isUsedUp) this.#startFreshRun()
    if (this.#refusal.active) return this.#isTryDue(now) ? this.#transmitTry(now, out, offset) : 0
    if (this.#run.recovery.ringIsFull()) return 0
    if (this.#probeDue) return this.#transmitProbe(now, out, offset)
    const length = this.#transmitWaiting(now, out, offset)
    if (length > 0) return length
    if (this.#packetDue || this.#response !== undefined) return this.#transmitControl(now, out, offset)
    if (this.#waitsForPeer && now >= this.#questionAt) return this.#transmitQuestion(now, out, offset)
    return 0
  }

  // Answers

  /** Opens the answer whose header was read and returns its epoch; `undefined` when it is not one for this run. */
  #open(now: Micros, bytes: Uint8Array, start: number, end: number): Epoch | undefined {
    const { replyRuns, epochs } = this.#run
    const { replyRun, number, epochBits, length } = this.#header
    if (!replyRuns.accepts(replyRun, number)) {
      this.counters.replayed++
      return this.#drop(now, end - start, "replayed")
    }
    const known = replyRuns.knows(replyRun)
    if (!known && !this.#strangers.take(now)) {
      this.counters.limited++
      return this.#drop(now, end - start, "limit")
    }
    for (const key of epochs.answerKeys(now, epochBits, replyRun)) {
      if (!key.open(bytes, start, start + length, end, number)) continue
      replyRuns.mark(replyRun, number)
      return epochs.epochOfAnswerKey(key)
    }
    if (!known) epochs.forgetReplyRun(replyRun)
    this.counters.unopened++
    return this.#drop(now, end - start, "not authentic")
  }

  #drop(now: Micros, bytes: Bytes, reason: "replayed" | "limit" | "not authentic"): undefined {
    if (this.#trace.packets) this.#trace.emit({ _tag: "PacketDropped", at: now, bytes, reason })
  }

  #countViolation(now: Micros, detail: string): void {
    this.counters.violations++
    this.#trace.emit({ _tag: "Violation", at: now, detail })
  }

  /** Applies an answer that was opened under `epoch` and decoded as a whole (spec §9.4). */
  #handleAnswer(now: Micros, epoch: Epoch): void {
    const { recovery, replyRuns, epochs } = this.#run
    const answer = this.#answer
    this.#run.answered = true
    const verdict = replyRuns.judge(now, this.#header.replyRun, answer.reported, recovery.rtt.smoothed)
    if (verdict === "ignored") {
      this.counters.ignoredAnswers++
      recovery.handleAnswered(now)
      this.#endSilence(now)
      return
    }
    if (verdict === "switched") this.#switchReplyRun(now)
    const isNewest = this.#header.number > replyRuns.largestAnswer
    if (isNewest) replyRuns.largestAnswer = this.#header.number
    if (isNewest && answer.hasStored && this.#findFork()) return
    recovery.beginAnswer(now)
    answer.acknowledge(recovery)
    recovery.endAnswer(now, answer.reported, answer.delay)
    if (epoch > 0 && epoch === epochs.epoch) this.#run.inSilentRecovery = false
    if (answer.accept !== undefined) this.#handleAccept(now)
    if (answer.challenge !== undefined) this.#response = answer.challenge
    if (isNewest && answer.lacksName) this.#repeatStream()
    const advanced = isNewest && answer.hasStored && this.#handleStored(now)
    const tryAcknowledged = this.#settle()
    if (isNewest) this.#handleRefused(now, advanced || tryAcknowledged)
    this.#endSilence(now)
  }

  /** What the former reply run acknowledged may be gone: everything unstored goes again, with STREAM (spec §9.5). */
  #switchReplyRun(now: Micros): void {
    const { recovery, replyRuns, stream } = this.#run
    this.counters.replyRunSwitches++
    this.#run.n = -1
    this.#run.resendFrom = recovery.nextNumber
    this.#backlog.sendEverythingAgain()
    stream.forgetAnswers()
    this.#circumstancesChanged()
    this.#trace.emit({ _tag: "ReplyRunSwitched", at: now, replyRun: this.#header.replyRun })
    if (replyRuns.isFlapping(now)) this.#events.push({ _tag: "ReplyRunsFlapping" })
  }

  /** Spec §8.5: STORED of records that this outbox does not have, or of another life than its own, stops the link for good. */
  #findFork(): boolean {
    const { n, life } = this.#answer.stored
    const { last, queue } = this.#backlog
    if (n === 0 || n < queue.first - 1) return false
    const own = lifeOf(this.#lives, n)
    if (n <= last && own?.life === life) return false
    const detail = n > last
      ? `the inbox has stored ${n} records of this outbox, which ends at ${last}`
      : `record ${n} is of life ${own?.life.toString(16) ?? "none"} here and of life ${life.toString(16)} in the inbox`
    this.#forked = true
    this.#events.push({ _tag: "Forked", n, detail })
    return true
  }

  /** The receiver accepted an OFFER: from now on everything goes under the new epoch (spec §7.4, §9.8). */
  #handleAccept(now: Micros): void {
    const { epochs, recovery } = this.#run
    const { epoch, echo, publicKey } = this.#answer.accept!
    if (!epochs.handleAccept(now, epoch, echo, publicKey)) return
    if (this.#run.inSilentRecovery) {
      this.#run.inSilentRecovery = false
      this.#run.resendFrom = recovery.nextNumber
      this.#backlog.sendUnacknowledgedAgain()
    }
    this.#packetDue = true
    this.#circumstancesChanged()
    this.#asking.reset()
    this.#events.push({ _tag: "EpochAdvanced", epoch: epochs.epoch })
    this.#trace.emit({ _tag: "EpochAdvanced", at: now, epoch: epochs.epoch })
  }

  /** NAME: the receiver has lost the stream's name (spec §8.1). */
  #repeatStream(): void {
    const { stream, recovery } = this.#run
    if (!stream.answered) return
    stream.unanswer(recovery.nextNumber)
    this.#circumstancesChanged()
  }

  /** n and credit of the newest answer. True: n advanced (spec §9.3, §9.4). */
  #handleStored(now: Micros): boolean {
    const { credit } = this.#run
    const { n, creditRecords, creditBytes } = this.#answer.stored
    const { queue } = this.#backlog
    if (n < this.#run.n) {
      this.#countViolation(now, "n fell within a reply run")
      return false
    }
    this.#run.n = n
    this.#reportBehind(n)
    const advanced = n >= queue.first
    if (advanced) {
      this.#backlog.dropThrough(n)
      this.#listLives()
      if (this.#events.at(-1)?._tag === "Stored") this.#events.pop()
      this.#events.push({ _tag: "Stored", n, at: now })
      this.#trace.emit({ _tag: "Stored", at: now, n, creditRecords, creditBytes })
    }
    const opened = credit.set(n, creditRecords, creditBytes, queue)
    this.#reachPosition = -1
    if (advanced || opened) {
      this.#circumstancesChanged()
      this.#asking.reset()
    }
    return advanced
  }

  /** Spec §8.7: the inbox is behind what this link knows to be stored and removed. */
  #reportBehind(n: RecordNumber): void {
    const isBehind = n < this.#backlog.queue.first - 1
    if (isBehind && this.#behind !== n) this.#events.push({ _tag: "InboxBehind", n })
    this.#behind = isBehind ? n : -1
  }

  /** Turns what recovery decided into spans. True: the number of a refused sender's try was ACKed. */
  #settle(): boolean {
    const { outcome } = this.#run.recovery
    let tryAcknowledged = false
    for (let i = 0; i < outcome.acked.length; i++) tryAcknowledged = this.#settleAcked(outcome.acked.values[i]!) || tryAcknowledged
    for (let i = 0; i < outcome.late.length; i++) tryAcknowledged = this.#settleAcked(outcome.late.values[i]!) || tryAcknowledged
    for (let i = 0; i < outcome.seen.length; i++) this.#settleSeen(outcome.seen.values[i]!)
    for (let i = 0; i < outcome.lateSeen.length; i++) this.#settleAnswered(outcome.lateSeen.values[i]!)
    this.#settleLost()
    return tryAcknowledged
  }

  #settleAnswered(number: PacketNumber): void {
    const { flights, stream } = this.#run
    flights.mark(number, Mark.settled)
    if (!flights.has(number, Mark.stream) || this.#answer.lacksName) return
    if (stream.handleAnswered(number)) this.#circumstancesChanged()
  }

  #settleAcked(number: PacketNumber): boolean {
    const { flights } = this.#run
    this.#settleAnswered(number)
    if (flights.spanCount(number) === 0) return false
    this.#backlog.acknowledge(flights, number)
    this.#asking.reset()
    if (number > this.#heldBy) this.#held = false
    return this.#refusal.isTry(number)
  }

  #settleSeen(number: PacketNumber): void {
    const { flights, resendFrom } = this.#run
    this.#settleAnswered(number)
    if (flights.spanCount(number) === 0) return
    if (number >= resendFrom) this.#backlog.sendFlightAgain(flights, number)
    if (number < this.#changedAt) return
    this.#held = true
    this.#heldBy = Math.max(this.#heldBy, number)
  }

  #settleLost(): void {
    const { recovery, flights, resendFrom } = this.#run
    const { lost } = recovery.outcome
    for (let i = 0; i < lost.length; i++) {
      if (lost.values[i]! >= resendFrom) this.#backlog.sendFlightAgain(flights, lost.values[i]!)
    }
  }

  /** REFUSED in the newest answer, or the sign that a refusal is over (spec §9.10). */
  #handleRefused(now: Micros, accepted: boolean): void {
    const reason = this.#answer.refused
    if (reason !== undefined) {
      const begins = !this.#refusal.active
      if (!this.#refusal.hear(now, reason)) return
      if (begins) {
        this.counters.refusals++
        this.#forgetFlights()
      }
      this.#events.push({ _tag: "Refused", reason })
      this.#trace.emit({ _tag: "Refused", at: now, reason })
    } else if (accepted && this.#refusal.active) {
      this.#refusal.end()
      this.#forgetFlights()
      this.#events.push({ _tag: "RefusalEnded" })
      this.#trace.emit({ _tag: "RefusalEnded", at: now })
    }
  }

  /** What is in the air is no longer counted on: neither its loss nor its timeout means anything, and its records wait again. */
  #forgetFlights(): void {
    const { recovery } = this.#run
    recovery.forgetFlights()
    this.#run.resendFrom = recovery.nextNumber
    this.#backlog.sendUnacknowledgedAgain()
    this.#probeDue = false
    this.#circumstancesChanged()
    this.#asking.reset()
  }

  #endSilence(now: Micros): void {
    const stillWaiting = this.#run.recovery.inFlightCount > 0 && this.#backlog.hasUnstored
    this.#probeDue = false
    if (this.#silence.handleAnswer(now, stillWaiting)) this.#events.push({ _tag: "SilenceEnded" })
  }

  /** What was SEEN may fare better now. */
  #circumstancesChanged(): void {
    this.#held = false
    this.#changedAt = this.#run.recovery.nextNumber
  }

  // Time

  #handleRecoveryTimeout(now: Micros): void {
    const { recovery, epochs } = this.#run
    const verdict = recovery.handleTimeout(now)
    this.#settleLost()
    if (verdict !== "probe") return
    if (!this.#backlog.hasUnstored) {
      recovery.forgetFlights()
      this.#silence.stopWaiting()
      return
    }
    this.#probeDue = true
    if (epochs.epoch > 0 && this.#silence.probedEnough && this.#silence.isLong(now)) this.#startSilentRecovery()
  }

  #startSilentRecovery(): void {
    if (this.#run.inSilentRecovery) return
    this.#run.inSilentRecovery = true
    this.#packetDue = false
    this.counters.silentRecoveries++
    this.#events.push({ _tag: "SilentRecovery" })
  }

  // Runs and reach

  #newRun(offersOnly: boolean): SenderRun {
    const run = new SenderRun(this.#options, this.#backlog.queue.first, offersOnly)
    run.stream.list(this.#lives, this.#backlog.queue.first, 0)
    return run
  }

  /** Whether the next record's number is out of this run's reach (spec §4.3). */
  get #isUsedUp(): boolean {
    const { queue, cursor } = this.#backlog
    const { base } = this.#run.stream
    const limit = base + this.#numbersOfRun
    if (queue.first === base || queue.end <= limit) return false
    return queue.first >= limit || cursor >= queue.positionOf(limit)
  }

  /** Spec §4.3: a fresh run, which carries offers only until ACCEPT and then everything unstored. */
  #startFreshRun(): void {
    this.#run.epochs.close()
    this.#run = this.#newRun(true)
    this.#backlog.sendEverythingAgain()
    this.#heldBy = -1
    this.#circumstancesChanged()
    this.#asking.reset()
    this.#silence.stopWaiting()
    this.#probeDue = false
    this.#packetDue = true
    this.#response = undefined
    this.#reachPosition = -1
  }

  #listLives(): void {
    const { stream, recovery } = this.#run
    stream.list(this.#lives, this.#backlog.queue.first, recovery.nextNumber)
    this.#reachPosition = -1
  }

  /** How far records may be sent: by credit (spec §9.3), by the lives that STREAM lists (§8.2) and by the run's base (§4.3). */
  get #reach(): Position {
    if (this.#reachPosition < 0) this.#reachPosition = this.#findReach()
    return this.#reachPosition
  }

  #findReach(): Position {
    const { queue } = this.#backlog
    const { credit, stream } = this.#run
    const end = Math.min(stream.lastListed + 1, stream.base + this.#numbersOfRun, queue.end)
    return end <= queue.first ? queue.firstPosition : Math.min(credit.reach(queue), queue.positionOf(end))
  }

  get #hasSendable(): boolean {
    return !this.#held && this.#run.mayCarryRecords && this.#backlog.waitsBelow(this.#reach)
  }

  /** Nothing is in flight and nothing may be sent, but records wait: only the peer can change that (spec §9.6). */
  get #waitsForPeer(): boolean {
    return this.#backlog.queue.records > 0 && this.#run.recovery.inFlightCount === 0 && !this.#hasSendable
  }

  get #questionAt(): Micros {
    const { answeredAt, rtt } = this.#run.recovery
    return this.#asking.at(answeredAt, rtt.probeTimeout())
  }

  // Packets

  /** What waits, as window and pacer allow. */
  #transmitWaiting(now: Micros, out: Uint8Array, offset: number): Bytes {
    const { recovery } = this.#run
    const size = this.#options.datagramSize
    if (!this.#hasSendable) {
      recovery.setLimited(now, true)
      return 0
    }
    recovery.setLimited(now, false)
    if (!recovery.windowAllows(size)) return 0
    const paceAt = recovery.paceAt(now)
    if (paceAt > now) {
      this.#pacedUntil = paceAt
      return 0
    }
    const number = this.#begin(now, out, offset)
    const isFull = this.#fill(number, this.#reach)
    return this.#finish(now, number, isFull, false)
  }

  /** One packet whatever the window says, with the oldest unacknowledged span, else new records, else PING (spec §9.7). */
  #transmitProbe(now: Micros, out: Uint8Array, offset: number): Bytes {
    const { flights, stream } = this.#run
    const backlog = this.#backlog
    this.#probeDue = false
    this.#silence.handleProbe()
    this.counters.probesSent++
    const number = this.#begin(now, out, offset)
    let isFull = false
    if (this.#run.mayCarryRecords) {
      const waiting = this.#held || backlog.again.count === 0 ? Infinity : backlog.again.start(0)
      const reach = Math.min(this.#reach, waiting)
      const { resendFrom } = this.#run
      const replaced = backlog.fillWithOldest(this.#builder, flights, resendFrom, number, stream.base, reach)
      if (!replaced && this.#hasSendable) isFull = this.#fill(number, this.#reach)
    }
    return this.#finish(now, number, isFull, true)
  }

  /** The first packet under a new epoch, a RESPONSE, or the first OFFER of a run that carries nothing else. */
  #transmitControl(now: Micros, out: Uint8Array, offset: number): Bytes {
    return this.#finish(now, this.#begin(now, out, offset), false, false)
  }

  /** Asks for credit, n or ACCEPT; held records ask by themselves, a packet at a time (spec §9.6). */
  #transmitQuestion(now: Micros, out: Uint8Array, offset: number): Bytes {
    this.#asking.handleAsked(now)
    this.counters.questionsSent++
    const number = this.#begin(now, out, offset)
    const isFull = this.#held && this.#run.mayCarryRecords && this.#fill(number, this.#reach)
    return this.#finish(now, number, isFull, false)
  }

  #isTryDue(now: Micros): boolean {
    if (this.#backlog.queue.records === 0) return false
    return now >= this.#refusal.tryAt || (this.#refusal.owesRecords && this.#run.mayCarryRecords)
  }

  /** A refused sender's one packet: records, at least of record n+1, or an OFFER where records may not go (spec §9.10). */
  #transmitTry(now: Micros, out: Uint8Array, offset: number): Bytes {
    const { queue } = this.#backlog
    if (this.#run.epochs.epoch > 0 && this.#silence.isLong(now)) this.#startSilentRecovery()
    if (this.#run.recovery.ringIsFull()) this.#run.recovery.forgetFlights()
    this.counters.triesSent++
    const number = this.#begin(now, out, offset)
    const reach = Math.max(this.#reach, queue.positionOf(queue.first + 1))
    const { mayCarryRecords } = this.#run
    const isFull = mayCarryRecords && this.#fill(number, reach)
    this.#refusal.handleTry(now, number, !mayCarryRecords)
    return this.#finish(now, number, isFull, false)
  }

  #fill(number: PacketNumber, reach: Position): boolean {
    const { flights, stream } = this.#run
    return this.#backlog.fill(this.#builder, flights, number, stream.base, reach, this.#options.datagramSize)
  }

  /** Header and control frames of the next packet; returns its number. */
  #begin(now: Micros, out: Uint8Array, offset: number): PacketNumber {
    const { id, recovery, replyRuns, stream, epochs, flights, sealingEpoch: epoch } = this.#run
    const number = recovery.nextNumber
    if (number > 0 && now - Math.max(this.#lastSentAt, recovery.answeredAt) >= idleTime) stream.unanswer(number)
    const withStream = !stream.answered || this.#run.inSilentRecovery
    const long = withStream || number - replyRuns.largestReported > shortNumberReach
    this.#builder.begin(out, offset, this.#options.datagramSize, long, id, epoch, number)
    if (this.#response !== undefined) this.#builder.addResponse(this.#response)
    if (withStream) this.#builder.addStream(stream.frame(this.#backlog.queue.first))
    if (epoch === 0) this.#builder.addOffer(epochs.offer(0))
    this.#response = undefined
    flights.begin(number, withStream ? Mark.stream : 0)
    return number
  }

  #finish(now: Micros, number: PacketNumber, isFull: boolean, probe: boolean): Bytes {
    const { epochs, recovery, sealingEpoch: epoch } = this.#run
    const { recordBytes, hasRecords } = this.#builder
    const length = this.#builder.finish(epochs.sealingKey(epoch), isFull)
    assert(recovery.handleSent(now, length, probe) === number)
    if (epoch === 0) this.#run.zeroBytes += recordBytes
    if (epoch === epochs.epoch) this.#packetDue = false
    this.#lastSentAt = now
    this.#silence.handleSent(now)
    this.counters.packetsSent++
    this.counters.bytesSent += length
    this.counters.recordBytesSent += recordBytes
    if (hasRecords) this.counters.recordPacketsSent++
    if (this.#trace.packets) this.#trace.emit({ _tag: "PacketSent", at: now, number, bytes: length, epoch, probe })
    return length
  }
}

import { type Bytes, type Epoch, type Micros, never, type PacketNumber } from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import { Mark } from "./flightContents.ts"
import { PacketBuilder } from "./packetBuilder.ts"
import type { Position } from "./recordQueue.ts"
import type { SenderState } from "./senderState.ts"
import type { Train } from "./train.ts"

/**
 * Decides which packet goes next, if any, and makes it: what waits, a probe, the first packet of an epoch, a
 * question, or a refused sender's try (spec §9.2–§9.10).
 */

/** After this much idle time the long header and STREAM return (spec §3.7). */
const idleTime: Micros = 2_000_000
/** Probes of a timeout after which packets carry STREAM. */
const probesBeforeStream = 2
/** Packets in flight beyond what was reported, from which on short numbers are not relied on (spec §17). */
const shortNumberReach = 32_768

export class Transmitter {
  readonly #state: SenderState
  readonly #builder: PacketBuilder
  readonly #train: Train
  /** The pacer lets nothing go before; never while it pauses nothing. */
  #pacedUntil: Micros = never
  /** When a probe of the path will be due; never while none will, or it waits for window or pacer. */
  #pathProbeAt: Micros = never
  /** When a copy will be due; never while none will. */
  #copyAt: Micros = never

  /** What is written goes into `train`. */
  constructor(state: SenderState, train: Train, keyId: number) {
    this.#state = state
    this.#train = train
    this.#builder = new PacketBuilder(keyId)
  }

  /** When there may be more to send although nothing else happens before. */
  get wakeAt(): Micros {
    return Math.min(this.#pacedUntil, this.#pathProbeAt, this.#copyAt)
  }

  /** Everything will be asked for anew. */
  forgetWakes(): void {
    this.#pacedUntil = never
    this.#pathProbeAt = never
    this.#copyAt = never
  }

  /** There is more to send at once, but not in the train that is under way. */
  comeBackAt(now: Micros): false {
    this.#pacedUntil = now
    return false
  }

  /** Ring or window are full, and more is to go. */
  waitForRoom(now: Micros): false {
    this.#pacedUntil = this.#state.run.recovery.waitForRoom(now)
    return false
  }

  /** What waits, as window and pacer allow; 0 when nothing waits or may go. */
  transmitWaiting(now: Micros): Bytes {
    const { run, datagramSize, hasSendable } = this.#state
    run.recovery.setLimited(now, !hasSendable)
    if (!hasSendable) return this.#state.backlog.isAllSent ? this.#transmitCopy(now) : 0
    if (!run.recovery.hasRoom(datagramSize)) this.waitForRoom(now)
    if (!run.recovery.windowAllows(datagramSize)) return 0
    if (this.#isPaced(now)) return 0
    const number = this.#begin(now, datagramSize)
    const isFull = this.#fill(number, this.#state.reach)
    return this.#finish(now, number, isFull, "data")
  }

  /**
   * New records in order, in packets with a short header and nothing else: nearly all of a drain, without the questions
   * that have the same answer for each of them. Returns how many went; 0 when the next packet is of another kind, or
   * nothing may go.
   */
  transmitPlain(now: Micros): number {
    const { run, backlog, datagramSize: size, reach } = this.#state
    const most = this.#mostPlain(now)
    if (most <= 0) return 0
    const train = this.#train
    const from = train.count
    const end = Math.min(reach, backlog.queue.endPosition)
    const { epoch } = run.epochs
    const key = run.epochs.sealingKey(epoch)
    const first = run.recovery.nextNumber
    const builder = this.#builder
    let bytes = 0
    for (let number = first; number < first + most && backlog.cursor < end; number++) {
      builder.begin(train.slab, train.offset, size, false, run, epoch, number)
      backlog.fillInOrder(builder, run.flights, number, run.stream.base, end)
      const isFull = backlog.cursor < end
      const length = builder.finish(isFull)
      train.add(length, key, builder.headerLength, number, run.flights)
      bytes += builder.recordBytes
      this.#tellSent(now, number, length, epoch, false, isFull)
    }
    run.recovery.setLimited(now, false)
    run.recovery.handleTrainSent(now, train.lengths, from, train.count)
    run.epochs.handleSealed(epoch, train.count - from)
    this.#noteSent(now, from, bytes)
    this.#state.counters.recordPacketsSent += train.count - from
    return train.count - from
  }

  /** How many packets with new records, and nothing else, are to go now at most. */
  #mostPlain(now: Micros): number {
    const state = this.#state
    const { run, backlog } = state
    const { recovery, epochs, stream, replyRuns } = run
    if (state.forked || state.refusal.active || state.probeDue || state.challenges.due !== undefined) return 0
    if (!state.hasSendable || backlog.again.count > 0 || recovery.pathProbeAt <= now) return 0
    if (!stream.answered || recovery.probeCount >= probesBeforeStream || this.#isIdle(now)) return 0
    if (run.sealingEpoch === 0 || epochs.wantsOffer(now, recovery.rtt.probeTimeout()) || state.isRunUsedUp) return 0
    const byNumber = replyRuns.largestReported + shortNumberReach + 1 - recovery.nextNumber
    const byKey = epochs.packetsLeft(epochs.epoch)
    return Math.min(this.#train.room, byNumber, byKey, recovery.trainRoom(now, state.datagramSize))
  }

  /**
   * A PING padded to the size that the path is probed for, when one is due (spec §14.8); 0 when not. Only a link that
   * has something to deliver, and whose receiver knows the run, asks for more.
   */
  transmitPathProbe(now: Micros): Bytes {
    const { run, backlog } = this.#state
    const { recovery } = run
    if (!backlog.hasUnstored || run.sealingEpoch === 0 || !run.stream.answered) return 0
    if (recovery.pathProbeAt > now) {
      this.#pathProbeAt = recovery.pathProbeAt
      return 0
    }
    if (!recovery.isPathProbeUrgent && (!recovery.hasRoom(recovery.pathProbeSize) || this.#isPaced(now))) return 0
    if (this.#train.count > 0) {
      this.#pathProbeAt = now
      return 0
    }
    const number = this.#begin(now, recovery.pathProbeSize)
    this.#builder.addPathProbe()
    this.#train.isClosed = true
    this.#pathProbeAt = now
    return this.#finish(now, number, false, "path probe")
  }

  /**
   * One packet whatever the window says, with the oldest unacknowledged span, else new records, else PING (spec
   * §9.7).
   */
  transmitProbe(now: Micros): Bytes {
    const state = this.#state
    state.probeDue = false
    state.silence.handleProbe()
    state.counters.probesSent++
    const number = this.#begin(now)
    const isFull = state.run.mayCarryRecords && this.#fillProbe(number)
    return this.#finish(now, number, isFull, "probe")
  }

  /** The first packet under a new epoch, a RESPONSE, or the first OFFER of a run that carries nothing else. */
  transmitControl(now: Micros): Bytes {
    return this.#finish(now, this.#begin(now), false, "data")
  }

  /** Asks for credit, n or ACCEPT; held records ask by themselves, a packet at a time (spec §9.6). */
  transmitQuestion(now: Micros): Bytes {
    const state = this.#state
    state.asking.handleAsked(now)
    state.counters.questionsSent++
    const number = this.#begin(now)
    const isFull = state.held && state.run.mayCarryRecords && this.#fill(number, state.reach)
    return this.#finish(now, number, isFull, "data")
  }

  isTryDue(now: Micros): boolean {
    const { backlog, refusal, run } = this.#state
    return backlog.queue.records > 0 && (now >= refusal.tryAt || (refusal.owesRecords && run.mayCarryRecords))
  }

  /**
   * A refused sender's one packet: records, at least of record n+1, or an OFFER where records may not go (spec
   * §9.10). A try that went unanswered may have met a receiver that forgot the run, so the next one is a silent
   * recovery's (spec §9.8).
   */
  transmitTry(now: Micros): Bytes {
    const state = this.#state
    const {
      run,
      backlog: { queue }
    } = state
    if (run.epochs.epoch > 0 && state.silence.isLong(now)) state.startSilentRecovery()
    if (run.recovery.ringIsFull()) run.recovery.forgetFlights(now)
    state.counters.triesSent++
    const { mayCarryRecords } = run
    const number = this.#begin(now)
    const isFull = mayCarryRecords && this.#fill(number, Math.max(state.reach, queue.positionOf(queue.first + 1)))
    state.refusal.handleTry(now, !mayCarryRecords)
    return this.#finish(now, number, isFull, "data")
  }

  /**
   * What is in flight, once more, if tail redundancy wants it: the application leaves the window unused (spec §14.9). The
   * copy takes the spans over from the original.
   */
  #transmitCopy(now: Micros): Bytes {
    const { run, backlog, datagramSize, counters } = this.#state
    const { recovery, flights } = run
    const original = this.#nextOriginal()
    if (original === recovery.nextNumber || !run.mayCarryRecords) return 0
    const copyAt = recovery.copyAt(original)
    if (copyAt > now) {
      this.#copyAt = copyAt
      return 0
    }
    if (!recovery.hasRoom(datagramSize) || this.#isPaced(now)) return 0
    run.copyFrom = original + 1
    counters.copiesSent++
    const number = this.#begin(now)
    flights.mark(number, Mark.copy)
    backlog.fillFrom(this.#builder, flights, original, number, run.stream.base, Infinity)
    return this.#finish(now, number, false, "data")
  }

  /** The oldest flight that has records, is not answered and had no copy yet; the next number when there is none. */
  #nextOriginal(): PacketNumber {
    const { recovery, flights } = this.#state.run
    const mine = Mark.replaced | Mark.settled | Mark.copy
    let number = this.#state.run.copyFrom
    while (number < recovery.nextNumber) {
      if (recovery.isInFlight(number) && !flights.has(number, mine) && flights.spanCount(number) > 0) break
      number++
    }
    return (this.#state.run.copyFrom = number)
  }

  /** Whether the pacer makes the next datagram wait; then it says for how long. */
  #isPaced(now: Micros): boolean {
    const paceAt = this.#state.run.recovery.paceAt(now)
    if (paceAt <= now) return false
    this.#pacedUntil = paceAt
    return true
  }

  #fill(number: PacketNumber, reach: Position): boolean {
    const {
      run: { flights, stream },
      backlog,
      datagramSize
    } = this.#state
    return backlog.fill(this.#builder, flights, number, stream.base, reach, datagramSize)
  }

  /** The oldest of what waits to go again and what is in the air. */
  #fillProbe(number: PacketNumber): boolean {
    const {
      run: { flights, stream, resendFrom },
      backlog,
      held,
      reach,
      hasSendable
    } = this.#state
    const waiting = held || backlog.again.count === 0 ? Infinity : backlog.again.start(0)
    const older = Math.min(reach, waiting)
    if (backlog.fillWithOldest(this.#builder, flights, resendFrom, number, stream.base, older)) return false
    return hasSendable && this.#fill(number, reach)
  }

  /** Header and control frames of the next packet; returns its number. */
  #begin(now: Micros, size = this.#state.datagramSize): PacketNumber {
    const state = this.#state
    const { run } = state
    const { recovery, replyRuns, stream, epochs, flights, sealingEpoch: epoch, inSilentRecovery } = run
    const number = recovery.nextNumber
    if (number > 0 && this.#isIdle(now)) stream.unanswer(number)
    // A receiver that restarted keeps records only under a STREAM: two unanswered probes may have met one (spec §12.1).
    const withStream = !stream.answered || inSilentRecovery || recovery.probeCount >= probesBeforeStream
    const long = withStream || number - replyRuns.largestReported > shortNumberReach
    this.#builder.begin(this.#train.slab, this.#train.offset, size, long, run, epoch, number)
    const { challenges } = state
    if (challenges.due !== undefined) {
      this.#builder.addResponse(challenges.due)
      challenges.handleSent(number)
    }
    if (withStream) this.#builder.addStream(stream.frame(state.backlog.queue.first))
    if (epoch === 0 || epochs.wantsOffer(now, recovery.rtt.probeTimeout())) this.#builder.addOffer(epochs.offer(epoch))
    flights.begin(number, withStream ? Mark.stream : 0)
    return number
  }

  #isIdle(now: Micros): boolean {
    const { recovery } = this.#state.run
    return now - Math.max(recovery.sentAt, recovery.answeredAt) >= idleTime
  }

  #finish(now: Micros, number: PacketNumber, isFull: boolean, cause: "data" | "probe" | "path probe"): Bytes {
    const { run, counters } = this.#state
    const { epochs, recovery, flights, sealingEpoch: epoch } = run
    const { recordBytes, hasRecords, headerLength } = this.#builder
    const { count } = this.#train
    const length = this.#builder.finish(isFull)
    this.#train.add(length, epochs.sealingKey(epoch), headerLength, number, flights)
    epochs.handleSealed(epoch, 1)
    const probe = cause === "probe"
    const sent =
      cause === "path probe" ? recovery.handlePathProbeSent(now, length) : recovery.handleSent(now, length, probe)
    assert(sent === number)
    if (epoch === 0) run.zeroBytes += recordBytes
    this.#noteSent(now, count, recordBytes)
    if (hasRecords) counters.recordPacketsSent++
    this.#tellSent(now, number, length, epoch, probe, isFull)
    return length
  }

  /** The packets of the train from index `from` on went, with so many record bytes. */
  #noteSent(now: Micros, from: number, recordBytes: Bytes): void {
    const { counters, silence } = this.#state
    const { lengths, count } = this.#train
    this.#state.packetDue = false
    silence.handleSent(now)
    counters.packetsSent += count - from
    for (let i = from; i < count; i++) counters.bytesSent += lengths[i]!
    counters.recordBytesSent += recordBytes
  }

  #tellSent(at: Micros, number: PacketNumber, bytes: Bytes, epoch: Epoch, probe: boolean, full: boolean): void {
    const { trace } = this.#state
    if (!trace.packets) return
    const { recordBytes, isPlain: plain } = this.#builder
    trace.emit({ _tag: "PacketSent", at, number, bytes, epoch, probe, recordBytes, plain, full })
  }
}

import { type Bytes, type Micros, never, PacketEcho, type PacketNumber } from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import { Mark } from "./flightContents.ts"
import { PacketBuilder } from "./packetBuilder.ts"
import type { Position } from "./recordQueue.ts"
import type { SenderState } from "./senderState.ts"

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
  readonly #echo = new PacketEcho()
  /** The pacer lets nothing go before; never while it pauses nothing. */
  #pacedUntil: Micros = never
  /** When a probe of the path will be due; never while none will, or it waits for window or pacer. */
  #pathProbeAt: Micros = never
  /** When a copy will be due; never while none will. */
  #copyAt: Micros = never
  #lastSentAt: Micros = -Infinity

  constructor(state: SenderState, keyId: number) {
    this.#state = state
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

  /** What waits, as window and pacer allow; 0 when nothing waits or may go. */
  transmitWaiting(now: Micros, out: Uint8Array, offset: number): Bytes {
    const { run, datagramSize, hasSendable } = this.#state
    run.recovery.setLimited(now, !hasSendable)
    if (!hasSendable) return this.#state.backlog.isAllSent ? this.#transmitCopy(now, out, offset) : 0
    if (!run.recovery.windowAllows(datagramSize) || this.#isPaced(now)) return 0
    const number = this.#begin(now, out, offset, datagramSize)
    const isFull = this.#fill(number, this.#state.reach)
    return this.#finish(now, number, isFull, "data")
  }

  /**
   * A PING padded to the size that the path is probed for, when one is due (spec §14.8); 0 when not. Only a link that
   * has something to deliver, and whose receiver knows the run, asks for more.
   */
  transmitPathProbe(now: Micros, out: Uint8Array, offset: number): Bytes {
    const { run, backlog } = this.#state
    const { recovery } = run
    if (!backlog.hasUnstored || run.sealingEpoch === 0 || !run.stream.answered) return 0
    if (recovery.pathProbeAt > now) {
      this.#pathProbeAt = recovery.pathProbeAt
      return 0
    }
    if (!recovery.isPathProbeUrgent && (!recovery.hasRoom(recovery.pathProbeSize) || this.#isPaced(now))) return 0
    const number = this.#begin(now, out, offset, recovery.pathProbeSize)
    this.#builder.addPathProbe()
    return this.#finish(now, number, false, "path probe")
  }

  /**
   * One packet whatever the window says, with the oldest unacknowledged span, else new records, else PING (spec
   * §9.7).
   */
  transmitProbe(now: Micros, out: Uint8Array, offset: number): Bytes {
    const state = this.#state
    state.probeDue = false
    state.silence.handleProbe()
    state.counters.probesSent++
    const number = this.#begin(now, out, offset)
    const isFull = state.run.mayCarryRecords && this.#fillProbe(number)
    return this.#finish(now, number, isFull, "probe")
  }

  /** The first packet under a new epoch, a RESPONSE, or the first OFFER of a run that carries nothing else. */
  transmitControl(now: Micros, out: Uint8Array, offset: number): Bytes {
    return this.#finish(now, this.#begin(now, out, offset), false, "data")
  }

  /** Asks for credit, n or ACCEPT; held records ask by themselves, a packet at a time (spec §9.6). */
  transmitQuestion(now: Micros, out: Uint8Array, offset: number): Bytes {
    const state = this.#state
    state.asking.handleAsked(now)
    state.counters.questionsSent++
    const number = this.#begin(now, out, offset)
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
  transmitTry(now: Micros, out: Uint8Array, offset: number): Bytes {
    const state = this.#state
    const {
      run,
      backlog: { queue }
    } = state
    if (run.epochs.epoch > 0 && state.silence.isLong(now)) state.startSilentRecovery()
    if (run.recovery.ringIsFull()) run.recovery.forgetFlights(now)
    state.counters.triesSent++
    const { mayCarryRecords } = run
    const number = this.#begin(now, out, offset)
    const isFull = mayCarryRecords && this.#fill(number, Math.max(state.reach, queue.positionOf(queue.first + 1)))
    state.refusal.handleTry(now, !mayCarryRecords)
    return this.#finish(now, number, isFull, "data")
  }

  /**
   * What is in flight, once more, if tail redundancy wants it: the application leaves the window unused (spec §14.9). The
   * copy takes the spans over from the original.
   */
  #transmitCopy(now: Micros, out: Uint8Array, offset: number): Bytes {
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
    const number = this.#begin(now, out, offset)
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
  #begin(now: Micros, out: Uint8Array, offset: number, size = this.#state.datagramSize): PacketNumber {
    const state = this.#state
    const { id, recovery, replyRuns, stream, epochs, flights, sealingEpoch: epoch, inSilentRecovery } = state.run
    const number = recovery.nextNumber
    if (number > 0 && now - Math.max(this.#lastSentAt, recovery.answeredAt) >= idleTime) stream.unanswer(number)
    // A receiver that restarted keeps records only under a STREAM: two unanswered probes may have met one (spec §12.1).
    const withStream = !stream.answered || inSilentRecovery || recovery.probeCount >= probesBeforeStream
    const long = withStream || number - replyRuns.largestReported > shortNumberReach
    this.#builder.begin(out, offset, size, long, id, epoch, number)
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

  #finish(now: Micros, number: PacketNumber, isFull: boolean, cause: "data" | "probe" | "path probe"): Bytes {
    const { run, counters, silence, trace } = this.#state
    const { epochs, recovery, flights, sealingEpoch: epoch } = run
    const { recordBytes, hasRecords, isPlain: plain } = this.#builder
    const length = this.#builder.finish(epochs.sealingKey(epoch), isFull, this.#echo)
    epochs.handleSealed(epoch)
    flights.seal(number, this.#echo)
    const probe = cause === "probe"
    const sent =
      cause === "path probe" ? recovery.handlePathProbeSent(now, length) : recovery.handleSent(now, length, probe)
    assert(sent === number)
    if (epoch === 0) run.zeroBytes += recordBytes
    this.#state.packetDue = false
    this.#lastSentAt = now
    silence.handleSent(now)
    counters.packetsSent++
    counters.bytesSent += length
    counters.recordBytesSent += recordBytes
    if (hasRecords) counters.recordPacketsSent++
    if (trace.packets) {
      trace.emit({
        _tag: "PacketSent",
        at: now,
        number,
        bytes: length,
        epoch,
        probe,
        recordBytes,
        plain,
        full: isFull
      })
    }
    return length
  }
}

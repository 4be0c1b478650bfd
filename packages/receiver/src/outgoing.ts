import { type Address, type Bytes, type Micros, never } from "@pure-link/wire"
import { writeAnswer } from "./answer.ts"
import type { ReceiverCounters } from "./counters.ts"
import type { Notices } from "./event.ts"
import type { ReceiverFaults } from "./faults.ts"
import type { LostPackets } from "./lostPackets.ts"
import { PendingChallenges } from "./pendingChallenges.ts"
import type { ReceiverRun } from "./run.ts"

/**
 * What a receiver has to send, one datagram at a time: the answers of the runs that owe one, each to the addresses of
 * its path, then LOST (spec §10.4, §12.2, §13.1).
 */
export class Outgoing {
  /** Where the datagram goes that `poll` returned last. */
  target: Address = { host: "", port: 0 }
  private due: Array<ReceiverRun> = []
  private next = 0
  /** The addresses that wait to be validated. */
  readonly challenges = new PendingChallenges()
  private readonly lost: LostPackets
  private readonly notices: Notices
  private readonly counters: ReceiverCounters
  private readonly faults: ReceiverFaults

  constructor(lost: LostPackets, notices: Notices, counters: ReceiverCounters, faults: ReceiverFaults) {
    this.lost = lost
    this.notices = notices
    this.counters = counters
    this.faults = faults
  }

  /** The run owes an answer. */
  makeDue(run: ReceiverRun): void {
    if (run.isDue || run.isGone) return
    run.isDue = true
    this.due.push(run)
  }

  /** Writes one datagram at `out[offset…]` and returns its length; 0 when nothing is due. */
  poll(now: Micros, out: Uint8Array, offset: number): Bytes {
    while (this.next < this.due.length) {
      const run = this.due[this.next]!
      const length = run.isGone ? 0 : this.writeAnswer(now, run, out, offset)
      if (!run.isDue || run.isGone) this.next += 1
      if (length > 0) return this.count(now, run, length)
    }
    this.due = []
    this.next = 0
    return this.writeLost(out, offset)
  }

  /**
   * One answer of a run whose answers are due: to the validated address until everything is reported, then one to an
   * address that is not validated yet (spec §10.4, §13.1).
   */
  private writeAnswer(now: Micros, run: ReceiverRun, out: Uint8Array, offset: number): number {
    const { path } = run
    const to = run.owesCandidate ? path.candidate : (path.validated ?? path.candidate)
    const length = to === undefined ? 0 : this.writeAnswerTo(now, run, to, out, offset)
    if (length > 0 && run.acknowledgements.hasUnreported && !run.owesCandidate) return length
    run.owesCandidate = !run.owesCandidate && to === path.validated && path.candidate !== undefined
    if (!run.owesCandidate) run.isDue = false
    return length === 0 && run.owesCandidate ? this.writeAnswer(now, run, out, offset) : length
  }

  private writeAnswerTo(now: Micros, run: ReceiverRun, to: Address, out: Uint8Array, offset: number): number {
    const { path } = run
    if (to !== path.validated && run.epochs.live && run.challenge(now)) {
      this.counters.pathsChallenged += 1
      this.challenges.add(run)
    }
    // The fault `answerWithoutLimit`: what came from there does not matter. Tests only.
    const most = this.faults.answerWithoutLimit === true ? Number.POSITIVE_INFINITY : path.sendable(to)
    const length = writeAnswer(run, to, most, now, out, offset)
    if (length > 0) this.target = to
    return length
  }

  private writeLost(out: Uint8Array, offset: number): number {
    for (let to = this.lost.target; to !== undefined; to = this.lost.target) {
      this.target = to
      const length = this.lost.write(out, offset)
      if (length > 0) return length
    }
    return 0
  }

  private count(now: Micros, run: ReceiverRun, length: number): number {
    run.lingersUntil = never
    this.counters.answersSent += 1
    const { trace } = this.notices
    if (run.raisesStored) this.traceStored(now, run)
    if (trace.packets) {
      const number = run.replyNumber - 1
      const epoch = run.epochs.answerEpoch
      trace.emit({ _tag: "PacketSent", at: now, number, bytes: length, epoch, ...noRecords })
    }
    return length
  }

  /** An answer with a raised n leaves now (spec §10.6). */
  private traceStored(now: Micros, run: ReceiverRun): void {
    run.raisesStored = false
    const { creditBytes, creditRecords } = run.assembledIn!
    this.notices.trace.emit({ _tag: "Stored", at: now, n: run.toldStored, creditRecords, creditBytes })
  }
}

/** What an answer carries of records, for the trace. */
const noRecords = { probe: false, recordBytes: 0, plain: false, full: false }

import {
  type ChallengeFrame,
  type Epoch,
  lifeOf,
  type Micros,
  type PacketHeader,
  type PacketNumber,
  RefusalReason
} from "@pure-link/wire"
import type { Answer } from "./answer.ts"
import { Mark } from "./flightContents.ts"
import type { SenderState } from "./senderState.ts"

/**
 * Applies what an answer or a timeout means: reply runs, forks, epochs, n and credit, the spans of flights, refusals
 * (spec §9.4, §9.5, §9.10). Everything was decoded and judged before anything here takes effect.
 */
export class Settlement {
  readonly #state: SenderState
  readonly #header: PacketHeader
  readonly #answer: Answer
  /** `header` and `answer` are filled anew before each `handleAnswer`. */
  constructor(state: SenderState, header: PacketHeader, answer: Answer) {
    this.#state = state
    this.#header = header
    this.#answer = answer
  }

  countViolation(now: Micros, detail: string): void {
    this.#state.counters.violations++
    this.#state.trace.emit({ _tag: "Violation", at: now, detail })
  }

  /** An answer was opened under `epoch` and decoded as a whole. */
  handleAnswer(now: Micros, epoch: Epoch): void {
    const { run, counters } = this.#state
    const { recovery, replyRuns, epochs } = run
    const answer = this.#answer
    run.answered = true
    const verdict = replyRuns.judge(now, this.#header.replyRun, answer.reported, recovery.rtt.smoothed)
    // Not even a sign of life: windows of few reply runs are kept, so that an old answer may open again and again.
    if (verdict === "ignored") return void counters.ignoredAnswers++
    if (verdict === "switched") this.#switchReplyRun(now)
    const isNewest = this.#header.number > replyRuns.largestAnswer
    if (isNewest) replyRuns.largestAnswer = this.#header.number
    if (isNewest && answer.hasStored && this.#findFork()) return
    recovery.beginAnswer(now)
    answer.acknowledge(recovery)
    recovery.endAnswer(now, answer.reported, answer.delay)
    if (answer.accept !== undefined) this.#handleAccept(now)
    if (run.inSilentRecovery && epoch > 0 && epoch === epochs.epoch && !epochs.isSpent(epoch)) {
      run.inSilentRecovery = false
      epochs.dropOffer()
    }
    if (answer.challenge !== undefined) this.#handleChallenge(now, answer.challenge)
    if (isNewest && answer.lacksName) this.#repeatStream()
    const advanced = isNewest && answer.hasStored && this.#handleStored(now)
    const acknowledged = this.#settle()
    if (verdict === "switched") recovery.allowOneMore()
    if (isNewest) this.#handleRefused(now, advanced || acknowledged)
    this.#endSilence(now)
  }

  /** Recovery's deadline came. */
  handleTimeout(now: Micros): void {
    const state = this.#state
    const {
      run: { recovery, epochs },
      backlog,
      silence
    } = state
    const verdict = recovery.handleTimeout(now)
    this.#settleLost()
    if (verdict !== "probe") return
    if (!backlog.hasUnstored) {
      recovery.forgetFlights(now)
      silence.stopWaiting()
      return
    }
    state.probeDue = true
    if (epochs.epoch > 0 && silence.probedEnough && silence.isLong(now)) state.startSilentRecovery()
  }

  /** What the former reply run acknowledged may be gone: everything unstored goes again, with STREAM (spec §9.5). */
  #switchReplyRun(now: Micros): void {
    const state = this.#state
    const { recovery, replyRuns, stream } = state.run
    state.counters.replyRunSwitches++
    state.run.n = -1
    state.run.resendFrom = recovery.nextNumber
    state.backlog.sendEverythingAgain()
    stream.forgetAnswers()
    state.circumstancesChanged()
    // The receiver that refused may be gone: what the latest try was about is asked again at once.
    if (state.refusal.active && this.#answer.refused === undefined) state.refusal.owesRecords = true
    state.trace.emit({ _tag: "ReplyRunSwitched", at: now, replyRun: this.#header.replyRun })
    if (replyRuns.isFlapping(now)) state.tell({ _tag: "ReplyRunsFlapping" })
  }

  /**
   * Spec §8.5: STORED of records that this outbox does not have, or of another life than its own, stops the link for
   * good.
   */
  #findFork(): boolean {
    const { n, life } = this.#answer.stored
    const {
      backlog: { last, queue },
      lives
    } = this.#state
    if (n === 0 || n < queue.first - 1) return false
    const own = lifeOf(lives, n)
    if (n <= last && own?.life === life) return false
    const detail =
      n > last
        ? `the inbox has stored ${n} records of this outbox, which ends at ${last}`
        : `record ${n} is of life ${own?.life.toString(16) ?? "none"} here and of life ${life.toString(16)} in the inbox`
    this.#state.forked = true
    this.#state.tell({ _tag: "Forked", n, detail })
    return true
  }

  /** The receiver accepted an OFFER: from now on everything goes under the new epoch (spec §7.4, §9.8). */
  #handleAccept(now: Micros): void {
    const state = this.#state
    const { run, backlog } = state
    const { epoch, echo, publicKey } = this.#answer.accept!
    const wasZero = run.sealingEpoch === 0
    if (!run.epochs.handleAccept(now, epoch, echo, publicKey)) return
    if (run.inSilentRecovery) {
      run.inSilentRecovery = false
      run.resendFrom = run.recovery.nextNumber
      backlog.sendUnacknowledgedAgain()
    }
    state.counters.keyAgreements++
    state.packetDue = true
    // What was SEEN in epoch 0 may fare better (spec §8.3); from one later epoch to the next nothing changes for it.
    if (wasZero) {
      state.circumstancesChanged()
      state.asking.reset()
    }
    state.tell({ _tag: "EpochAdvanced", epoch: run.epochs.epoch })
    state.trace.emit({ _tag: "EpochAdvanced", at: now, epoch: run.epochs.epoch })
  }

  /** The receiver hears this sender from a new address (spec §9.11). */
  #handleChallenge(now: Micros, { token, ipChanged }: ChallengeFrame): void {
    const isNewPath = this.#state.challenges.handleChallenge(now, token, ipChanged, this.#answer.reported)
    if (isNewPath) this.#state.changePath(now)
  }

  /** The receiver must hear STREAM again: it lost the name (spec §8.1), or is behind (spec §8.7). */
  #repeatStream(): void {
    const { stream, recovery } = this.#state.run
    if (!stream.answered) return
    stream.unanswer(recovery.nextNumber)
    this.#state.circumstancesChanged()
  }

  /** n and credit of the newest answer. True: n advanced (spec §9.3, §9.4). */
  #handleStored(now: Micros): boolean {
    const state = this.#state
    const { run, backlog } = state
    const { n, creditRecords, creditBytes } = this.#answer.stored
    if (n < run.n) {
      this.countViolation(now, "n fell within a reply run")
      return false
    }
    run.n = n
    // It may not know that what it lacks was removed: STREAM says the lowest number held (spec §8.7).
    if (n < backlog.queue.first - 1) this.#repeatStream()
    const advanced = n >= backlog.queue.first
    if (advanced) {
      backlog.dropThrough(n)
      state.lostStarts.handleProgress()
      state.listLives()
      state.tell({ _tag: "Stored", n, at: now })
      state.trace.emit({ _tag: "Stored", at: now, n, creditRecords, creditBytes })
    }
    const opened = run.credit.set(n, creditRecords, creditBytes, backlog.queue)
    state.reachChanged()
    if (advanced || opened) {
      state.circumstancesChanged()
      state.asking.reset()
    }
    return advanced
  }

  /** Turns what recovery decided into spans. True: records were ACKed. */
  #settle(): boolean {
    const { acked, late, seen, lateSeen } = this.#state.run.recovery.outcome
    let anyRecords = false
    for (let i = 0; i < acked.length; i++) {
      if (this.#settleAcked(acked.starts[i]!, acked.ends[i]!)) anyRecords = true
    }
    for (let i = 0; i < late.length; i++) {
      if (this.#settleAcked(late.values[i]!, late.values[i]! + 1)) anyRecords = true
    }
    for (let i = 0; i < seen.length; i++) {
      for (let number = seen.starts[i]!; number < seen.ends[i]!; number++) this.#settleSeen(number)
    }
    for (let i = 0; i < lateSeen.length; i++) this.#settleAnswered(lateSeen.values[i]!, lateSeen.values[i]! + 1)
    this.#settleLost()
    return anyRecords
  }

  #settleAnswered(from: PacketNumber, end: PacketNumber): void {
    const { flights, stream } = this.#state.run
    const marks = flights.markAll(from, end, Mark.settled)
    if ((marks & Mark.stream) === 0 || this.#answer.lacksName) return
    for (let number = from; number < end; number++) {
      if (flights.has(number, Mark.stream) && stream.handleAnswered(number)) this.#state.circumstancesChanged()
    }
  }

  #settleAcked(from: PacketNumber, end: PacketNumber): boolean {
    const state = this.#state
    this.#settleAnswered(from, end)
    const last = state.backlog.acknowledge(state.run.flights, from, end)
    if (last < 0) return false
    state.asking.reset()
    state.releaseAfter(last)
    return true
  }

  #settleSeen(number: PacketNumber): void {
    const state = this.#state
    const { flights, resendFrom } = state.run
    this.#settleAnswered(number, number + 1)
    if (flights.spanCount(number) === 0) return
    if (number >= resendFrom) state.backlog.sendFlightAgain(flights, number)
    state.holdAfter(number)
  }

  #settleLost(): void {
    const {
      run: { recovery, flights, resendFrom },
      backlog
    } = this.#state
    const { lost } = recovery.outcome
    for (let i = 0; i < lost.length; i++) {
      if (lost.values[i]! >= resendFrom) backlog.sendFlightAgain(flights, lost.values[i]!)
    }
  }

  /**
   * REFUSED in the newest answer, or the sign that a refusal is over (spec §9.10): n advanced or records were ACKed. Those are
   * a try's, because what was in flight before the refusal is forgotten and tries alone were sent since.
   */
  #handleRefused(now: Micros, accepted: boolean): void {
    const state = this.#state
    const reason = this.#answer.refused
    if (reason !== undefined) {
      const begins = !state.refusal.active
      if (!state.refusal.hear(now, reason)) return
      if (begins) {
        state.counters.refusals++
        state.forgetFlights(now)
      }
      state.tell({ _tag: "Refused", reason })
      // A STORED below what was removed is not enough: it may be late word of a receiver that is gone (spec §8.7).
      if (reason === RefusalReason.recordsGone) state.tell({ _tag: "InboxBehind", n: Math.max(0, state.run.n) })
      state.trace.emit({ _tag: "Refused", at: now, reason })
    } else if (accepted && state.refusal.active) {
      state.refusal.end()
      state.forgetFlights(now)
      state.tell({ _tag: "RefusalEnded" })
      state.trace.emit({ _tag: "RefusalEnded", at: now })
    }
  }

  #endSilence(now: Micros): void {
    const state = this.#state
    state.probeDue = false
    const stillWaiting = state.run.recovery.inFlightCount > 0 && state.backlog.hasUnstored
    if (state.silence.handleAnswer(now, stillWaiting)) state.tell({ _tag: "SilenceEnded" })
  }
}

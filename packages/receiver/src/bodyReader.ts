import {
  FrameCursor,
  FrameType,
  type Id64,
  lifeOf,
  type Micros,
  readOffer,
  readResponse,
  readStream,
  RecordsReader,
  RefusalReason
} from "@pure-link/wire"
import type { Admission } from "./admission.ts"
import { Verdict } from "./verdict.ts"
import type { ReceiverCounters } from "./counters.ts"
import type { DataPacket } from "./dataPacket.ts"
import type { Notices } from "./event.ts"
import { mayFollow } from "./lives.ts"
import type { ReceiverFaults } from "./faults.ts"
import type { Remembering } from "./remembering.ts"
import type { ReceiverRun } from "./run.ts"
import type { Runs } from "./runs.ts"
import type { ReceiverStream } from "./stream.ts"

/**
 * Lets the frames of an opened packet take effect: first what the run says of itself (STREAM, OFFER, RESPONSE), then its
 * records. Says whether the packet is ACKed or SEEN (spec §10.3).
 */
export class BodyReader {
  private readonly runs: Runs
  private readonly notices: Notices
  private readonly counters: ReceiverCounters
  private readonly admission: Admission
  private readonly remembering: Remembering
  private readonly faults: ReceiverFaults
  private readonly cursor = new FrameCursor()
  private readonly reader = new RecordsReader()

  constructor(
    runs: Runs,
    admission: Admission,
    remembering: Remembering,
    notices: Notices,
    counters: ReceiverCounters,
    faults: ReceiverFaults
  ) {
    this.runs = runs
    this.admission = admission
    this.remembering = remembering
    this.notices = notices
    this.counters = counters
    this.faults = faults
  }

  /** Whether the validated body carries an OFFER: an epoch past its limits serves nothing else (spec §7.6). */
  hasOffer(packet: DataPacket): boolean {
    const { cursor } = this
    cursor.reset(packet.bytes, packet.bodyStart, packet.bodyEnd)
    while (cursor.next()) if (cursor.type === FrameType.offer) return true
    return false
  }

  /**
   * Reads a body of one RECORDS, which ends at `end`, and PADDING: what `read` does with it, without looking for frames. True:
   * every part of it is held or stored.
   */
  readLoneRecords(now: Micros, run: ReceiverRun, packet: DataPacket, end: number): boolean {
    const stream = this.streamOf(run)
    if (stream === undefined) return false
    stream.share.heardAt = now
    if (!run.knowsLivesOf(packet.number)) return false
    if (!this.prepare(now, run, stream, packet)) return false
    this.reader.read(packet.bytes, packet.bodyStart, end)
    const kept = this.keepFrame(now, run, stream, packet.bytes)
    return !this.runs.renewAfterDrop(now, stream) && kept
  }

  /**
   * Whether records of packets from number `number` on may be kept without asking again: their run's stream, lives and
   * generation are known, and nothing waits to be told of it (spec §8.3, §10.3).
   */
  isSettled(run: ReceiverRun, number: number, epoch: number): boolean {
    const stream = this.streamOf(run)
    if (stream === undefined || !run.knowsLivesFrom(number)) return false
    const last = run.lives.at(-1)
    if (last === undefined || !mayFollow(stream.assembly.n, stream.life, last)) return false
    return epoch >= 1 && stream.isCarriedBy(run.stream!.generation, run.order) && stream.assembly.isInLast(run.lives)
  }

  /** Keeps the one RECORDS of a packet if it goes on exactly where the records held end; false, having done nothing, if not. */
  keepsNext(run: ReceiverRun, packet: DataPacket, end: number): boolean {
    const { reader } = this
    reader.read(packet.bytes, packet.bodyStart, end)
    const first = run.stream!.base + reader.firstDelta
    const { assembly } = run.assembledIn!
    if (!assembly.keepsNext(run.lives, first, reader, packet.bytes)) return false
    run.hasHeld = true
    return true
  }

  /** The body is validated. True: every part of it is held or stored. */
  read(now: Micros, run: ReceiverRun, packet: DataPacket): boolean {
    const { cursor } = this
    let hasRecords = false
    cursor.reset(packet.bytes, packet.bodyStart, packet.bodyEnd)
    while (cursor.next() && !run.isGone) {
      if (cursor.type >= FrameType.partOpen) hasRecords = true
      else if (cursor.type === FrameType.stream) this.readStream(now, run, packet)
      else if (cursor.type === FrameType.offer) this.readOffer(now, run, packet)
      else if (cursor.type === FrameType.response) this.readResponse(now, run, packet)
    }
    const stream = this.streamOf(run)
    if (stream === undefined) return false
    stream.share.heardAt = now
    if (hasRecords) return run.knowsLivesOf(packet.number) && this.keepRecords(now, run, stream, packet)
    stream.handleAsked()
    return true
  }

  /** Where the run's records are kept; undefined when they are not. */
  private streamOf(run: ReceiverRun): ReceiverStream | undefined {
    return run.isGone || run.stream === undefined || run.refusal !== undefined ? undefined : run.assembledIn
  }

  private readStream(now: Micros, run: ReceiverRun, packet: DataPacket): void {
    const frame = readStream(packet.bytes, this.cursor.start, this.cursor.end)
    const n = run.assembledIn?.storedOf(frame.generation) ?? 0
    if (!run.handleStream(packet.number, frame, n)) {
      this.runs.violate(now, run, "a STREAM of another stream, or of too many lives")
      return
    }
    this.runs.judge(now, run)
    if (!this.runs.endIfStale(now, run)) this.runs.replaceOlder(now, run)
  }

  private readOffer(now: Micros, run: ReceiverRun, packet: DataPacket): void {
    const { epoch, publicKey } = readOffer(packet.bytes, this.cursor.start, this.cursor.end)
    const { number, epoch: carrier } = packet
    if (!run.epochs.offerCounts(number, carrier, epoch, publicKey)) return
    // The start of a run was admitted with its first packet; every other ACCEPT is paid for (spec §12.5).
    if (!packet.startsRun && !this.admission.admitsAccept(now, run.peer, packet.from, carrier > 0)) return
    this.counters.keyAgreements += 1
    const verdict = run.epochs.handleOffer(now, number, carrier, epoch, publicKey)
    if (verdict === "refused") return this.runs.violate(now, run, "an OFFER with a refused key")
    run.acceptsHere = true
    // The fault `acceptBeforeMemo`: the ACCEPT leaves, and the memo does not hold the candidate. Tests only.
    if (this.faults.acceptBeforeMemo !== true) this.remembering.keep(now, run)
  }

  private readResponse(now: Micros, run: ReceiverRun, packet: DataPacket): void {
    const { token } = readResponse(packet.bytes, this.cursor.start, this.cursor.end)
    if (!run.path.handleResponse(token)) return
    run.handleReplyRunKnown(packet.number)
    // The fault `responseFromAnywhere`: what the token was sent to does not matter. Tests only.
    if (this.faults.responseFromAnywhere === true) run.path.validate(packet.from)
    this.runs.tellValidated(now, run)
  }

  /** Keeps what it can of the packet's records; false when that is not everything. */
  private keepRecords(now: Micros, run: ReceiverRun, stream: ReceiverStream, packet: DataPacket): boolean {
    if (!this.prepare(now, run, stream, packet)) return false
    const { cursor, reader } = this
    let kept = true
    cursor.reset(packet.bytes, packet.bodyStart, packet.bodyEnd)
    while (cursor.next()) {
      if (cursor.type < FrameType.partOpen) continue
      reader.read(packet.bytes, cursor.start, cursor.end)
      if (!this.keepFrame(now, run, stream, packet.bytes)) kept = false
    }
    // A part of this very packet may be among what was dropped.
    return !this.runs.renewAfterDrop(now, stream) && kept
  }

  /** Whether records of the run may be kept now: its generation is the stream's, or becomes it (spec §8.3). */
  private prepare(now: Micros, run: ReceiverRun, stream: ReceiverStream, packet: DataPacket): boolean {
    const { generation } = run.stream!
    const former = stream.generation
    if (this.runs.endIfStale(now, run)) return false
    const adoption = stream.adopt(now, generation, packet.epoch >= 1, run.order)
    if (adoption === "replaced") this.handleReplaced(now, stream, former!)
    return adoption !== "waits"
  }

  /** Keeps what it can of the frame that `reader` has; false when that is not everything. */
  private keepFrame(now: Micros, run: ReceiverRun, stream: ReceiverStream, bytes: Uint8Array): boolean {
    const { reader } = this
    const first = run.stream!.base + reader.firstDelta
    const last = first + reader.count - 1
    if (last > Number.MAX_SAFE_INTEGER) {
      this.runs.violate(now, run, "a record number beyond 2^53")
      return false
    }
    if (this.isOfFork(run, stream, first, last)) {
      this.runs.judge(now, run)
      return false
    }
    switch (stream.assembly.keep(run.lives, first, reader, bytes)) {
      case Verdict.kept:
        if (last > stream.assembly.n) run.hasHeld = true
        return true
      case Verdict.noRoom:
        this.counters.framesWithoutRoom += 1
        return false
      case Verdict.otherLife:
        this.counters.framesOfOtherLife += 1
        return false
      case Verdict.contradiction:
        this.counters.contradictions += 1
        return false
    }
  }

  /** The first record past n tells: the lives of later ones begin later (spec §8.4). */
  private isOfFork(run: ReceiverRun, stream: ReceiverStream, first: number, last: number): boolean {
    const { n } = stream.assembly
    const number = Math.max(first, n + 1)
    if (run.refusal === RefusalReason.forkedOutbox) return true
    if (number > last) return false
    const life = lifeOf(run.lives, number)
    if (life === undefined || mayFollow(n, stream.life, life)) return false
    run.forkedAt = number
    return true
  }

  /**
   * Another generation holds the stream now: runs of the former one are refused, and what they had acknowledged is
   * gone.
   */
  private handleReplaced(now: Micros, stream: ReceiverStream, former: Id64): void {
    const { source, input } = stream
    const generation = stream.generation!
    this.notices.tell({ _tag: "GenerationReplaced", at: now, source, input, former, generation })
    for (const run of stream.runs.slice()) {
      if (run.stream!.generation !== generation) this.runs.renewReplyRun(now, run)
      this.runs.judge(now, run)
    }
  }
}

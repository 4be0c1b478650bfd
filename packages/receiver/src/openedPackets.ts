import { endOfLoneRecords, malformed, type Micros, validateBody } from "@pure-link/wire"
import type { BodyReader } from "./bodyReader.ts"
import type { DropReason, ReceiverCounters } from "./counters.ts"
import { DataPacket } from "./dataPacket.ts"
import type { Notices } from "./event.ts"
import { FormerEpochs } from "./formerEpochs.ts"
import type { DatagramColumns, PacketRow } from "./packetRow.ts"
import type { Remembering } from "./remembering.ts"
import type { ReceiverRun } from "./run.ts"
import type { Runs } from "./runs.ts"
import type { ReceiverStream } from "./stream.ts"

/**
 * What a packet does once its tag has verified (spec §10.1, §10.3): its number is used, its body takes effect as a whole or
 * not at all (spec §4), and an answer is due. Packets that only go on where the one before ended, which is what a transfer
 * consists of, take effect together: what is the same for all of them is done once.
 */

/** What else a packet may cause at the receiver. */
export interface PacketSurroundings {
  drop(reason: DropReason): void
  drawLost(run: ReceiverRun): void
  queueToStore(stream: ReceiverStream): void
}

export class OpenedPackets {
  /** The run in which the latest packet opened. */
  run: ReceiverRun | undefined
  /** Runs whose answer is due at the end of the batch. */
  readonly pending: Array<ReceiverRun> = []
  readonly formerEpochs = new FormerEpochs()
  private readonly runs: Runs
  private readonly body: BodyReader
  private readonly remembering: Remembering
  private readonly notices: Notices
  private readonly counters: ReceiverCounters
  private readonly surroundings: PacketSurroundings

  constructor(
    runs: Runs,
    body: BodyReader,
    remembering: Remembering,
    notices: Notices,
    counters: ReceiverCounters,
    surroundings: PacketSurroundings
  ) {
    this.runs = runs
    this.body = body
    this.remembering = remembering
    this.notices = notices
    this.counters = counters
    this.surroundings = surroundings
  }

  /** A packet opened in a run. */
  take(now: Micros, run: ReceiverRun, packet: DataPacket): void {
    const { number, epoch, length } = packet
    this.run = run
    run.replay.mark(number)
    if (!this.begin(now, run, packet)) return
    const { bytes, bodyStart, bodyEnd } = packet
    const loneEnd = endOfLoneRecords(bytes, bodyStart, bodyEnd)
    if (loneEnd === malformed && !validateBody(bytes, bodyStart, bodyEnd, "data")) {
      this.runs.violate(now, run, "malformed body")
      return this.surroundings.drop("malformed")
    }
    if (run.epochs.isSpent(epoch) && (loneEnd !== malformed || !this.body.hasOffer(packet))) {
      return this.surroundings.drop("expired epoch")
    }
    this.counters.packetsOpened += 1
    const { trace } = this.notices
    if (trace.packets) trace.emit({ _tag: "PacketOpened", at: now, number, bytes: length, epoch })
    this.handleEpoch(now, run, packet)
    if (run.isGone) return
    this.remembering.handleOpened(now, run)
    const kept =
      loneEnd === malformed ? this.body.read(now, run, packet) : this.body.readLoneRecords(now, run, packet, loneEnd)
    if (run.isGone) return
    // After the body: its RESPONSE may be to a challenge of the former address (spec §13.2).
    run.path.handleHeard(number, packet.from, length)
    if (kept) this.counters.packetsAcknowledged += 1
    else this.counters.packetsSeen += 1
    run.acknowledgements.record(now, number, kept)
    this.makePending(run)
  }

  /**
   * The packets of a row from index `from` on that follow `packet`, which was the one before and took effect: as many as
   * have the next numbers, come from the same place and bring nothing but records that are kept, under the same key. Returns how
   * many; the one after them, if there is any, is for `take`.
   */
  takeMore(
    now: Micros,
    datagrams: DatagramColumns,
    row: PacketRow,
    from: number,
    to: number,
    packet: DataPacket
  ): number {
    const run = row.ofRun
    const first = packet.number + 1
    if (!this.goesOn(run, packet, to - from)) return 0
    let length = 0
    let i = from
    for (; i < to && row.opened[i] === 1 && row.numbers[i] === first + i - from; i++) {
      if (datagrams.from[i] !== packet.from) break
      packet.moveTo(datagrams.starts[i]!, datagrams.ends[i]!, row.numbers[i]!)
      const end = endOfLoneRecords(packet.bytes, packet.bodyStart, packet.bodyEnd)
      if (end === malformed || !this.body.keepsNext(run, packet, end)) break
      length += packet.length
    }
    if (i > from) this.takeTogether(now, run, packet, first, i - from, length)
    return i - from
  }

  /** Whether packets after this one may take effect with less asking: it is the newest, and all is settled for its run. */
  private goesOn(run: ReceiverRun, { number, epoch }: DataPacket, count: number): boolean {
    return (
      count > 0 &&
      run === this.run &&
      !run.isGone &&
      run.isPending &&
      run.replay.largest === number &&
      run.acknowledgements.largest === number &&
      run.acknowledgements.canRecord(number + count) &&
      !this.notices.trace.packets &&
      !run.isSurplus &&
      run.epochs.isSettled(number, epoch, count) &&
      this.body.isSettled(run, number + 1, epoch)
    )
  }

  /** `count` packets from number `first` on were kept: what they mean but for their records. */
  private takeTogether(
    now: Micros,
    run: ReceiverRun,
    { epoch, from }: DataPacket,
    first: number,
    count: number,
    length: number
  ): void {
    const last = first + count - 1
    run.replay.markAll(first, last)
    run.handleOpened(now)
    this.counters.packetsOpened += count
    run.epochs.handleMoreOpened(last, epoch, count)
    this.remembering.handleOpened(now, run)
    run.path.handleHeard(last, from, length)
    this.counters.packetsAcknowledged += count
    run.acknowledgements.recordAll(now, first, last)
    this.surroundings.queueToStore(run.assembledIn!)
  }

  private makePending(run: ReceiverRun): void {
    if (!run.isPending) {
      run.isPending = true
      this.pending.push(run)
    }
    if (run.assembledIn !== undefined) this.surroundings.queueToStore(run.assembledIn)
  }

  /** A packet opened in the run. False: it was the first of one that the memo held and that is over. */
  private begin(now: Micros, run: ReceiverRun, packet: DataPacket): boolean {
    const isRecalled = run.isFromMemo && !run.hasOpened
    run.handleOpened(now)
    if (!isRecalled) return true
    this.runs.handleRecalled(now, run)
    if (run.isGone && packet.epoch > 0) this.surroundings.drawLost(run)
    return !run.isGone
  }

  private handleEpoch(now: Micros, run: ReceiverRun, packet: DataPacket): void {
    const { number, epoch } = packet
    const isFirst = !run.epochs.live && !run.isFromMemo
    if (run.epochs.handleOpened(now, number, epoch) === "same") {
      if (run.isSurplus) this.runs.goLive(now, run)
      return
    }
    this.formerEpochs.note(run)
    this.notices.trace.emit({ _tag: "EpochAdvanced", at: now, epoch })
    if (isFirst) run.path.handleConfirmed(packet.from)
    if (run.acceptsHere) run.handleReplyRunKnown(number)
    this.runs.goLive(now, run)
    if (!run.isGone) this.remembering.keep(now, run)
  }
}

/**
 * The receiver machine of a node (spec §10): opens data packets of all allowed peers, assembles their records, asks the
 * inbox to store them, and answers. Time and datagrams go in; datagrams, store intents, events and the next deadline
 * come out.
 *
 * Its driver calls `handleBatch` for the data packets that wait (or `handleDatagram` for each) and `endBatch` after the
 * last, then `pollStore` and `pollTransmit` until they return nothing, and `handleTimeout` when `deadline` has come.
 */
import {
  type Address,
  type Bytes,
  type CommitOutcome,
  expandPacketNumber,
  type Id64,
  type Micros,
  never,
  receiveRange,
  type StoreIntent,
  validateBody
} from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import { Admission } from "./admission.ts"
import { BodyReader } from "./bodyReader.ts"
import { DataPacket } from "./dataPacket.ts"
import { type DropReason, type ReceiverCounters, zeroCounters } from "./counters.ts"
import { Notices, type ReceiverEvent } from "./event.ts"
import type { ReceiverFaults } from "./faults.ts"
import { Lingering } from "./lingering.ts"
import { lostNoticePause, LostPackets } from "./lostPackets.ts"
import type { ReceiverMemory } from "./memory.ts"
import { memoryOf, type ReceiverOptions, runOptionsOf } from "./options.ts"
import { type AllowedPeer, type Peer, Peers } from "./peers.ts"
import { OpenedPackets } from "./openedPackets.ts"
import { Outgoing } from "./outgoing.ts"
import { type DatagramColumns, PacketRow } from "./packetRow.ts"
import { Remembering } from "./remembering.ts"
import type { ReceiverRun } from "./run.ts"
import { Runs } from "./runs.ts"
import type { InboxCursors, ReceiverStream } from "./stream.ts"
import { Streams } from "./streams.ts"

export class Receiver {
  readonly counters: ReceiverCounters = zeroCounters()
  /** Where the datagram goes that `pollTransmit` returned last. */
  target: Address = { host: "", port: 0 }
  private readonly peers: Peers
  private readonly streams: Streams
  private readonly runs: Runs
  private readonly opened: OpenedPackets
  private readonly admission: Admission
  private readonly remembering: Remembering
  private readonly lost: LostPackets
  private readonly outgoing: Outgoing
  private readonly notices: Notices
  private readonly cursors: InboxCursors
  private readonly faults: ReceiverFaults
  private readonly memory: ReceiverMemory
  private readonly packet = new DataPacket()
  private readonly row = new PacketRow()
  /** The latest time heard of: events of calls without a time carry it. */
  private now: Micros = 0
  private readonly lingering = new Lingering()
  /** Streams that may have something to store, and those whose failed commit waits. */
  private readonly toStore: Array<ReceiverStream> = []
  private readonly retrying = new Set<ReceiverStream>()

  constructor(options: ReceiverOptions) {
    const { suite, entropy, identity, cursors, faults = {} } = options
    const { counters } = this
    this.cursors = cursors
    this.faults = faults
    this.notices = new Notices(options.trace)
    const { notices } = this
    this.peers = new Peers(suite, identity, counters)
    this.memory = memoryOf(options)
    this.streams = new Streams(cursors, this.memory, faults)
    this.admission = new Admission(counters)
    this.remembering = new Remembering(options.memo, notices, counters, faults)
    this.lost = new LostPackets(suite, entropy, counters)
    this.outgoing = new Outgoing(this.lost, notices, counters, faults)
    this.runs = new Runs(runOptionsOf(options), this.streams, this.remembering, notices, counters)
    const body = new BodyReader(this.runs, this.admission, this.remembering, notices, counters, faults)
    this.opened = new OpenedPackets(this.runs, body, this.remembering, notices, counters, {
      drop: (reason) => this.drop(reason),
      drawLost: (run) => this.drawLost(this.now, [run.peer]),
      queueToStore: (stream) => this.queueToStore(stream)
    })
  }

  /** Allows a peer, or changes the sources of an allowed one. Throws `PeerNotAllowable`. */
  allow(peer: AllowedPeer): void {
    this.judge(this.peers.allow(peer))
    this.passReserve(this.now)
  }

  /** Ends all runs of a peer: from now on it is met with silence. */
  revoke(publicKey: Uint8Array): void {
    const peer = this.peers.revoke(publicKey)
    if (peer === undefined) return
    for (const run of peer.runs.slice()) this.runs.end(this.now, run, "revoked")
    this.remembering.forgetPeer(peer)
    this.passReserve(this.now)
  }

  /** Inputs appear and disappear while the receiver runs (spec §10.10). */
  addInput(input: string, shape: Id64): void {
    this.streams.addInput(input, shape)
    this.judgeAll()
  }

  removeInput(input: string): void {
    this.streams.removeInput(input)
    this.judgeAll()
  }

  /** Reads one data packet, in place; false when it opened for no run. An answer is due at `endBatch`. */
  handleDatagram(now: Micros, bytes: Uint8Array, start: number, end: number, from: Address): boolean {
    this.now = now
    const { packet } = this
    if (!packet.read(bytes, start, end, from)) return this.drop("header")
    const { header } = packet
    const peers = this.peers.of(header.keyId)
    if (peers.length === 0) return this.drop("unknown key")
    let why: DropReason | undefined
    for (const peer of peers) {
      if (!peer.isRecalled) this.remembering.recall(peer)
      for (const run of peer.runs) {
        if (run.prefix !== header.runPrefix || (packet.isLong && run.run !== header.run)) continue
        why = this.openIn(now, run)
        if (why === undefined) return true
      }
      if (why !== undefined || peer.remembered.length === 0) continue
      const recalled = this.recalled(now, peer)
      if (recalled === undefined) continue
      why = this.openIn(now, recalled)
      if (why === undefined) return true
      recalled.epochs.close()
    }
    if (why !== undefined) return this.drop(why)
    if (header.epochBits !== 0) this.drawLost(now, peers)
    else if (packet.isLong) return this.openNew(now, peers)
    return this.drop("unknown run")
  }

  /**
   * Reads data packets, from index `from` to before `to`, as `handleDatagram` does; those in a row are opened together.
   * Returns how many opened.
   */
  handleBatch(now: Micros, datagrams: DatagramColumns, from: number, to: number): number {
    this.now = now
    const { row } = this
    let opened = 0
    for (let i = from; i < to;) {
      const end = row.open(now, datagrams, i, to)
      if (end === i && this.handleOne(now, datagrams, i++)) opened++
      while (i < end) {
        if (this.handleOfRow(now, datagrams, i++)) opened++
        const more = this.opened.takeMore(now, datagrams, row, i, end, this.packet)
        opened += more
        i += more
      }
    }
    return opened
  }

  /** All that waited was read: one answer per run becomes due (spec §10.4). */
  endBatch(now: Micros): void {
    this.now = now
    const { pending } = this.opened
    for (const run of pending) {
      run.isPending = false
      this.outgoing.makeDue(run)
    }
    pending.length = 0
    this.passReserve(now)
  }

  /**
   * Writes one answer or LOST at `out[offset…]`, of at most 1,200 B, and returns its length; 0 when none is due. It goes
   * to `target`.
   */
  pollTransmit(now: Micros, out: Uint8Array, offset: number): number {
    this.now = now
    const length = this.outgoing.poll(now, out, offset)
    this.target = this.outgoing.target
    return length
  }

  /** The next batch for the inbox; at most one per stream is under way until its outcome is told. */
  pollStore(): StoreIntent | undefined {
    for (let stream = this.toStore.shift(); stream !== undefined; stream = this.toStore.shift()) {
      stream.isQueued = false
      const intent = stream.takeIntent()
      if (intent !== undefined) return intent
    }
    return undefined
  }

  /** The inbox committed the batch, or found that it does not follow. Either way answers are due (spec §10.6). */
  handleStored(now: Micros, intent: StoreIntent, outcome: CommitOutcome): void {
    this.now = now
    const stream = this.streams.find(intent.source, intent.input)
    assert(stream !== undefined && stream.intent === intent)
    const wasFailing = stream.isFailing
    const result = stream.handleStored(intent, outcome)
    const { source, input } = stream
    if (wasFailing) this.notices.tell({ _tag: "StoreRecovered", at: now, source, input })
    if (result === "conflict") this.tellCursorChanged(now, stream)
    else this.counters.recordsStored += intent.batch.sizes.length
    this.settle(now, stream, result !== "conflict" && !wasFailing)
    this.streams.dissolve(stream)
  }

  /** The inbox stored nothing: the batch is kept, credit is 0, and `pollStore` hands it out again after a second. */
  handleStoreFailed(now: Micros, intent: StoreIntent): void {
    this.now = now
    const stream = this.streams.find(intent.source, intent.input)
    assert(stream !== undefined && stream.intent === intent)
    const { source, input, isFailing } = stream
    stream.handleStoreFailed(now, intent)
    this.counters.storeFailures += 1
    if (!isFailing) this.notices.tell({ _tag: "StoreFailed", at: now, source, input })
    this.retrying.add(stream)
    this.settle(now, stream, false)
    this.streams.dissolve(stream)
  }

  handleTimeout(now: Micros): void {
    this.now = now
    for (const stream of this.retrying) {
      // What waited may be gone with its run: then nothing is to be tried again.
      if (stream.retryAt > now && stream.retryAt !== never) continue
      this.retrying.delete(stream)
      if (stream.retryAt === never) continue
      stream.retryAt = never
      this.queueToStore(stream)
    }
    for (let run = this.lingering.takeDue(now); run !== undefined; run = this.lingering.takeDue(now))
      this.outgoing.makeDue(run)
    const { formerEpochs } = this.opened
    if (now >= formerEpochs.expireAt) formerEpochs.expire(now, this.peers)
    this.counters.pathsGivenUp += this.outgoing.challenges.giveUp(now)
    if (now >= this.memory.deadline()) this.takeReserveBack(now)
  }

  /** When `handleTimeout` is due. */
  deadline(): Micros {
    const { lingering, memory, outgoing } = this
    let deadline = Math.min(
      this.opened.formerEpochs.expireAt,
      memory.deadline(),
      lingering.deadline(),
      outgoing.challenges.deadline()
    )
    for (const stream of this.retrying) deadline = Math.min(deadline, stream.retryAt)
    return deadline
  }

  pollEvent(): ReceiverEvent | undefined {
    this.counters.eventsDropped = this.notices.dropped
    return this.notices.poll()
  }

  /**
   * Cursors of the inbox changed outside of commits, or retired generations were forgotten: all streams are judged
   * again.
   */
  revise(now: Micros): void {
    this.now = now
    for (const stream of this.streams.all()) {
      if (stream.isCommitting || !stream.hasMoved(this.cursors.cursor(stream))) continue
      stream.restore(this.cursors.cursor(stream))
      this.tellCursorChanged(now, stream)
    }
    this.judgeAll()
  }

  /** What all streams hold, with the reserve (spec §10.7). */
  get heldBytes(): Bytes {
    return this.memory.used
  }

  /** The buffers that it is held in. */
  get bufferBytes(): Bytes {
    return this.memory.allocated
  }

  /** A packet that stands alone; if it opened, the next ones may be of the same run. */
  private handleOne(now: Micros, { bytes, starts, ends, from }: DatagramColumns, i: number): boolean {
    if (!this.handleDatagram(now, bytes, starts[i]!, ends[i]!, from[i]!)) return false
    this.row.follow(this.opened.run!, bytes, starts[i]!)
    return true
  }

  /** A packet that was opened with others: what is asked before opening is asked again, as those before it counted. */
  private handleOfRow(now: Micros, datagrams: DatagramColumns, i: number): boolean {
    const { row, packet } = this
    const number = row.numbers[i]!
    if (row.opened[i] === 0) {
      packet.noteRefused(row.key, number)
      const opened = this.handleOne(now, datagrams, i)
      packet.noteRefused(undefined, 0)
      return opened
    }
    const run = row.ofRun
    packet.takeOpened(datagrams.bytes, datagrams.starts[i]!, datagrams.ends[i]!, datagrams.from[i]!, number, row.epoch)
    if (run.isGone) return this.drop("unknown run")
    if (!run.replay.accepts(number)) return this.drop("replayed")
    if (!run.acknowledgements.canRecord(number)) return this.drop("limit")
    this.opened.take(now, run, packet)
    return true
  }

  /** Opens the packet in a known run; or says why not, having changed nothing (spec §10.1). */
  private openIn(now: Micros, run: ReceiverRun): DropReason | undefined {
    const { packet } = this
    const { header } = packet
    const { largest } = run.replay
    const number = packet.isLong ? header.number : expandPacketNumber(header.number, largest)
    if (!packet.isLong && number > largest + receiveRange) return "limit"
    if (!run.replay.accepts(number)) return "replayed"
    if (!run.acknowledgements.canRecord(number)) return "limit"
    // The fault `markBeforeVerify`: a forged packet uses up its number (spec §10.1). Tests only.
    if (this.faults.markBeforeVerify === true) run.replay.mark(number)
    const keys = run.epochs.openingKeys(now, header.epochBits)
    for (const key of keys) {
      if (!packet.open(key, run.epochs.epochOf(key), number)) continue
      this.opened.take(now, run, packet)
      return undefined
    }
    this.counters.forgedPackets += 1
    run.epochs.countForged(header.epochBits)
    // The memo may be older than the run: then nobody knows this epoch (spec §12.2).
    if (keys.length > 0 || (run.hasOpened && this.faults.lostForKnownRun !== true)) return "not authentic"
    this.drawLost(now, [run.peer])
    return "unknown run"
  }

  /** The run of the memo that the packet may be of, if there is a token for its keys. */
  private recalled(now: Micros, peer: Peer): ReceiverRun | undefined {
    const { header, isLong } = this.packet
    if (!peer.remembers(header.runPrefix) || !this.admission.admitsTry(now)) return undefined
    return this.runs.recalled(peer, header.runPrefix, isLong ? header.run : undefined)
  }

  /** A packet in epoch ≥ 1 of a run for which there is no secret: LOST, if the run did not end here (spec §12.2). */
  private drawLost(now: Micros, peers: ReadonlyArray<Peer>): void {
    const { packet } = this
    for (const peer of peers) {
      if (peer.hasEnded(packet.header.runPrefix) && this.faults.lostForKnownRun !== true) continue
      if (!this.lost.draw(now, peer, packet)) continue
      if (now - peer.lostToldAt >= lostNoticePause) {
        peer.lostToldAt = now
        this.notices.tell({ _tag: "LostSent", at: now, peer: peer.publicKey, source: "", input: "" })
      }
      break
    }
  }

  /** A long header of an unknown run, in epoch 0: a provisional run if it opens (spec §10.1). */
  private openNew(now: Micros, peers: ReadonlyArray<Peer>): boolean {
    const { packet } = this
    const { header, bytes } = packet
    for (const peer of peers) {
      if (!this.admission.admitsTry(now)) return this.drop("limit")
      if (!this.opensFirst(peer)) continue
      if (!validateBody(bytes, packet.bodyStart, packet.bodyEnd, "data")) return this.drop("malformed")
      if (!this.admission.admitsStart(now, peer, packet.from)) return this.drop("limit")
      const run = this.runs.begin(now, peer, header.run)
      if (run === undefined) return this.drop("limit")
      packet.startsRun = true
      this.opened.take(now, run, packet)
      return true
    }
    return this.drop("not authentic")
  }

  /** Whether the packet is authentic as the first of its run; the key for that is needed once. */
  private opensFirst(peer: Peer): boolean {
    const { packet } = this
    const key = this.runs.firstKey(peer, packet.header.run)
    if (key === undefined) return false
    const opens = packet.open(key, 0, packet.header.number)
    key.release()
    return opens
  }

  /**
   * After n, the generation or the state of the store changed: refusals are judged and answers are due without a
   * packet. One that only raises n may linger.
   */
  private settle(now: Micros, stream: ReceiverStream, onlyRaised: boolean): void {
    const mayLinger = !this.runs.renewAfterDrop(now, stream) && onlyRaised
    for (const run of stream.runs.slice()) {
      const changed = this.runs.judge(now, run)
      if (run.isPending) continue
      if (mayLinger && !changed && this.lingering.isWorthwhile(run, now)) this.lingering.add(run, now)
      else this.outgoing.makeDue(run)
    }
    this.queueToStore(stream)
    this.passReserve(now)
  }

  /** A free reserve goes to the stream that waited longest; its sender hears of it at once (spec §10.7). */
  private passReserve(now: Micros): void {
    if (this.memory.pass(now) === undefined) return
    for (const run of this.reserveHolder().runs) if (!run.isPending) this.outgoing.makeDue(run)
  }

  /** The holder made no progress for 10 s: its half record is dropped, and another gets the reserve (spec §10.7). */
  private takeReserveBack(now: Micros): void {
    const stream = this.reserveHolder()
    if (stream.assembly.dropHalfRecord()) {
      this.counters.halfRecordsDropped += 1
      for (const run of stream.runs) this.runs.renewReplyRun(now, run)
    }
    stream.share.endTurn()
    this.passReserve(now)
  }

  private reserveHolder(): ReceiverStream {
    return this.streams.all().find((stream) => stream.share.isHolder)!
  }

  private tellCursorChanged(now: Micros, stream: ReceiverStream): void {
    const { source, input } = stream
    this.counters.cursorsChanged += 1
    for (const run of stream.runs) this.runs.renewReplyRun(now, run)
    this.notices.tell({ _tag: "CursorChanged", at: now, source, input, cursor: this.cursors.cursor(stream) })
  }

  private judgeAll(): void {
    for (const peer of this.peers.all()) this.judge(peer)
    this.passReserve(this.now)
  }

  private judge(peer: Peer): void {
    for (const run of peer.runs) if (run.hasOpened && this.runs.judge(this.now, run)) this.outgoing.makeDue(run)
  }

  private queueToStore(stream: ReceiverStream): void {
    if (stream.isQueued || !stream.canStore) return
    stream.isQueued = true
    this.toStore.push(stream)
  }

  /** A datagram without effect: counted, never answered (spec §15.1). */
  private drop(reason: DropReason): false {
    this.counters.dropped[reason] += 1
    const { trace } = this.notices
    if (trace.packets) trace.emit({ _tag: "PacketDropped", at: this.now, bytes: this.packet.length, reason })
    return false
  }
}

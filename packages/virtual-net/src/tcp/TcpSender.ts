import { type Bytes, type Micros, never } from "@pure-link/wire"
import { AckDigest } from "./AckDigest.ts"
import { Cubic } from "./Cubic.ts"
import { Rack } from "./Rack.ts"
import { Recovery, type RecoveryCounters, State } from "./Recovery.ts"
import { RetransmissionTimer } from "./RetransmissionTimer.ts"
import { RoundTrip } from "./RoundTrip.ts"
import { Scoreboard } from "./Scoreboard.ts"
import { Segment, segmentBytes, timestampAt, writeData } from "./segment.ts"
import { Undo } from "./Undo.ts"

/**
 * The sending half of the reference flow: Linux's `tcp_ack` and `tcp_write_xmit` for a source that always has data, or
 * has so many bytes. It is clocked by acknowledgements and does not pace. The caller hands in what arrives and polls,
 * at every arrival and at the deadline, until there is nothing more to send.
 */

export interface SenderOptions {
  /** Endless if not given. */
  readonly bytes?: Bytes | undefined
  /** The receiver's window is never larger. */
  readonly largestWindow: Bytes
}

export interface SenderCounters extends RecoveryCounters {
  segmentsSent: number
  retransmissions: number
  probes: number
}

export class TcpSender {
  readonly #board: Scoreboard
  readonly #roundTrips = new RoundTrip()
  readonly #undo = new Undo()
  readonly #cubic = new Cubic()
  readonly #rack: Rack
  readonly #digest: AckDigest
  readonly #timer: RetransmissionTimer
  readonly #recovery: Recovery
  readonly #segment = new Segment()
  readonly #lastSegment: number
  readonly #lastPayload: Bytes
  /** The first segment that the receiver has no room for. */
  #windowEnd: number
  #peerTimestamp = 0
  #segmentsSent = 0
  #probes = 0
  #probeIsDue = false
  /** Whether the window was what stopped sending, since `#usageEnd` was sent (`tcp_cwnd_validate`). */
  #isLimited = false
  #mostOutstanding = 0
  #usageEnd = 0
  #sentInBurst = 0
  #newInBurst = 0

  constructor(options: SenderOptions) {
    const windowSegments = Math.floor(options.largestWindow / segmentBytes)
    this.#board = new Scoreboard(windowSegments)
    this.#windowEnd = windowSegments
    const bytes = options.bytes ?? never
    this.#lastSegment = Math.ceil(bytes / segmentBytes) - 1
    this.#lastPayload = bytes === never ? segmentBytes : bytes - this.#lastSegment * segmentBytes
    const [board, undo, cubic] = [this.#board, this.#undo, this.#cubic]
    const rack = (this.#rack = new Rack(board, this.#roundTrips))
    const digest = (this.#digest = new AckDigest(board, rack, this.#roundTrips, undo))
    const timer = (this.#timer = new RetransmissionTimer(board, this.#roundTrips))
    this.#recovery = new Recovery({ board, rack, cubic, undo, digest, timer })
  }

  /** The congestion window. */
  get window(): Bytes {
    return this.#cubic.window * segmentBytes
  }

  get inSlowStart(): boolean {
    return this.#cubic.inSlowStart
  }

  get smoothedRoundTrip(): Micros {
    return this.#roundTrips.smoothed
  }

  /** Everything was sent and acknowledged. */
  get isComplete(): boolean {
    return this.#board.unacknowledged > this.#lastSegment
  }

  get counters(): SenderCounters {
    const { retransmissions } = this.#board
    return { segmentsSent: this.#segmentsSent, retransmissions, probes: this.#probes, ...this.#recovery.counters }
  }

  handleSegment(now: Micros, bytes: Uint8Array): void {
    const ack = this.#segment
    if (!ack.read(bytes) || ack.isData || ack.number > this.#board.next || !this.#isTimely(ack)) return
    this.#windowEnd = Math.max(this.#windowEnd, ack.number + ack.window)
    if (ack.number < this.#board.unacknowledged && ack.blocks === 0) return
    this.#handleAcknowledgement(now, ack)
  }

  /** Writes the datagram to be sent now and returns its length; 0 if there is none. */
  poll(now: Micros, out: Uint8Array): Bytes {
    if (now >= this.#timer.at) this.#handleTimer(now)
    const segment = this.#probeIsDue ? this.#takeProbe(now) : this.#takeNext(now)
    if (segment < 0) {
      this.#endBurst(now)
      return 0
    }
    this.#segmentsSent++
    const payload = segment === this.#lastSegment ? this.#lastPayload : segmentBytes
    return writeData(out, segment, payload, timestampAt(now))
  }

  deadline(): Micros {
    return this.#timer.at
  }

  /**
   * PAWS (RFC 7323 §5), with a tick of grace: an acknowledgement that a later one overtook by milliseconds is dropped,
   * unless it says nothing new in order (`tcp_disordered_ack`).
   */
  #isTimely(ack: Segment): boolean {
    if (ack.timestamp < this.#peerTimestamp - 1) return ack.number === this.#board.unacknowledged
    this.#peerTimestamp = Math.max(this.#peerTimestamp, ack.timestamp)
    return true
  }

  /** Linux `tcp_ack`. */
  #handleAcknowledgement(now: Micros, ack: Segment): void {
    const board = this.#board
    const recovery = this.#recovery
    const digest = this.#digest
    const { delivered, lostEver, unacknowledged } = board
    const isOld = ack.number < unacknowledged
    const hasSegments = board.outstanding > 0 && !isOld
    digest.begin(ack)
    const countsReordering = recovery.state !== State.loss || this.#undo.marker >= 0
    if (ack.blocks > 0) digest.readBlocks(now, ack, recovery.end, recovery.probeEnd, countsReordering)
    if (hasSegments) {
      digest.readNumber(now, ack.number, recovery.end)
      if (digest.roundTrip >= 0) this.#cubic.noteRoundTrip(now, digest.roundTrip, board.unacknowledged, board.next)
      this.#rack.adaptWindow(digest.deliveredThen)
    } else if (!isOld && !digest.tellsNeedless) return
    recovery.handleAcknowledgement(now, unacknowledged, hasSegments)
    if (!hasSegments) return
    if (digest.restartsTimer) this.#timer.restart(now, this.#mayProbe)
    recovery.adjustWindow(now, board.delivered - delivered, board.lostEver - lostEver, this.#isWindowLimited)
  }

  #handleTimer(now: Micros): void {
    const { purpose } = this.#timer
    if (purpose === "reordering") this.#recovery.handleReorderingTimeout(now)
    else if (purpose === "probe") this.#beginProbe(now)
    else {
      this.#recovery.handleTimeout(now)
      this.#roundTrips.backOff()
      this.#timer.armTimeout(now)
    }
  }

  /** One loss probe at a time (`tcp_send_loss_probe`). */
  #beginProbe(now: Micros): void {
    if (this.#recovery.probeEnd >= 0) this.#timer.rearm(now)
    else this.#probeIsDue = true
  }

  /** A new segment whatever the window, or the last one again. */
  #takeProbe(now: Micros): number {
    this.#probeIsDue = false
    const board = this.#board
    const isCopy = !this.#hasNew
    const segment = isCopy ? board.next - 1 : board.send(now)
    if (isCopy) board.resend(segment, now, true)
    this.#recovery.probeEnd = board.next
    this.#recovery.probeIsCopy = isCopy
    this.#probes++
    this.#timer.armTimeout(now)
    return segment
  }

  #takeNext(now: Micros): number {
    const board = this.#board
    const recovery = this.#recovery
    const hasRoom = board.inFlight < this.#cubic.window
    if (recovery.resending === "new" && !(hasRoom && this.#hasNew)) recovery.endTest()
    if (recovery.resending === "lost") {
      const segment = hasRoom ? board.nextToResend() : -1
      if (segment >= 0) return this.#resend(now, segment)
      recovery.resending = "none"
    }
    return hasRoom && this.#hasNew ? this.#sendNew(now) : -1
  }

  #resend(now: Micros, segment: number): number {
    const board = this.#board
    board.resend(segment, now, false)
    this.#undo.noteCopy(timestampAt(now))
    this.#countSent()
    if (segment === board.unacknowledged && this.#timer.purpose !== "reordering") this.#timer.armTimeout(now)
    return segment
  }

  #sendNew(now: Micros): number {
    const wasEmpty = this.#board.outstanding === 0
    const segment = this.#board.send(now)
    this.#countSent()
    this.#newInBurst++
    if (wasEmpty || this.#timer.purpose === "probe") this.#timer.rearm(now)
    return segment
  }

  #countSent(): void {
    this.#sentInBurst++
    if (this.#recovery.state === State.recovery) this.#recovery.reduction.noteSent()
  }

  /** Linux `tcp_cwnd_validate`, and a loss probe to come. */
  #endBurst(now: Micros): void {
    const board = this.#board
    const isLimited = board.inFlight >= this.#cubic.window
    if (this.#sentInBurst > 0 || isLimited) {
      const isNewRound = board.unacknowledged >= this.#usageEnd
      if (isNewRound || isLimited || (!this.#isLimited && board.outstanding > this.#mostOutstanding)) {
        this.#isLimited = isLimited
        this.#mostOutstanding = board.outstanding
        this.#usageEnd = board.next
      }
    }
    if (this.#newInBurst > 0) this.#timer.scheduleProbe(now, this.#mayProbe)
    this.#sentInBurst = this.#newInBurst = 0
  }

  get #hasNew(): boolean {
    return this.#board.next <= this.#lastSegment && this.#board.next < this.#windowEnd
  }

  get #mayProbe(): boolean {
    return this.#recovery.state === State.open
  }

  /** Linux `tcp_is_cwnd_limited`. */
  get #isWindowLimited(): boolean {
    return this.#isLimited || (this.#cubic.inSlowStart && this.#cubic.window < 2 * this.#mostOutstanding)
  }
}

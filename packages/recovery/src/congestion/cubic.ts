import type { Bytes, Micros } from "@pure-link/wire"
import type { RoundTripTime } from "../roundTripTime.ts"
import type { CongestionController, CongestionState, ControllerOptions } from "./CongestionController.ts"
import { boundWindow, initialWindow } from "./CongestionController.ts"

/**
 * CUBIC (RFC 9438): after a reduction the window returns along a cubic curve to where it was, lingers there, and then
 * looks for more; where Reno would be faster, it follows an estimate of Reno. Time in which the sender was idle or
 * short of data or credit is not part of the curve (RFC 9438 §5.8, spec §14.5). All that an undo must restore is in one
 * `CubicState`.
 */

/** RFC 9438 §4.6: a reduction leaves this part of the window. */
const reductionFactor = 0.7
/**
 * C, in datagrams per second cubed: 0.4 in RFC 9438 §4.1. Beside jitter TCP reduces twice in some overflows, and what it
 * leaves is to be taken slowly enough for it to come back (spec §14.4).
 */
const steepness = 0.3
/**
 * The estimate grows by this many datagrams per round trip, 0.53: before the former maximum as RFC 9438 §4.3 has it, and
 * beyond it too, where that has 1 (spec §14.4).
 */
const renoGrowth = (3 * (1 - reductionFactor)) / (1 + reductionFactor)
const microsPerSecond = 1_000_000

interface CubicState {
  /** In bytes, with fractions, as are all windows here. */
  window: number
  slowStartThreshold: number
  /** When the last reduction was made: packets sent until then belong to it. Nothing else ever moves it. */
  recoveryStart: Micros
  /** W_max, the window before the last reduction, after fast convergence; 0 when there is none to return to. */
  formerMaximum: number
  /** Whether the curve below is under way; congestion avoidance begins it with its first growth. */
  hasEpoch: boolean
  /** When the curve began; later by all the time that does not count. */
  epochStart: Micros
  /** Where the curve is flat, and after how many seconds (K). */
  plateau: number
  secondsToPlateau: number
  /** The Reno estimate by acknowledgements, and by elapsed time up to `countedAt`. */
  estimateByBytes: number
  estimateByTime: number
  countedAt: Micros
  /** After a long idle slow start grows half as fast, until the next congestion. */
  slowedStart: boolean
}

/** A state to go back to, and when it was left. */
interface SavedState extends CubicState {
  readonly savedAt: Micros
}

/** A point of the curve. All packets of an answer ask for the same two, so each remembers its latest. */
class CurvePoint {
  #elapsed: Micros = -1
  #plateau = 0
  #secondsToPlateau = 0
  #datagramSize: Bytes = 0
  #window = 0

  /** W_cubic (RFC 9438 §4.2), in bytes. */
  at(elapsed: Micros, { plateau, secondsToPlateau }: CubicState, datagramSize: Bytes): number {
    const isSameTime = elapsed === this.#elapsed && datagramSize === this.#datagramSize
    if (isSameTime && plateau === this.#plateau && secondsToPlateau === this.#secondsToPlateau) return this.#window
    this.#elapsed = elapsed
    this.#plateau = plateau
    this.#secondsToPlateau = secondsToPlateau
    this.#datagramSize = datagramSize
    const fromPlateau = elapsed / microsPerSecond - secondsToPlateau
    return (this.#window = plateau + datagramSize * steepness * fromPlateau ** 3)
  }
}

export class Cubic implements CongestionController {
  readonly name = "CUBIC"
  readonly #largestWindow: Bytes
  #datagramSize: Bytes
  #state: CubicState
  #sentAt: Micros = Number.NEGATIVE_INFINITY
  #acknowledgedAt: Micros = Number.NEGATIVE_INFINITY
  /** The probe timeout at the last acknowledgement: a longer idle is a long one. */
  #probeTimeout: Micros = 0
  /** The curve now, and a round trip ahead. */
  readonly #present = new CurvePoint()
  readonly #ahead = new CurvePoint()

  constructor(options: ControllerOptions) {
    this.#largestWindow = options.largestWindow
    this.#datagramSize = options.datagramSize
    this.#state = this.#firstState()
  }

  get window(): Bytes {
    return Math.floor(this.#state.window)
  }

  get inSlowStart(): boolean {
    return this.#state.window < this.#state.slowStartThreshold
  }

  handleSent(now: Micros, _bytes: Bytes, inFlightBefore: Bytes): void {
    if (inFlightBefore === 0) this.#endIdle(now)
    this.#sentAt = now
  }

  handleAcknowledged(now: Micros, bytes: Bytes, sentAt: Micros, rtt: RoundTripTime, windowLimited: boolean): void {
    this.#acknowledgedAt = now
    this.#probeTimeout = rtt.probeTimeout()
    if (sentAt <= this.#state.recoveryStart) return
    if (!windowLimited) this.#passUnused(now, rtt)
    else if (this.inSlowStart) this.#growInSlowStart(bytes)
    else this.#growInAvoidance(now, bytes, rtt)
  }

  handleLate(now: Micros): void {
    this.#acknowledgedAt = now
  }

  /** RFC 9438 §4.6, with fast convergence (§4.7). */
  handleCongestion(now: Micros, sentAt: Micros, part: number): CongestionState | undefined {
    const state = this.#state
    if (sentAt <= state.recoveryStart) return undefined
    const before: SavedState = { ...state, savedAt: now }
    const converges = state.window < state.formerMaximum
    state.recoveryStart = now
    state.formerMaximum = converges ? (state.window * (1 + reductionFactor)) / 2 : state.window
    state.window = this.#bound(state.window * (1 - part * (1 - reductionFactor)))
    state.slowStartThreshold = state.window
    state.hasEpoch = false
    state.slowedStart = false
    return before
  }

  /**
   * Other than RFC 9438 §4.9.2 has it, the time since counts for nothing: the window was not there to be used. Where the
   * window has grown beyond the former one meanwhile, a curve begins at it.
   */
  undo(now: Micros, before: CongestionState): void {
    const { window } = this.#state
    const { savedAt, ...state } = before as SavedState
    this.#state = state
    if (window > state.window) state.hasEpoch = false
    state.window = this.#bound(Math.max(window, state.window))
    this.#skipTime(now - savedAt, now)
  }

  /**
   * RFC 9438 §4.8: slow start up to the threshold of the reduction, and from there a curve without a former maximum.
   */
  handlePersistentCongestion(_now: Micros): void {
    const state = this.#state
    state.window = this.#bound(0)
    state.formerMaximum = 0
    state.hasEpoch = false
  }

  setDatagramSize(bytes: Bytes): void {
    this.#datagramSize = bytes
    this.#state.window = this.#bound(this.#state.window)
  }

  restart(): void {
    this.#state = this.#firstState()
    this.#sentAt = Number.NEGATIVE_INFINITY
    this.#acknowledgedAt = Number.NEGATIVE_INFINITY
    this.#probeTimeout = 0
  }

  #firstState(): CubicState {
    return {
      window: this.#bound(initialWindow(this.#datagramSize)),
      slowStartThreshold: Number.POSITIVE_INFINITY,
      recoveryStart: Number.NEGATIVE_INFINITY,
      formerMaximum: 0,
      hasEpoch: false,
      epochStart: 0,
      plateau: 0,
      secondsToPlateau: 0,
      estimateByBytes: 0,
      estimateByTime: 0,
      countedAt: 0,
      slowedStart: false
    }
  }

  /**
   * Idle counts from the later of the last acknowledgement and the last send. From the last send alone, every round
   * trip of a window that each acknowledgement empties would look idle, and the curve would never move (spec §14.5).
   */
  #endIdle(now: Micros): void {
    const idleSince = Math.max(this.#acknowledgedAt, this.#sentAt)
    if (idleSince === Number.NEGATIVE_INFINITY) return
    const idle = now - idleSince
    if (idle > 0) this.#skipTime(idle, now)
    if (this.#probeTimeout > 0 && idle > this.#probeTimeout) this.#state.slowedStart = true
  }

  /** Takes time out of the curve and of the estimate, never moving them into the future. */
  #skipTime(length: Micros, now: Micros): void {
    const state = this.#state
    if (!state.hasEpoch) return
    state.epochStart = Math.min(now, state.epochStart + length)
    state.countedAt = Math.min(now, state.countedAt + length)
  }

  /**
   * Time in which the window was not used is no part of the curve. The estimate goes on, but only back to where the window
   * was: a link with a few records a second would else never regain it (spec §14.4).
   */
  #passUnused(now: Micros, rtt: RoundTripTime): void {
    const state = this.#state
    if (this.inSlowStart) return
    if (!state.hasEpoch) this.#beginEpoch(now)
    const elapsed = now - state.countedAt
    const regained = state.estimateByTime + (renoGrowth * this.#datagramSize * elapsed) / rtt.smoothed
    state.estimateByTime = Math.max(state.estimateByTime, Math.min(regained, state.plateau))
    state.epochStart = Math.min(now, state.epochStart + elapsed)
    state.countedAt = now
  }

  #growInSlowStart(bytes: Bytes): void {
    const state = this.#state
    state.window = this.#bound(state.window + (state.slowedStart ? bytes / 2 : bytes))
  }

  /** RFC 9438 §4.2 to §4.5, for one acknowledged packet. */
  #growInAvoidance(now: Micros, bytes: Bytes, rtt: RoundTripTime): void {
    const state = this.#state
    if (!state.hasEpoch) this.#beginEpoch(now)
    const estimate = this.#advanceEstimate(now, bytes, rtt)
    const elapsed = now - state.epochStart
    if (this.#present.at(elapsed, state, this.#datagramSize) < estimate) {
      state.window = this.#bound(Math.max(state.window, estimate))
      return
    }
    const ahead = this.#ahead.at(elapsed + rtt.smoothed, state, this.#datagramSize)
    const target = Math.min(Math.max(ahead, state.window), 1.5 * state.window)
    state.window = this.#bound(state.window + ((target - state.window) * bytes) / state.window)
  }

  /** Above the former maximum, or without one, the curve starts at its plateau (RFC 9438 §4.2, §4.8). */
  #beginEpoch(now: Micros): void {
    const state = this.#state
    state.hasEpoch = true
    state.epochStart = now
    state.plateau = Math.max(state.window, state.formerMaximum)
    state.secondsToPlateau = Math.cbrt((state.plateau - state.window) / this.#datagramSize / steepness)
    state.estimateByBytes = state.window
    state.estimateByTime = state.window
    state.countedAt = now
  }

  /**
   * The window that Reno would have: 0.53 datagrams more per window acknowledged (RFC 9438 §4.3) or per round trip gone
   * by (RFC 8312 §4.2), whichever is ahead. Time is added up piece by piece, each with its own round-trip time, because
   * dividing all of it by today's would jump when the delay changes.
   */
  #advanceEstimate(now: Micros, bytes: Bytes, rtt: RoundTripTime): number {
    const state = this.#state
    const growth = renoGrowth * this.#datagramSize
    state.estimateByBytes = this.#bound(state.estimateByBytes + (growth * bytes) / state.window)
    state.estimateByTime = this.#bound(state.estimateByTime + (growth * (now - state.countedAt)) / rtt.smoothed)
    state.countedAt = now
    return Math.max(state.estimateByBytes, state.estimateByTime)
  }

  #bound(window: number): number {
    return boundWindow(window, this.#datagramSize, this.#largestWindow)
  }
}

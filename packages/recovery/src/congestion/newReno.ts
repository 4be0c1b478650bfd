import type { Bytes, Micros } from "@pure-link/wire"
import type { RoundTripTime } from "../roundTripTime.ts"
import type { CongestionController, CongestionState, ControllerOptions } from "./CongestionController.ts"
import { boundWindow, initialWindow } from "./CongestionController.ts"

/**
 * NewReno as RFC 9002 §7.3 and Appendix B give it: the plain controller that others are held against.
 */

/** RFC 9002 §7.3.2. */
const reductionFactor = 0.5

interface NewRenoState {
  /** In bytes, with fractions. */
  window: number
  slowStartThreshold: number
  /** When the last reduction was made: packets sent until then belong to it. */
  recoveryStart: Micros
}

export class NewReno implements CongestionController {
  readonly name = "NewReno"
  readonly #largestWindow: Bytes
  #datagramSize: Bytes
  #state: NewRenoState

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

  handleSent(): void {}

  handleAcknowledged(_now: Micros, bytes: Bytes, sentAt: Micros, _rtt: RoundTripTime, windowLimited: boolean): void {
    const state = this.#state
    if (sentAt <= state.recoveryStart || !windowLimited) return
    const growth = this.inSlowStart ? bytes : (this.#datagramSize * bytes) / state.window
    state.window = this.#bound(state.window + growth)
  }

  handleLate(): void {}

  handleCongestion(now: Micros, sentAt: Micros, part: number): CongestionState | undefined {
    const state = this.#state
    if (sentAt <= state.recoveryStart) return undefined
    const before = { ...state }
    state.recoveryStart = now
    state.window = this.#bound(state.window * (1 - part * (1 - reductionFactor)))
    state.slowStartThreshold = state.window
    return before
  }

  undo(_now: Micros, before: CongestionState): void {
    const { window } = this.#state
    this.#state = { ...(before as NewRenoState) }
    this.#state.window = this.#bound(Math.max(window, this.#state.window))
  }

  handlePersistentCongestion(): void {
    this.#state.window = this.#bound(0)
  }

  setDatagramSize(bytes: Bytes): void {
    this.#datagramSize = bytes
    this.#state.window = this.#bound(this.#state.window)
  }

  restart(): void {
    this.#state = this.#firstState()
  }

  #firstState(): NewRenoState {
    return {
      window: this.#bound(initialWindow(this.#datagramSize)),
      slowStartThreshold: Number.POSITIVE_INFINITY,
      recoveryStart: Number.NEGATIVE_INFINITY
    }
  }

  #bound(window: number): number {
    return boundWindow(window, this.#datagramSize, this.#largestWindow)
  }
}

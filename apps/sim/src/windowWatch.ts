import { type Bytes, type Micros, never } from "@pure-link/wire"
import type { DelayStep } from "./options.ts"

/**
 * A flow's congestion window over time: the smallest, the fastest growth within a smoothed round trip, and how long
 * after a delay step it was back where it was. An undone episode gives back what was had; that is no growth.
 */
export class WindowWatch {
  window: Bytes = 0
  smallest: Bytes = Infinity
  largest: Bytes = 0
  /** The largest window(t + RTT) / window(t) since the run began, or was resumed. */
  fastestGrowth = 0
  #countFrom: Micros = 0
  readonly #step: DelayStep | undefined
  #beforeStep: Bytes = 0
  #backAt: Micros = never
  #times: Array<Micros> = []
  #windows: Array<Bytes> = []
  #reference = 0

  constructor(step: DelayStep | undefined) {
    this.#step = step
  }

  handleWindow(now: Micros, window: Bytes, smoothed: Micros): void {
    this.#noteStep(now, window)
    this.window = window
    this.smallest = Math.min(this.smallest, window)
    this.largest = Math.max(this.largest, window)
    const times = this.#times
    const since = now - smoothed
    while (this.#reference + 1 < times.length && times[this.#reference + 1]! <= since) this.#reference++
    if (now >= this.#countFrom && times.length > 0 && times[this.#reference]! <= since) {
      this.fastestGrowth = Math.max(this.fastestGrowth, window / this.#windows[this.#reference]!)
    }
    this.#push(now, window)
    if (this.#reference > 4_096) this.#forget()
  }

  /** Reduced, by an answer or by a timer: what it grows to is measured from here too. */
  handleReduced(now: Micros, window: Bytes): void {
    this.#noteStep(now, window)
    this.window = window
    this.smallest = Math.min(this.smallest, window)
    this.#push(now, window)
  }

  /** An idle time ends: only growth from here on counts. */
  resume(at: Micros): void {
    this.#countFrom = at
    this.fastestGrowth = 0
  }

  handleUndone(): void {
    this.#times.length = this.#windows.length = this.#reference = 0
  }

  /** Milliseconds after the step's end until the window was back; null while it was not, or without a step. */
  get backAfterStepMillis(): number | null {
    if (this.#step === undefined || this.#backAt === never) return null
    return (this.#backAt - this.#step.at - this.#step.duration) / 1_000
  }

  #noteStep(now: Micros, window: Bytes): void {
    if (this.#step === undefined) return
    if (now < this.#step.at) this.#beforeStep = window
    else if (now >= this.#step.at + this.#step.duration && window >= this.#beforeStep) {
      this.#backAt = Math.min(this.#backAt, now)
    }
  }

  #push(now: Micros, window: Bytes): void {
    this.#times.push(now)
    this.#windows.push(window)
  }

  #forget(): void {
    this.#times.splice(0, this.#reference)
    this.#windows.splice(0, this.#reference)
    this.#reference = 0
  }
}

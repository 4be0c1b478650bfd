import { type EndMeasurement, measured, type Sample, sampleNow, type Work } from "./sample.ts"

/**
 * When an end measures itself: between two marks after a warm-up. Each end takes its own marks, so that nothing needs to be
 * told it while it works; as both are in a steady state their figures add up.
 */

export interface Window {
  /** It opens when this time has passed since the first record, */
  readonly warmUpSeconds: number
  /** and so many records were dealt with: a slow start is not a steady state. After ten times the time it opens anyway. */
  readonly warmUpRecords?: number
  /** The window ends after so long, */
  readonly seconds?: number
  /** or once so many records more were dealt with. */
  readonly count?: number
}

export class Meter {
  /** What was measured, once the window is over. */
  result: EndMeasurement | undefined
  readonly #window: Window
  readonly #work: () => Work
  readonly #opened: (() => void) | undefined
  readonly #closed: ((measurement: EndMeasurement) => void) | undefined
  #warmAt = 0
  #from: Sample | undefined

  constructor(
    window: Window,
    work: () => Work,
    when: { readonly opened?: () => void; readonly closed?: (measurement: EndMeasurement) => void } = {}
  ) {
    this.#window = window
    this.#work = work
    this.#opened = when.opened
    this.#closed = when.closed
  }

  /** To be called after every batch with the records dealt with so far. */
  tick(records: number): void {
    if (this.result !== undefined) return
    const now = performance.now()
    if (this.#warmAt === 0) this.#warmAt = now + this.#window.warmUpSeconds * 1_000
    if (this.#from === undefined) {
      if (!this.#isWarm(records, now)) return
      this.#opened?.()
      this.#from = sampleNow(this.#work())
      return
    }
    const { count, seconds = Number.POSITIVE_INFINITY } = this.#window
    const isOver = count === undefined ? now - this.#from.at >= seconds * 1_000 : records - this.#from.records >= count
    if (!isOver) return
    this.result = measured(this.#from, sampleNow(this.#work()))
    this.#closed?.(this.result)
  }

  #isWarm(records: number, now: number): boolean {
    const { warmUpRecords = 0, warmUpSeconds } = this.#window
    return now >= this.#warmAt && (records >= warmUpRecords || now >= this.#warmAt + 9_000 * warmUpSeconds)
  }
}

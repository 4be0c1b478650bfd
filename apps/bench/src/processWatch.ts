import { statSync } from "node:fs"
import { memoryMib, peakMemoryMib } from "./sample.ts"
import { rounded } from "./verdict.ts"

/**
 * What an end costs its machine while it works: CPU time, memory, size of files, and how late its timers are. Costs a
 * few microseconds a second itself.
 */

export interface ProcessUsage {
  readonly user_s: number
  readonly sys_s: number
  /** The most memory of the process since it started, start-up included. */
  readonly rss_max_mib: number
  /** The most that all store files together took; 0 without files. */
  readonly store_max_mib: number
  readonly timer_late_max_ms: number
}

const sampleMillis = 250
/** A timer of so long, all the time, shows how long others have to wait. */
const timerMillis = 10

export class ProcessWatch {
  /** MiB, one for each second. */
  readonly memorySeries: Array<number> = []
  /** Lateness is counted from here on. */
  #timerLate = 0
  #storeMax = 0
  #samples = 0
  #cpu = process.cpuUsage()
  readonly #files: ReadonlyArray<string>
  readonly #sampler: NodeJS.Timeout
  #timer: NodeJS.Timeout | undefined
  #due = 0

  constructor(files: ReadonlyArray<string>) {
    this.#files = files
    this.#sampler = setInterval(() => this.#sample(), sampleMillis)
    this.#arm()
  }

  /** What came before this does not count. */
  begin(): void {
    this.#cpu = process.cpuUsage()
    this.#timerLate = 0
  }

  /** The latest timer since this was asked. */
  takeTimerLateness(): number {
    const late = Math.max(this.#timerLate, performance.now() - this.#due)
    this.#timerLate = 0
    return rounded(late, 2)
  }

  get usage(): ProcessUsage {
    const { system, user } = process.cpuUsage(this.#cpu)
    return {
      user_s: rounded(user / 1e6, 3),
      sys_s: rounded(system / 1e6, 3),
      rss_max_mib: peakMemoryMib(),
      store_max_mib: this.#storeMax,
      timer_late_max_ms: rounded(Math.max(0, this.#timerLate), 2)
    }
  }

  close(): void {
    clearInterval(this.#sampler)
    clearTimeout(this.#timer)
  }

  #sample(): void {
    if (this.#samples++ % (1_000 / sampleMillis) === 0) this.memorySeries.push(memoryMib())
    if (this.#files.length === 0) return
    const mib = this.#files.reduce((sum, file) => sum + sizeOf(file), 0) / 1_048_576
    this.#storeMax = Math.max(this.#storeMax, rounded(mib, 1))
  }

  readonly #arm = (): void => {
    this.#due = performance.now() + timerMillis
    this.#timer = setTimeout(this.#fire, timerMillis)
  }

  readonly #fire = (): void => {
    this.#timerLate = Math.max(this.#timerLate, performance.now() - this.#due)
    this.#arm()
  }
}

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0

import { ReplayWindow } from "@pure-link/keys"
import type { Id64, Micros, PacketNumber } from "@pure-link/wire"

/**
 * Which reply run the sender believes (spec §9.4, §9.5), and which answers of each were already seen. Windows are
 * made only for reply runs whose answers opened, and only the latest few are kept.
 */

const replayDepth = 4096
const runsKept = 4
/** More switches than this within `flappingTime` look like two receivers (spec §9.5). */
const calmSwitches = 8
const flappingTime: Micros = 10_000_000

/**
 * What to do with an opened answer: it is of the current run; it is the first of a run that becomes current, at the
 * start or as a switch; or it is ignored.
 */
export type ReplyRunVerdict = "current" | "first" | "switched" | "ignored"

export class ReplyRuns {
  current: Id64 | undefined
  /** The largest packet number that the current run reported; −1 before any. */
  largestReported: PacketNumber = -1
  /** The largest number of an answer of the current run. */
  largestAnswer: PacketNumber = -1

  /** Most recently used last. */
  readonly #windows: Array<{ readonly replyRun: Id64; readonly window: ReplayWindow }> = []
  /** The times of the latest switches, oldest first. */
  #switches: Array<Micros> = []

  /** Whether any answer of the reply run ever opened. */
  knows(replyRun: Id64): boolean {
    return this.#windowOf(replyRun) !== undefined
  }

  accepts(replyRun: Id64, number: PacketNumber): boolean {
    return this.#windowOf(replyRun)?.accepts(number) ?? true
  }

  /** An answer opened. */
  mark(replyRun: Id64, number: PacketNumber): void {
    let window = this.#windowOf(replyRun)
    if (window === undefined) {
      window = new ReplayWindow(replayDepth)
      this.#windows.push({ replyRun, window })
      if (this.#windows.length > runsKept) {
        this.#windows.splice(
          this.#windows.findIndex((entry) => entry.replyRun !== this.current),
          1
        )
      }
    }
    window.mark(number)
  }

  /** Judges an opened answer that reports numbers up to `reported`, and makes its reply run current if it is due. */
  judge(now: Micros, replyRun: Id64, reported: PacketNumber, smoothedRtt: Micros): ReplyRunVerdict {
    if (replyRun === this.current) {
      this.largestReported = Math.max(this.largestReported, reported)
      return "current"
    }
    if (reported <= this.largestReported) return "ignored"
    const isFirst = this.current === undefined
    if (!isFirst) {
      const latest = this.#switches.at(-1)
      if (latest !== undefined && now - latest < smoothedRtt) return "ignored"
      this.#switches.push(now)
    }
    this.current = replyRun
    this.largestReported = reported
    // An answer of a reply run that was current before may be older than those already heard of it.
    this.largestAnswer = (this.#windowOf(replyRun)?.largest ?? 0) - 1
    return isFirst ? "first" : "switched"
  }

  /** Whether the switches up to now are too many; says so once, and then counts anew. */
  isFlapping(now: Micros): boolean {
    this.#switches = this.#switches.filter((at) => now - at <= flappingTime)
    if (this.#switches.length <= calmSwitches) return false
    this.#switches = this.#switches.slice(-1)
    return true
  }

  #windowOf(replyRun: Id64): ReplayWindow | undefined {
    for (let i = this.#windows.length - 1; i >= 0; i--) {
      const entry = this.#windows[i]!
      if (entry.replyRun === replyRun) return entry.window
    }
    return undefined
  }
}

import { type Micros, never } from "@pure-link/wire"
import type { ReceiverRun } from "./run.ts"

/**
 * Answers that have nothing to say but a raised n (spec §10.6). While the packets of a run come close together, the next
 * packet's answer is about to say it as well, and an answer of its own would double their number.
 */

/** How close packets come, and how long n waits for the next one at most. */
const lingerTime: Micros = 1_000
/** Places that were used up before the lists are cut. */
const mostUsed = 1_024

export class Lingering {
  /** Runs and until when they wait, oldest first from `first` on; those that were answered meanwhile are passed over. */
  private readonly runs: Array<ReceiverRun> = []
  private readonly untils: Array<Micros> = []
  private first = 0

  /** Whether the next packet of this run is to be expected within the time. */
  isWorthwhile(run: ReceiverRun, now: Micros): boolean {
    return now - run.openedAt < lingerTime && run.gap < lingerTime
  }

  add(run: ReceiverRun, now: Micros): void {
    if (run.lingersUntil !== never) return
    run.lingersUntil = now + lingerTime
    this.runs.push(run)
    this.untils.push(run.lingersUntil)
  }

  /** When the first answer has waited for long enough. */
  deadline(): Micros {
    while (this.first < this.runs.length && !this.isWaiting(this.first)) this.first++
    if (this.first >= mostUsed || this.first === this.runs.length) this.cut()
    return this.untils[this.first] ?? never
  }

  /** A run whose answer has waited for long enough. */
  takeDue(now: Micros): ReceiverRun | undefined {
    if (this.deadline() > now) return undefined
    const run = this.runs[this.first++]!
    run.lingersUntil = never
    return run
  }

  private isWaiting(i: number): boolean {
    const run = this.runs[i]!
    return run.lingersUntil === this.untils[i] && !run.isGone
  }

  private cut(): void {
    if (this.first === 0) return
    this.runs.splice(0, this.first)
    this.untils.splice(0, this.first)
    this.first = 0
  }
}

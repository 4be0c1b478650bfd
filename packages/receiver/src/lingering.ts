import { type Micros, never } from "@pure-link/wire"
import type { ReceiverRun } from "./run.ts"

/**
 * Answers that have nothing to say but a raised n (spec §10.6). While the packets of a run come close together, the next
 * packet's answer is about to say it as well, and an answer of its own would double their number.
 */

/** How close packets come, and how long n waits for the next one at most. */
const lingerTime: Micros = 1_000

export class Lingering {
  /** Oldest first; entries of runs that were answered meanwhile are passed over. */
  private waiting: Array<{ readonly run: ReceiverRun; readonly until: Micros }> = []

  /** Whether the next packet of this run is to be expected within the time. */
  isWorthwhile(run: ReceiverRun, now: Micros): boolean {
    return now - run.openedAt < lingerTime && run.gap < lingerTime
  }

  add(run: ReceiverRun, now: Micros): void {
    if (run.lingersUntil !== never) return
    run.lingersUntil = now + lingerTime
    this.waiting.push({ run, until: run.lingersUntil })
  }

  /** When the first answer has waited for long enough. */
  deadline(): Micros {
    let answered = 0
    while (answered < this.waiting.length && !isWaiting(this.waiting[answered]!)) answered++
    if (answered > 0) this.waiting.splice(0, answered)
    return this.waiting[0]?.until ?? never
  }

  /** A run whose answer has waited for long enough. */
  takeDue(now: Micros): ReceiverRun | undefined {
    return this.deadline() <= now ? this.waiting.shift()!.run : undefined
  }
}

const isWaiting = ({ run, until }: { readonly run: ReceiverRun; readonly until: Micros }): boolean =>
  run.lingersUntil === until && !run.isGone

import { type Micros, never } from "@pure-link/wire"
import { challengeTime } from "./answerPath.ts"
import type { ReceiverRun } from "./run.ts"

/**
 * The addresses that wait to be validated (spec §13.2). A run stands in the line once, however often its address changes:
 * one whose turn comes too early, because it was challenged anew, goes to the end. So an address is given up after 10 s,
 * or after 20 s where a former one stood in the line for it.
 */
export class PendingChallenges {
  private runs: Array<ReceiverRun> = []
  /** When each of them is looked at. */
  private ats: Array<Micros> = []
  private next = 0

  add(run: ReceiverRun): void {
    if (run.path.isQueued) return
    run.path.isQueued = true
    this.runs.push(run)
    this.ats.push(run.path.challengedAt + challengeTime)
  }

  /** Gives up what was not answered in time; says how many. */
  giveUp(now: Micros): number {
    let given = 0
    while (this.next < this.runs.length && this.ats[this.next]! <= now) {
      const run = this.runs[this.next++]!
      run.path.isQueued = false
      if (!this.isPending(run)) continue
      if (run.path.giveUp(now)) given += 1
      else this.add(run)
    }
    this.cut()
    return given
  }

  deadline(): Micros {
    while (this.next < this.runs.length && !this.isPending(this.runs[this.next]!)) {
      this.runs[this.next++]!.path.isQueued = false
    }
    this.cut()
    return this.ats[this.next] ?? never
  }

  private isPending(run: ReceiverRun): boolean {
    return !run.isGone && run.path.challengedAt !== never
  }

  /** Lets go of the places that were used up, now and then. */
  private cut(): void {
    if (this.next === 0) return
    if (this.next < this.runs.length && this.next < 1_024) return
    this.runs = this.runs.slice(this.next)
    this.ats = this.ats.slice(this.next)
    this.next = 0
  }
}

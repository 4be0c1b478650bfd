import type { InboxRun } from "@pure-link/ports"
import type { RecordNumber } from "@pure-link/wire"

/** Whose the records of a log are: runs of consecutive numbers of one source, by position. */
interface Run {
  readonly firstPosition: number
  readonly source: string
  readonly firstNumber: RecordNumber
  count: number
}

export class RunList {
  #runs: Array<Run> = []

  /** The records from a position on, which follow those before. */
  append(firstPosition: number, source: string, firstNumber: RecordNumber, count: number): void {
    const run = this.#runs[this.#runs.length - 1]
    if (run?.source === source && run.firstNumber + run.count === firstNumber) run.count += count
    else this.#runs.push({ firstPosition, source, firstNumber, count })
  }

  /** The runs of some records, added to those before them. */
  slice(firstPosition: number, count: number, runs: Array<InboxRun> = []): Array<InboxRun> {
    const end = firstPosition + count
    let position = firstPosition
    for (let i = this.#indexOf(firstPosition); position < end; i++) {
      const { source, ...run } = this.#runs[i]!
      const skipped = position - run.firstPosition
      const taken = Math.min(run.count - skipped, end - position)
      const firstNumber = run.firstNumber + skipped
      const before = runs[runs.length - 1]
      if (before?.source === source && before.firstNumber + before.count === firstNumber) {
        runs[runs.length - 1] = { ...before, count: before.count + taken }
      } else runs.push({ source, firstNumber, count: taken })
      position += taken
    }
    return runs
  }

  /** Forgets what stands before a position, in large steps. */
  dropBefore(position: number): void {
    const kept = this.#indexOf(position)
    if (kept >= 32 && 2 * kept >= this.#runs.length) this.#runs = this.#runs.slice(kept)
  }

  copy(): RunList {
    const copy = new RunList()
    copy.#runs = this.#runs.map((run) => ({ ...run }))
    return copy
  }

  #indexOf(position: number): number {
    let low = 0
    let high = this.#runs.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (this.#runs[middle]!.firstPosition <= position) low = middle
      else high = middle - 1
    }
    return low
  }
}

/**
 * How much of the time in which the threads of some processes, and this one, were ready to run they waited for a processor,
 * as Linux counts it: nearly none on a quiet machine, most of it on one that is busy with other things, where whatever we
 * compute takes so much longer, and that is none of our doing. Where nobody counts, nobody waits.
 */
import { readdirSync, readFileSync } from "node:fs"

/** Threads that only help V8: nothing waits for them. */
const isBeside = /^(V8Worker|DelayedTaskSche|SignalInspector)/

interface Times {
  readonly ran: number
  readonly waited: number
}

const timesOf = (thread: string): Times => {
  if (isBeside.test(readFileSync(`${thread}/comm`, "utf8"))) return { ran: 0, waited: 0 }
  const [ran, waited] = readFileSync(`${thread}/schedstat`, "utf8").split(" ").map(Number) as [number, number]
  return { ran, waited }
}

/** Of all threads together, since they began. */
const timesOfAll = (processes: ReadonlyArray<number>): Times => {
  let [ran, waited] = [0, 0]
  try {
    for (const process of processes) {
      for (const thread of readdirSync(`/proc/${process}/task`)) {
        const times = timesOf(`/proc/${process}/task/${thread}`)
        ran += times.ran
        waited += times.waited
      }
    }
  } catch {
    /* a thread that just ended, or a system that does not count */
  }
  return { ran, waited }
}

export class Waiting {
  readonly #processes: ReadonlyArray<number>
  readonly #before: Times

  constructor(processes: ReadonlyArray<number>) {
    this.#processes = [...processes, process.pid]
    this.#before = timesOfAll(this.#processes)
  }

  /** From 0 to 1, since the beginning. */
  get share(): number {
    const after = timesOfAll(this.#processes)
    const ran = after.ran - this.#before.ran
    const waited = after.waited - this.#before.waited
    return ran > 0 && waited > 0 ? waited / (ran + waited) : 0
  }
}

import type { TraceEvent } from "@pure-link/trace"
import type { Bytes } from "@pure-link/wire"
import { NewReno } from "../src/congestion/newReno.ts"
import { NumberList } from "../src/numberList.ts"
import type { NumberRanges } from "../src/numberRanges.ts"
import { Policies, type PolicyMakers } from "../src/policies.ts"
import { Recovery } from "../src/recovery.ts"

/** A recovery in the hands of a test, and the calls of a sender in short. */

export const nothing = { lost: 0, reductions: 0, episodes: 0, undone: 0, blackHoles: 0, persistentCongestions: 0 }
export const datagram = 1_200
export const ms = 1_000

export const numbers = (list: NumberList | NumberRanges): Array<number> =>
  (list instanceof NumberList ? [...list.values.subarray(0, list.length)] : inRanges(list)).sort((a, b) => a - b)

const inRanges = ({ starts, ends, length }: NumberRanges): Array<number> =>
  [...starts.subarray(0, length)].flatMap((start, i) => Array.from({ length: ends[i]! - start }, (_, j) => start + j))

/** A recovery over NewReno, whose window is easy to reckon, and the calls of a sender in short. */
export class Fixture {
  readonly events: Array<TraceEvent> = []
  readonly recovery: Recovery

  constructor(flights = 1_024, policies: Partial<PolicyMakers> = {}, datagramSize: Bytes = datagram) {
    this.recovery = new Recovery({
      policies: { ...Policies.defaults, congestionControl: { make: (options) => new NewReno(options) }, ...policies },
      largestWindow: 10_000 * datagram,
      datagramSize,
      flights,
      trace: { packets: true, emit: (event) => this.events.push(event) }
    })
  }

  get window(): number {
    return this.recovery.controller.window / datagram
  }

  send(now: number, count: number, bytes: Bytes = datagram): void {
    for (let i = 0; i < count; i++) this.recovery.handleSent(now, bytes, false)
  }

  /** One answer that reports these ranges. */
  answer(now: number, ranges: ReadonlyArray<readonly [number, number]>, seen = false): void {
    this.recovery.beginAnswer(now)
    for (const [low, high] of ranges) this.recovery.acknowledge(low, high, seen)
    this.recovery.endAnswer(now, Math.max(...ranges.map(([, high]) => high)), 0)
  }

  outcome(): Record<string, Array<number>> {
    const lists = Object.entries<NumberList | NumberRanges>({ ...this.recovery.outcome })
    return Object.fromEntries(lists.filter(([, list]) => list.length > 0).map(([name, list]) => [name, numbers(list)]))
  }

  /** What was concluded so far. */
  counts(): Record<string, number> {
    const { lost, reductions, episodes, undone, blackHoles, persistentCongestions } = this.recovery.counters
    return { lost, reductions, episodes, undone, blackHoles, persistentCongestions }
  }

  cuts(): { reductions: number; collapses: number } {
    const { persistentCongestions, reductions } = this.recovery.counters
    return { reductions, collapses: persistentCongestions }
  }

  /** Times out at each deadline, sending a probe when asked to, until `end`; returns the times of probes. */
  probesUntil(end: number): Array<number> {
    const times: Array<number> = []
    for (let now = this.recovery.deadline(); now <= end; now = this.recovery.deadline()) {
      if (this.recovery.handleTimeout(now) !== "probe") continue
      times.push(now)
      this.recovery.handleSent(now, datagram, true)
    }
    return times
  }
}

/** A fixture with one answered packet, number 0, at an RTT of 100 ms: smoothed 100, variance 50, probe timeout 300. */
export const measured = (flights?: number, policies?: Partial<PolicyMakers>, datagramSize?: Bytes): Fixture => {
  const fixture = new Fixture(flights, policies, datagramSize)
  fixture.send(0, 1, datagramSize)
  fixture.answer(100 * ms, [[0, 0]])
  return fixture
}

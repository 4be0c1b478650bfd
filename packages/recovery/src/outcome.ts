import { NumberList } from "./numberList.ts"
import { NumberRanges } from "./numberRanges.ts"

/**
 * What an answer or a timeout changed: packet numbers, in lists that are used again. A number is in one of them at most.
 */
export interface RecoveryOutcome {
  /** In flight until now: all parts are held (ACK) … */
  readonly acked: NumberRanges
  /** … or not (SEEN): they need sending again. */
  readonly seen: NumberRanges
  /** Declared lost now. */
  readonly lost: NumberList
  /** Declared lost earlier, given up or not, and now acknowledged after all (ACK). */
  readonly late: NumberList
  /** Declared lost earlier, and now opened after all (SEEN): its parts still need sending again. */
  readonly lateSeen: NumberList
}

export interface RecoveryCounters {
  sent: number
  probes: number
  acked: number
  seen: number
  /** Declared lost; of these … */
  lost: number
  /** … proved late, and … */
  late: number
  /** … were given up: lost indeed, as far as one can know. */
  givenUp: number
  /** Given up, and acknowledged after all. */
  givenUpTooSoon: number
  reductions: number
  /** Episodes of congestion events that overlap, and those that were undone (spec §14.3). */
  episodes: number
  undone: number
  pathProbes: number
  blackHoles: number
  persistentCongestions: number
  /** Acknowledgements of numbers never sent (spec §9.4). */
  violations: number
}

export const noOutcome = (): RecoveryOutcome => ({
  acked: new NumberRanges(),
  seen: new NumberRanges(),
  lost: new NumberList(),
  late: new NumberList(),
  lateSeen: new NumberList()
})

export const clearOutcome = ({ acked, seen, lost, late, lateSeen }: RecoveryOutcome): void => {
  acked.clear()
  seen.clear()
  lost.clear()
  late.clear()
  lateSeen.clear()
}

export const noCounts = (): RecoveryCounters => ({
  sent: 0,
  probes: 0,
  acked: 0,
  seen: 0,
  lost: 0,
  late: 0,
  givenUp: 0,
  givenUpTooSoon: 0,
  reductions: 0,
  episodes: 0,
  undone: 0,
  pathProbes: 0,
  blackHoles: 0,
  persistentCongestions: 0,
  violations: 0
})

import type { Micros } from "@pure-link/wire"
import { atLeastZero } from "./bounds.ts"
import { checkLinkOptions, type LinkOptions, perfectLink } from "./LinkOptions.ts"

/**
 * How a link changes over time: loss that ends, a delay that steps up and down, a path that swallows large datagrams
 * from some moment on (`mtu`), a blackout (`cut`).
 */
export interface ScheduleStep {
  /** Virtual time; one that is past counts as now. */
  readonly atMicros: Micros
  /** What changes then; the other options stay. */
  readonly options?: Partial<LinkOptions>
  /** Whether the link is cut from then on, as by a partition but in this direction only; unchanged if not given. */
  readonly cut?: boolean
}

/** Throws a RangeError that names what is out of its bounds. */
export const checkScheduleStep = ({ atMicros, options }: ScheduleStep): void => {
  atLeastZero("atMicros", atMicros)
  checkLinkOptions({ ...perfectLink, ...options })
}

import type { TraceEvent } from "./traceEvent.ts"

/**
 * Where a machine puts its events. Emitting is a plain call on the machine's path: a sink keeps it short and never
 * throws.
 */
export interface Trace {
  /** Whether events of single packets are wanted; if not, machines do not build them. */
  readonly packets: boolean
  emit(event: TraceEvent): void
}

/** Hears nothing. */
export const silentTrace: Trace = { packets: false, emit: () => {} }

import * as Schema from "effect/Schema"

/**
 * What the machines tell of themselves: one schema for every reader (metrics, logs, qlog, a status page). `at` is the
 * machine's time in µs, `number` a packet number, and sizes are bytes. Events of single packets are built only for a
 * trace that asks for them.
 */

const Micros = Schema.Finite
const Count = Schema.Natural
const Id64 = Schema.BigInt

/** Why a datagram had no effect (spec §15.1, §15.3). */
export const DropReason = Schema.Literals([
  "header",
  "unknown key",
  "unknown run",
  "replayed",
  "not authentic",
  "expired epoch",
  "malformed",
  "limit"
])
export type DropReason = typeof DropReason.Type

/** Why the congestion window shrank (spec §14.4). */
export const WindowCause = Schema.Literals(["loss", "persistent congestion"])
export type WindowCause = typeof WindowCause.Type

/** Why the size of datagrams changed (spec §14.8). */
export const SizeCause = Schema.Literals(["probe acknowledged", "black hole"])
export type SizeCause = typeof SizeCause.Type

export const TraceEvent = Schema.TaggedUnion({
  /**
   * A packet left (per packet). `recordBytes` are those of the records it carries; `plain`: its header is short and it
   * carries no control frame; `full`: more was waiting than fitted.
   */
  PacketSent: {
    at: Micros,
    number: Count,
    bytes: Count,
    epoch: Count,
    probe: Schema.Boolean,
    recordBytes: Count,
    plain: Schema.Boolean,
    full: Schema.Boolean
  },
  /** A packet was authentic and well formed (per packet). */
  PacketOpened: { at: Micros, number: Count, bytes: Count, epoch: Count },
  /** A datagram had no effect (per packet). */
  PacketDropped: { at: Micros, bytes: Count, reason: DropReason },
  /** A flight was declared lost (per packet, spec §14.2). */
  FlightLost: { at: Micros, number: Count, bytes: Count, sentAt: Micros },
  /** A flight that had been declared lost was acknowledged (per packet, spec §14.3). */
  FlightLate: { at: Micros, number: Count, sentAt: Micros },
  /** A flight that had been declared lost was given up: it was lost indeed, as far as one can know (per packet). */
  FlightGivenUp: { at: Micros, number: Count },
  /** An answer was taken in (per packet): how the sender stands after it. */
  AnswerTaken: { at: Micros, window: Count, inFlightBytes: Count, smoothed: Micros, slowStart: Schema.Boolean },
  /** A round trip was measured (once per answer at most; counts as per packet, spec §14.1). */
  RoundTripMeasured: { at: Micros, latest: Micros, smoothed: Micros, variance: Micros, minimum: Micros },
  /** The probe timeout expired the `count`th time since the last answer (spec §9.7). */
  ProbeTimeoutExpired: { at: Micros, count: Count, inFlightBytes: Count },
  /** The congestion window shrank. */
  WindowReduced: { at: Micros, cause: WindowCause, window: Count, inFlightBytes: Count },
  /** Every loss of an episode proved late: the congestion state is what it was before (spec §14.3). */
  EpisodeUndone: { at: Micros, window: Count },
  /** Datagrams with records are at most this large from now on (spec §14.8). */
  DatagramSizeChanged: { at: Micros, bytes: Count, cause: SizeCause },
  /** Packets are sealed (sender) or answered (receiver) under a new epoch from now on (spec §7). */
  EpochAdvanced: { at: Micros, epoch: Count },
  /** The sender follows another reply run, or the receiver has begun one (spec §9.5, §10.8). */
  ReplyRunSwitched: { at: Micros, replyRun: Id64 },
  /** The sender learnt, or the receiver told, that records up to n are stored (spec §10.6). */
  Stored: { at: Micros, n: Count, creditRecords: Count, creditBytes: Count },
  /** A refusal began, or changed its reason (spec §11). */
  Refused: { at: Micros, reason: Count },
  RefusalEnded: { at: Micros },
  /** An authenticated peer broke a rule; it had no effect (spec §15.3). */
  Violation: { at: Micros, detail: Schema.String }
})
export type TraceEvent = typeof TraceEvent.Type

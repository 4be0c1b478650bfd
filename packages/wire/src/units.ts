/**
 * The units that every room speaks. They are plain numbers, so that the packet path pays nothing for them; names say the
 * unit where a type cannot. Only ids, which are compared and never counted, are bigints.
 */

/** A point in time or a length of time, in whole microseconds of the monotonic clock. */
export type Micros = number
/** A number of bytes. */
export type Bytes = number
/** The full number of a packet in its run or reply run, below 2^53 (spec §3.5). */
export type PacketNumber = number
/** The number of a record in its generation, from 1, below 2^53 (spec §1). */
export type RecordNumber = number
/** An epoch of a run, from 0, below 2^32 (spec §7). */
export type Epoch = number
/** Eight random or derived bytes: a run, reply run, generation, life, shape or token. */
export type Id64 = bigint

/** The time that never comes: a deadline of nothing. */
export const never: Micros = Number.POSITIVE_INFINITY

/**
 * The wire constants of spec §17: what the peer relies on. Local choices stand with the rules that use them.
 */

/** Payload that every path carries (spec §3.1). */
export const smallestDatagram = 1_200
/** The largest datagram payload that is ever sent (spec §3.1). */
export const largestDatagram = 1_452
/** The longest record (spec §2.4). */
export const longestRecord = 16_777_216
/** Names of sources and inputs: 1 to this many bytes of UTF-8 (spec §4.3). */
export const longestName = 64
/** Lives that one STREAM frame lists at most (spec §8.2). */
export const livesInStream = 8
/** Parts of one RECORDS frame at most (spec §4.1). */
export const partsInFrame = 32
/** The record credit's upper bound (spec §10.7). */
export const largestRecordCredit = 65_536
/** Short headers reach this far beyond the last number heard of (spec §17). */
export const receiveRange = 65_536
/** Numbers that acknowledgement state and replay windows reach back at least (spec §10.4). */
export const acknowledgementReach = 16_384
/** Data packets in epoch ≥ 1 are at least this long, so that LOST is smaller than its cause (spec §3.8). */
export const smallestEpochPacket = 47
/** The length of a LOST packet (spec §12.2). */
export const lostLength = 45
/** Bytes sent to an unvalidated address, per byte received from it (spec §10.9). */
export const amplificationLimit = 3
/** The AEAD's tag (spec §3.1). */
export const tagLength = 16
/** A run uses fewer record numbers than this above its base (spec §4.3). */
export const recordNumbersOfRun = 2 ** 32 - 2 ** 20
/** The longest bitmap of ACK_MAP and SEEN_MAP (spec §4.5). */
export const longestAcknowledgementMap = 1_300

import { ok as assert } from "node:assert/strict"
import type { Micros } from "@pure-link/wire"

/**
 * How long an epoch serves (spec §7.6, §18): the sender offers the next one at the first two, both ends stop using it at
 * the others. The last two stay within the limits of AES-128-GCM that RFC 9001 §6.6 gives.
 */
export interface EpochLimits {
  /** The sender offers the next epoch with its first packet this long after one began, by its own clock. */
  readonly lifetimeMicros: Micros
  /** … or after this many packets. */
  readonly packets: number
  /** Packets that one key seals, or opens, at most: 2^23 by RFC 9001 §6.6. */
  readonly mostPackets: number
  /** Forged packets that one key may have turned away: 2^52 by RFC 9001 §6.6. */
  readonly mostForged: number
}

export const defaultEpochLimits: EpochLimits = {
  lifetimeMicros: 3_600_000_000,
  packets: 2 ** 22,
  mostPackets: 2 ** 23,
  mostForged: 2 ** 52
}

/** Fills in what is not given; throws a RangeError for what no epoch may have. */
export const epochLimits = (chosen: Partial<EpochLimits> = {}): EpochLimits => {
  const limits = { ...defaultEpochLimits, ...chosen }
  assert(Object.values(limits).every((limit) => typeof limit === "number"))
  if (!(limits.lifetimeMicros >= 1_000)) throw new RangeError("an epoch lives for 1 ms at least")
  if (!(limits.mostPackets >= 2 && limits.mostPackets <= 2 ** 23)) throw new RangeError("a key seals 2 to 2^23 packets")
  if (!(limits.packets >= 1 && limits.packets < limits.mostPackets)) {
    throw new RangeError("the next epoch is offered after 1 packet at least, and before the key is used up")
  }
  if (!(limits.mostForged >= 1 && limits.mostForged <= 2 ** 52)) throw new RangeError("1 to 2^52 forged packets")
  return limits
}

import type { Bytes, Micros } from "@pure-link/wire"
import { atLeast, atLeastZero, probability } from "./bounds.ts"
import { type BurstLossOptions, checkBurstLoss } from "./BurstLoss.ts"

/**
 * What one direction between two hosts does to datagrams. They first pass the bottleneck; behind it they meet the mtu,
 * loss and burst loss, and those that come through are delayed, duplicated and corrupted. All of it is decided when a
 * datagram is sent, by the options of that moment.
 */
export interface LinkOptions {
  /** The name of the bottleneck that datagrams pass first, made by `Network.bottleneck`; undefined: there is none. */
  readonly bottleneck: string | undefined
  /** From sending, or from leaving the bottleneck, to arrival; at least 1 µs is taken. */
  readonly delayMicros: Micros
  /** Added uniformly from −jitter to +jitter, so that datagrams overtake each other. */
  readonly jitterMicros: Micros
  /** Probability that a datagram is lost, each for itself. */
  readonly loss: number
  /** Losses in bursts, besides `loss`; undefined: there are none. */
  readonly burstLoss: BurstLossOptions | undefined
  /** Probability that a second copy arrives, with a delay drawn anew. It takes nothing of the bottleneck. */
  readonly duplicate: number
  /** Probability that one bit of a datagram that arrives, copy or not, is flipped; which one is random. */
  readonly corrupt: number
  /** Probability that a datagram is held back by `reorderMicros` more. */
  readonly reorder: number
  readonly reorderMicros: Micros
  /** Datagrams with more payload than this vanish. */
  readonly mtu: Bytes
}

export const perfectLink: LinkOptions = {
  bottleneck: undefined,
  delayMicros: 1_000,
  jitterMicros: 0,
  loss: 0,
  burstLoss: undefined,
  duplicate: 0,
  corrupt: 0,
  reorder: 0,
  reorderMicros: 0,
  mtu: 65_507
}

/** Throws a RangeError that names the option if one is out of its bounds. */
export const checkLinkOptions = (options: LinkOptions): void => {
  atLeastZero("delayMicros", options.delayMicros)
  atLeastZero("jitterMicros", options.jitterMicros)
  atLeastZero("reorderMicros", options.reorderMicros)
  probability("loss", options.loss)
  probability("duplicate", options.duplicate)
  probability("corrupt", options.corrupt)
  probability("reorder", options.reorder)
  atLeast("mtu", options.mtu, 0)
  if (options.burstLoss !== undefined) checkBurstLoss(options.burstLoss)
}

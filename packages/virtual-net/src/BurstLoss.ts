import { probability } from "./bounds.ts"
import type { SeededStream } from "./SeededStream.ts"

/**
 * Losses that come in bursts (Gilbert–Elliott): a link is good, and loses nothing by this, or bad. Each datagram first
 * may turn the link, then is lost with probability `loss` if it is bad. Over a long time `enter / (enter + leave)` of
 * the datagrams meet a bad link, `1 / leave` in a row on average.
 */
export interface BurstLossOptions {
  /** Probability per datagram that a good link turns bad. */
  readonly enter: number
  /** Probability per datagram that a bad link turns good. */
  readonly leave: number
  /** Probability that a datagram is lost while the link is bad. */
  readonly loss: number
}

export class BurstLoss {
  readonly #random: SeededStream
  #isBad = false

  constructor(random: SeededStream) {
    this.#random = random
  }

  /** Whether the next datagram is lost. Takes two draws; without options the link is good. */
  draw(options: BurstLossOptions | undefined): boolean {
    const turn = this.#random.next()
    const loss = this.#random.next()
    if (options === undefined) return (this.#isBad = false)
    if (turn < (this.#isBad ? options.leave : options.enter)) this.#isBad = !this.#isBad
    return this.#isBad && loss < options.loss
  }
}

export const checkBurstLoss = ({ enter, leave, loss }: BurstLossOptions): void => {
  probability("burstLoss.enter", enter)
  probability("burstLoss.leave", leave)
  probability("burstLoss.loss", loss)
}

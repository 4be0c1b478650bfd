import type { Pair } from "@pure-link/keys"
import { type Id64, type Micros, PacketEcho, PacketHeader } from "@pure-link/wire"
import { openLost, sameEcho } from "./lostRules.ts"
import type { Network, Sent } from "./network.ts"
import { Violation } from "./violation.ts"
import { ZeroEpoch } from "./zeroEpoch.ts"

/**
 * The runs of one output, one after the other. A further one follows LOST, and only one that echoes a packet which the
 * former run did send; of those at most one in 2 s begins with records (spec §12.3).
 */
export class FreshRuns {
  #present: ZeroEpoch
  /** When the run began that was the last to put records under epoch 0 because of LOST. */
  #startedAt: Micros = Number.NEGATIVE_INFINITY
  #began: Micros = Number.NEGATIVE_INFINITY
  /** Answers that were heard before the present run. */
  #answers = 0

  readonly staticSecret: Uint8Array
  readonly pair: Pair
  readonly network: Network

  constructor(staticSecret: Uint8Array, pair: Pair, network: Network, run: Id64) {
    this.staticSecret = staticSecret
    this.pair = pair
    this.network = network
    this.#present = new ZeroEpoch(staticSecret, pair, run, false)
  }

  get run(): Id64 {
    return this.#present.run
  }

  /** The output goes on in another run; `lost` is the LOST that it was handed last, if that was just now. */
  handleFresh(run: Id64, lost: Sent | undefined, now: Micros, answers: number): void {
    if (this.#present.recordBytes > 0 && this.#began > this.#startedAt) this.#startedAt = this.#began
    if (lost !== undefined && !this.#echoes(lost))
      throw new Violation("a fresh run began on a LOST that echoes no packet of the former one")
    const objection =
      lost === undefined
        ? "that no LOST asked for"
        : now - this.#startedAt < startPause
          ? "within 2 s of another such start"
          : undefined
    this.#present = new ZeroEpoch(this.staticSecret, this.pair, run, true, objection)
    this.#began = now
    this.#answers = answers
  }

  /** A data packet leaves, after so many answers in all. */
  check(packet: Uint8Array, answers: number): void {
    this.#present.check(packet, answers > this.#answers)
  }

  #echoes({ bytes }: Sent): boolean {
    const header = new PacketHeader()
    const echo = new PacketEcho()
    if (!openLost(bytes, header, echo, this.staticSecret, this.pair)) return false
    const wanted = new PacketEcho()
    return (this.network.runs.get(this.run) ?? []).some((sent) => {
      wanted.take(sent.bytes, 0, sent.bytes.length, sent.spoken.number)
      return sameEcho(wanted, echo)
    })
  }
}

const startPause: Micros = 2_000_000

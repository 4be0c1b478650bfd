import { type Micros, never } from "@pure-link/wire"
import type { Peers } from "./peers.ts"
import type { ReceiverRun } from "./run.ts"

/** When the next former epoch of any run is to be erased, whether packets come or not (spec §7.7). */
export class FormerEpochs {
  expireAt: Micros = never

  /** The run has another epoch now, and maybe a former one. */
  note(run: ReceiverRun): void {
    this.expireAt = Math.min(this.expireAt, run.epochs.expiresAt)
  }

  expire(now: Micros, peers: Peers): void {
    this.expireAt = never
    for (const peer of peers.all()) {
      for (const run of peer.runs) {
        run.epochs.expire(now)
        this.note(run)
      }
    }
  }
}

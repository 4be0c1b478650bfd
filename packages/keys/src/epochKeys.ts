import { type Epoch, type Id64, type Micros, readUint32 } from "@pure-link/wire"
import type { CryptoSuite, PacketKey } from "./cryptoSuite.ts"
import { answerKey, dataKey, type Pair } from "./schedule.ts"

/** What the keys of an epoch were used for; kept by whoever uses them. */
export class EpochUse {
  /** When the epoch began to be used. */
  since: Micros = 0
  opened = 0
  sealed = 0
  /** Packets that claimed the epoch and did not open. */
  forged = 0
}

/**
 * One epoch of a run as either end holds it: its secret, and the packet keys that come of it. Erased as soon as it can
 * open nothing any more (spec §7.7).
 */
export class EpochKeys {
  /** What the keys were used for, for the limits of spec §7.6. */
  readonly use = new EpochUse()
  readonly epoch: Epoch
  readonly secret: Uint8Array
  readonly dataKey: PacketKey
  private readonly suite: CryptoSuite
  private readonly pair: Pair
  private readonly run: Id64

  constructor(suite: CryptoSuite, pair: Pair, run: Id64, epoch: Epoch, secret: Uint8Array) {
    this.epoch = epoch
    this.secret = secret
    this.suite = suite
    this.pair = pair
    this.run = run
    this.dataKey = dataKey(suite, secret, pair, run, epoch)
  }

  /** Derives the key of answers in this epoch and a reply run. */
  answerKey(replyRun: Id64): PacketKey {
    return answerKey(this.suite, this.secret, this.pair, this.run, this.epoch, replyRun)
  }

  /** Overwrites the secret and ends the data key. E0 belongs to the pair and outlives its runs. */
  erase(): void {
    this.dataKey.release()
    if (this.epoch !== 0) this.secret.fill(0)
  }
}

/** How long a former epoch goes on opening late packets and answers (spec §7.3, §7.4, §18). */
export const formerEpochLife: Micros = 10_000_000

/** The first 4 B of an OFFER's key, which its ACCEPT repeats (spec §4). */
export const echoOf = (offerKey: Uint8Array): number => readUint32(offerKey, 0)

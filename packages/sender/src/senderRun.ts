import { id64, type Pair, SenderEpochs } from "@pure-link/keys"
import { initialWindow, type PolicyMakers, Recovery, type RecoveryCounters } from "@pure-link/recovery"
import type { CryptoSuite, Entropy } from "@pure-link/keys"
import type { Trace } from "@pure-link/trace"
import {
  type Bytes,
  type Epoch,
  type Id64,
  type PacketNumber,
  type RecordNumber,
  runPrefixOf,
  type StreamName
} from "@pure-link/wire"
import { Credit } from "./credit.ts"
import { FlightContents } from "./flightContents.ts"
import { ReplyRuns } from "./replyRuns.ts"
import { StreamNotice } from "./streamNotice.ts"

/**
 * All state that begins anew with a run (spec §1, §7.1): its id and numbers, epochs, flights, STREAM, reply runs and
 * credit. A link has one run, and another once its record numbers are nearly used up (spec §4.3).
 */

export interface RunOptions {
  readonly suite: CryptoSuite
  readonly entropy: Entropy
  readonly pair: Pair
  readonly staticSecret: Uint8Array
  readonly stream: StreamName & { readonly shape: Id64 }
  readonly generation: Id64
  readonly policies: PolicyMakers
  readonly datagramSize: Bytes
  readonly trace: Trace
  /** Counts on from run to run. */
  readonly recoveryCounters: RecoveryCounters
}

/** The controller may not ask for more flights than half of recovery's ring. */
const largestWindowDatagrams = 8_192

export class SenderRun {
  readonly id: Id64
  readonly prefix: number
  readonly epochs: SenderEpochs
  readonly recovery: Recovery
  readonly flights: FlightContents
  readonly replyRuns = new ReplyRuns()
  readonly stream: StreamNotice
  readonly credit: Credit
  /** Any answer of this run was opened: no records go under epoch 0 any more (spec §7.1). */
  answered = false
  /** Packets go in epoch 0 with a new OFFER and without records, until something is heard (spec §9.8). */
  inSilentRecovery = false
  /** Record bytes sent under epoch 0. */
  zeroBytes: Bytes = 0
  /**
   * Flights before this number are not sent again when they are lost: what they carried is queued or sent anew
   * already.
   */
  resendFrom: PacketNumber = 0
  /** The last n of the current reply run; −1 before its first STORED. */
  n: RecordNumber = -1

  /** Flights before this number have had their copy, or need none (spec §14.9). */
  copyFrom: PacketNumber = 0

  readonly #offersOnly: boolean
  readonly #datagramSize: Bytes

  constructor(options: RunOptions, firstUnstored: RecordNumber, offersOnly: boolean) {
    const { suite, entropy, pair, staticSecret, datagramSize, trace } = options
    this.id = id64(entropy)
    this.prefix = runPrefixOf(this.id)
    this.epochs = new SenderEpochs({ suite, entropy, pair, run: this.id, staticSecret })
    const largestWindow = largestWindowDatagrams * datagramSize
    const { policies, recoveryCounters: counters } = options
    this.recovery = new Recovery({ policies, datagramSize, largestWindow, trace, counters })
    this.flights = new FlightContents(this.recovery.ringSize)
    this.stream = new StreamNotice(options.stream, options.generation, firstUnstored)
    this.credit = new Credit(firstUnstored - 1, datagramSize)
    this.#offersOnly = offersOnly
    this.#datagramSize = datagramSize
  }

  /** The epoch of the next packet. */
  get sealingEpoch(): Epoch {
    return this.inSilentRecovery ? 0 : this.epochs.epoch
  }

  /** Whether the next packet may carry records: forward secrecy (spec §7.1, §7.8). */
  get mayCarryRecords(): boolean {
    if (this.sealingEpoch > 0) return true
    if (this.inSilentRecovery || this.answered || this.#offersOnly) return false
    return this.zeroBytes + this.#datagramSize <= initialWindow(this.#datagramSize)
  }
}

import { type CryptoSuite, type Entropy, type EpochLimits, id64, type Pair, SenderEpochs } from "@pure-link/keys"
import { initialWindow, type Recovery } from "@pure-link/recovery"
import {
  type Bytes,
  type Epoch,
  type Id64,
  type PacketNumber,
  type RecordNumber,
  runPrefixOf,
  type StreamName
} from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import { Credit } from "./credit.ts"
import type { FlightContents } from "./flightContents.ts"
import { ReplyRuns } from "./replyRuns.ts"
import { StreamNotice } from "./streamNotice.ts"

/**
 * All state that begins anew with a run (spec §1, §7.1): its id and numbers, epochs, flights, STREAM, reply runs and
 * credit. A link has one run, and another once its record numbers are nearly used up (spec §4.3) or the receiver has lost
 * it (spec §12.3). What is known of the path outlives runs: recovery and the arrays beside it are the link's, and only
 * their numbers begin again.
 */

export interface RunOptions {
  readonly suite: CryptoSuite
  readonly entropy: Entropy
  readonly pair: Pair
  readonly staticSecret: Uint8Array
  readonly stream: StreamName & { readonly shape: Id64 }
  readonly generation: Id64
  readonly epochLimits: EpochLimits
  /** A deliberate fault, see SenderFaults. */
  readonly recordsInEpochZero: boolean
}

/** What a link has for all its runs; no number of a former run is left in it. */
export interface RunFlights {
  readonly recovery: Recovery
  readonly flights: FlightContents
}

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
  /** An answer opened in an epoch ≥ 1: the receiver had the run's secrets, and may lose them (spec §12.3). */
  confirmed = false
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
  readonly #recordsInEpochZero: boolean

  constructor(options: RunOptions, shared: RunFlights, firstUnstored: RecordNumber, offersOnly: boolean) {
    const { suite, entropy, pair, staticSecret, epochLimits: limits } = options
    assert(shared.recovery.nextNumber === 0, "numbers begin with the run")
    this.id = id64(entropy)
    this.prefix = runPrefixOf(this.id)
    this.epochs = new SenderEpochs({ suite, entropy, pair, run: this.id, staticSecret, limits })
    this.recovery = shared.recovery
    this.flights = shared.flights
    this.stream = new StreamNotice(options.stream, options.generation, firstUnstored)
    this.credit = new Credit(firstUnstored - 1, this.recovery.datagramSize)
    this.#offersOnly = offersOnly
    this.#recordsInEpochZero = options.recordsInEpochZero
  }

  /** The epoch of the next packet. */
  get sealingEpoch(): Epoch {
    return this.inSilentRecovery ? 0 : this.epochs.epoch
  }

  /** Whether the next packet may carry records: forward secrecy (spec §7.1, §7.8). */
  get mayCarryRecords(): boolean {
    if (this.sealingEpoch > 0) return true
    if (this.inSilentRecovery || this.#offersOnly) return false
    if (this.#recordsInEpochZero) return true
    const { datagramSize } = this.recovery
    return !this.answered && this.zeroBytes + datagramSize <= initialWindow(datagramSize)
  }
}

import { type CryptoSuite, type Entropy, type EpochLimits, epochLimits, type KeyPair } from "@pure-link/keys"
import type { Trace } from "@pure-link/trace"
import type { Bytes, ReceiverMemo } from "@pure-link/wire"
import type { ReceiverFaults } from "./faults.ts"
import { ReceiverMemory } from "./memory.ts"
import type { InboxCursors } from "./stream.ts"

/** What a receiver is made of. */
export interface ReceiverOptions {
  readonly suite: CryptoSuite
  readonly entropy: Entropy
  readonly identity: KeyPair
  /** The part of the inbox that the machine reads. */
  readonly cursors: InboxCursors
  /** What one stream may hold beyond n (spec §10.7); 16 MiB by default. */
  readonly streamBytes?: Bytes
  /** What all streams may take together, but for the reserve of 16 MiB; 256 MiB by default. */
  readonly totalBytes?: Bytes
  /** What outlives the process, so that the next one opens the peers' packets at once (spec §12.1); nothing by default. */
  readonly memo?: ReceiverMemo
  /** How long epochs serve (spec §7.6). */
  readonly epochLimits?: Partial<EpochLimits>
  /** Live runs of all peers together; one beyond is refused (spec §12.4). 32,768 by default, about 8 KiB each. */
  readonly mostLiveRuns?: number
  readonly trace?: Trace
  /** Deliberate faults, for tests of the tests. */
  readonly faults?: ReceiverFaults
}

const defaultStreamBytes: Bytes = 16 * 1_048_576
const defaultTotalBytes: Bytes = 256 * 1_048_576

const defaultMostLiveRuns = 32_768

/** What all runs are made with. */
export const runOptionsOf = (options: ReceiverOptions) => ({
  suite: options.suite,
  entropy: options.entropy,
  limits: epochLimits(options.epochLimits),
  ignoreMemoBound: options.faults?.ignoreMemoBound ?? false,
  mostLiveRuns: options.mostLiveRuns ?? defaultMostLiveRuns
})

/** The bounds of memory that options choose (spec §10.7, §18). */
export const memoryOf = (options: ReceiverOptions): ReceiverMemory =>
  new ReceiverMemory(options.streamBytes ?? defaultStreamBytes, options.totalBytes ?? defaultTotalBytes)

import type { PacketKey, SealedPackets } from "@pure-link/keys"
import {
  type Address,
  type Epoch,
  expandPacketNumber,
  type Micros,
  readUint24,
  readUint32,
  receiveRange,
  shortHeaderLength,
  tagLength
} from "@pure-link/wire"
import type { ReceiverRun } from "./run.ts"

/**
 * Data packets in a row that are most likely of the run of the packet before, opened in one call (spec §10.1): those with
 * a short header whose first 9 bytes (flags, key id, run prefix) are the same. Nothing is decided here but which packets to
 * try under the one key that these bytes name in that run; what does not open is read again alone, as any packet, but
 * not tried again under this key.
 */

/** Datagrams as a socket hands them over: `bytes[starts[i], ends[i])` came from `from[i]`. */
export interface DatagramColumns {
  readonly bytes: Uint8Array
  readonly starts: Uint32Array
  readonly ends: Uint32Array
  readonly from: ReadonlyArray<Address>
}

export class PacketRow implements SealedPackets {
  starts: Uint32Array = noIndexes
  ends: Uint32Array = noIndexes
  numbers = new Float64Array(0)
  opened = new Uint8Array(0)
  /** What the row was opened under. */
  key: PacketKey | undefined
  epoch: Epoch = 0
  private run: ReceiverRun | undefined
  /** What comes after the row may be of this run: a packet in the row that was not of its run may have opened in it. */
  private next: ReceiverRun | undefined
  private flags = 0
  private keyId = 0
  private runPrefix = 0

  /** The packet at `start` opened in this run: the next ones may be like it. */
  follow(run: ReceiverRun, bytes: Uint8Array, start: number): void {
    this.next = run
    this.flags = bytes[start]!
    this.keyId = readUint32(bytes, start + 1)
    this.runPrefix = run.prefix
  }

  /**
   * Opens the packets of the row that begins at index `from`, and returns the index after it; `from` when there is none.
   * `opened` tells which of them did.
   */
  open(now: Micros, datagrams: DatagramColumns, from: number, to: number): number {
    const key = this.keyOfNext(now)
    if (key === undefined) return from
    const { replay } = (this.run = this.next!)
    const { largest } = replay
    const { bytes, starts, ends } = datagrams
    if (this.numbers.length < ends.length) {
      this.numbers = new Float64Array(ends.length)
      this.opened = new Uint8Array(ends.length)
    }
    let end = from
    for (; end < to && this.isLike(bytes, starts[end]!, ends[end]!); end++) {
      const number = expandPacketNumber(readUint24(bytes, starts[end]! + 9), largest)
      if (number > largest + receiveRange || !replay.accepts(number)) break
      this.numbers[end] = number
    }
    if (end === from) return from
    this.starts = starts
    this.ends = ends
    this.key = key
    key.openAll(bytes, this, from, end, shortHeaderLength)
    return end
  }

  /** The run that the row was opened in. */
  get ofRun(): ReceiverRun {
    return this.run!
  }

  /** The one key for these flags; undefined when there is none, or more than one. */
  private keyOfNext(now: Micros): PacketKey | undefined {
    const { next: run, flags } = this
    if (run === undefined || run.isGone || flags > epochBitsMask) return undefined
    const keys = run.epochs.openingKeys(now, flags)
    if (keys.length !== 1) return undefined
    this.epoch = run.epochs.epochOf(keys[0]!)
    return keys[0]
  }

  private isLike(bytes: Uint8Array, start: number, end: number): boolean {
    return (
      bytes[start] === this.flags &&
      readUint32(bytes, start + 1) === this.keyId &&
      readUint32(bytes, start + 5) === this.runPrefix &&
      end - start >= shortHeaderLength + tagLength
    )
  }
}

/** A short header has no other flags (spec §3.2). */
const epochBitsMask = 0x0f

const noIndexes = new Uint32Array(0)

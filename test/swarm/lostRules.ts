import { lostKey, type Pair } from "@pure-link/keys"
import {
  type Address,
  type Id64,
  Kind,
  lostLength,
  type Micros,
  PacketEcho,
  PacketHeader,
  runPrefixOf,
  sameAddress,
  tagLength
} from "@pure-link/wire"
import type { Delivery } from "./network.ts"
import { quickSuite as suite } from "../world/quickSuite.ts"
import { Violation } from "./violation.ts"

/**
 * What LOST must keep to in one life of a receiver (spec §12.2): 45 B and shorter than its cause, one per cause, back to
 * where that came from, at most one and then ten a second; never for a run that opened a packet in this life, or that
 * the memo held.
 */
/** Runs, with the bits of their epochs. */
export type RememberedEpochs = ReadonlyArray<readonly [Id64, ReadonlyArray<number>]>

interface KnownRun {
  readonly run: Id64
  readonly how: "opened a packet" | "the memo held"
  /** Bits of the epochs that the memo held; undefined for a run that opened a packet. */
  readonly epochs: ReadonlyArray<number> | undefined
}

export class LostRules {
  sent = 0
  /** The datagrams that were read last, with what was known of their runs then, and whether they drew LOST. */
  #causes: Array<{ readonly delivery: Delivery; readonly known: KnownRun | undefined; drawn: boolean }> = []
  /** By prefix, as a short header tells no more. */
  readonly #knownRuns = new Map<number, KnownRun>()
  readonly #restored = new Set<Id64>()
  #tokens = 1
  #filledAt: Micros = 0
  readonly #header = new PacketHeader()
  readonly #wanted = new PacketEcho()
  readonly #echo = new PacketEcho()

  readonly staticSecret: Uint8Array
  readonly pair: Pair
  readonly #isHeld: (run: Id64) => boolean

  /** `isHeld` tells whether the memo still holds a run; `remembered`: the runs, and the bits of their epochs, that the memo holds as this life begins. */
  constructor(staticSecret: Uint8Array, pair: Pair, isHeld: (run: Id64) => boolean, remembered: RememberedEpochs) {
    this.staticSecret = staticSecret
    this.pair = pair
    this.#isHeld = isHeld
    for (const [run, epochs] of remembered) this.#knownRuns.set(runPrefixOf(run), { run, how: "the memo held", epochs })
  }

  /** A batch of datagrams is read next. */
  beginBatch(): void {
    this.#causes = []
  }

  /** One of them is read, which claims this run. */
  handleRead(delivery: Delivery, runPrefix: number): void {
    this.#causes.push({ delivery, known: this.#knownRuns.get(runPrefix), drawn: false })
  }

  handleOpened(run: Id64): void {
    this.#knownRuns.set(runPrefixOf(run), { run, how: "opened a packet", epochs: undefined })
  }

  /** A run of the memo ended: its sender, if there is one, is to begin anew (spec §12.4). */
  handleEnded(run: Id64): void {
    if (this.#restored.has(run)) this.#knownRuns.delete(runPrefixOf(run))
  }

  handleRestored(run: Id64): void {
    this.#restored.add(run)
  }

  /** LOST leaves, at a time of the receiver's clock. */
  check(lost: Uint8Array, to: Address, now: Micros): void {
    this.sent += 1
    if (lost.length !== lostLength) throw new Violation(`LOST of ${lost.length} B`)
    const prefix = this.#read(lost)
    const cause = this.#causes.find(({ delivery, drawn }) => !drawn && this.#isEchoOf(delivery))
    if (cause === undefined) throw new Violation("LOST that echoes none of the packets just read, or one of them twice")
    cause.drawn = true
    const { delivery, known } = cause
    if (delivery.bytes.length <= lost.length) throw new Violation("LOST as long as its cause")
    if (!sameAddress(delivery.from, to)) throw new Violation("LOST went elsewhere than where its cause came from")
    if (known !== undefined && isOf(delivery, known) && (known.epochs === undefined || this.#isHeld(known.run)))
      throw new Violation(`LOST for a run that ${known.how} before: ${prefix.toString(16)}, after ${delivery.origin}`)
    this.#tokens = Math.min(1, this.#tokens + ((now - this.#filledAt) * lostPerSecond) / 1_000_000)
    this.#filledAt = now
    if (this.#tokens < 0.999) throw new Violation("LOST faster than one and then ten a second to one peer")
    this.#tokens -= 1
  }

  /** Opens LOST, as any holder of E0 can; returns its run prefix. */
  #read(lost: Uint8Array): number {
    const header = this.#header
    if (!openLost(lost, header, this.#echo, this.staticSecret, this.pair))
      throw new Violation("LOST does not open under the static keys")
    return header.runPrefix
  }

  #isEchoOf({ bytes }: Delivery): boolean {
    const { runPrefix } = this.#header
    const cause = causeHeader
    if (!cause.read(bytes, 0, bytes.length) || cause.runPrefix !== runPrefix || cause.epochBits === 0) return false
    this.#wanted.take(bytes, 0, bytes.length, cause.number)
    return sameEcho(this.#wanted, this.#echo)
  }
}

const lostPerSecond = 10
const causeHeader = new PacketHeader()

/**
 * Whether a packet claims a run of which something opened; or one that the memo held, and is not made up, or old, in an epoch that
 * nobody holds, which may mean that the memo is older than the run.
 */
const isOf = ({ bytes, origin }: Delivery, { run, epochs }: KnownRun): boolean => {
  causeHeader.read(bytes, 0, bytes.length)
  if (causeHeader.kind === Kind.longData && causeHeader.run !== run) return false
  return epochs === undefined || origin === "sent" || epochs.includes(causeHeader.epochBits)
}

/** Reads header and echo of a LOST; false when it does not open. */
export const openLost = (
  lost: Uint8Array,
  header: PacketHeader,
  echo: PacketEcho,
  staticSecret: Uint8Array,
  pair: Pair
): boolean => {
  const bytes = lost.slice()
  if (!header.read(bytes, 0, bytes.length)) return false
  const key = lostKey(suite, staticSecret, pair, header.replyRun)
  if (!key.open(bytes, 0, header.length, bytes.length, 0)) return false
  return echo.read(bytes, header.length, bytes.length - tagLength)
}

export const sameEcho = (a: PacketEcho, b: PacketEcho): boolean =>
  a.flags === b.flags && a.number === b.number && a.tagHigh === b.tagHigh && a.tagLow === b.tagLow

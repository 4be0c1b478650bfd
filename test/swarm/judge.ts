import type { ReceiverEvent } from "@pure-link/receiver"
import { type Id64, lifeOf, type RecordNumber, RefusalReason, type StoreIntent } from "@pure-link/wire"
import type { Configuration } from "./configuration.ts"
import { type Entry, followerOf } from "./history.ts"
import type { OutboxDisk } from "./outboxDisk.ts"
import type { Output } from "./output.ts"
import type { Stream } from "./stream.ts"
import { Violation } from "./violation.ts"

/**
 * Holds what the machines do and say against the reference model: what is to be stored, what was stored, and whether
 * every typed complaint is deserved.
 */
export class Judge {
  /** The output of every run, also of processes that died. */
  readonly runs = new Map<Id64, Output>()

  /** Every run that some receiver began. */
  readonly begun = new Set<Id64>()

  readonly streams: ReadonlyArray<Stream>
  readonly configuration: Configuration

  constructor(streams: ReadonlyArray<Stream>, configuration: Configuration) {
    this.streams = streams
    this.configuration = configuration
  }

  stream(name: { readonly source: string; readonly input: string }): Stream {
    const stream = this.streams.find((known) => known.source === name.source && known.input === name.input)
    if (stream === undefined) throw new Violation(`no outbox sends "${name.source}" → "${name.input}"`)
    return stream
  }

  /**
   * What a receiver asks to store follows the disk and is a piece of one history (spec §2.3). Undefined for a batch that
   * was made before the inbox was put back: its commit must fail.
   */
  identify(intent: StoreIntent): ReadonlyArray<Entry> | undefined {
    const stream = this.stream(intent)
    const generation = stream.generation(intent.generation)
    if (generation === undefined) throw new Violation("a generation that no outbox has is to be stored")
    const { tip } = stream
    if (tip !== undefined && generation.order < tip.generation.order)
      throw new Violation("records of a replaced generation are to be stored")
    let entry = tip?.generation === generation ? tip : generation.root
    if (intent.batch.first > entry.number + 1 && stream.fallenTo.size > 0) return undefined
    if (intent.batch.first !== entry.number + 1)
      throw new Violation(`asked to store from ${intent.batch.first} on while the disk holds ${entry.number}`)
    let at = 0
    return Array.from(intent.batch.sizes, (size) => {
      const number = entry.number + 1
      const bytes = intent.batch.bytes.subarray(at, (at += size))
      const follower = followerOf(entry, lifeOf(intent.lives, number)?.life, bytes)
      if (follower === undefined) throw new Violation(`record ${number} to be stored is in no history`)
      return (entry = follower)
    })
  }

  /** A batch became durable. */
  handleDurable(intent: StoreIntent, entries: ReadonlyArray<Entry> | undefined): void {
    const stream = this.stream(intent)
    const first = entries?.[0]
    const last = entries?.at(-1)
    if (entries === undefined || first === undefined || last === undefined)
      throw new Violation("a batch was stored that follows nothing")
    const { tip } = stream
    const follows = tip?.generation === first.generation ? first.previous === tip : first.number === 1
    if (!follows) throw new Violation(`record ${first.number} was stored after one of another history`)
    const former = tip?.generation === first.generation ? stream.tips.slice(0, -1) : stream.tips
    stream.tips = [...former, last]
    for (const entry of entries) entry.generation.stored.add(entry)
  }

  /** STORED reached a sender: the very records of its outbox are, or were, on disk (spec §2.2). */
  handleStored({ disk }: Output, n: RecordNumber): void {
    const entry = disk.entry(n)
    if (entry === undefined || !disk.generation.stored.has(entry))
      throw new Violation(`STORED ${n} of ${disk.last} was never on disk`)
  }

  /** A sender reported a refusal: its stream deserves it, or did a moment ago. */
  handleRefused(output: Output, reason: RefusalReason): void {
    const { stream } = output
    if (reason <= RefusalReason.sourceNotAllowed ? stream.excuses.has(reason) : this.#deserves(output, reason)) return
    throw new Violation(`an honest stream was refused for reason ${reason}, as its sender reports`)
  }

  /** A receiver reported a refusal: the stream deserves it now (spec §11.1). */
  handleRefusalBegan(event: ReceiverEvent & { readonly _tag: "RefusalBegan" }): void {
    const output = this.runs.get(event.run)
    if (output === undefined) throw new Violation("a run that no sender began was refused")
    const { reason } = event
    const deserved =
      reason <= RefusalReason.sourceNotAllowed
        ? this.configuration.refusalOf(output.stream, output.stream.shape) === reason
        : this.#deserves(output, reason)
    if (!deserved) throw new Violation(`an honest stream was refused for reason ${reason}`)
  }

  /** A sender stopped because of a fork: there must be one (spec §8.5). */
  handleForked({ disk }: Output, detail: string): void {
    if (!disk.isForked) throw new Violation(`an honest stream was called a fork: ${detail}`)
  }

  /** A sender says that the inbox lacks records that it removed (spec §8.7). */
  handleBehind({ stream, disk }: Output, n: RecordNumber): void {
    if (!fellBehind(stream, disk)) throw new Violation(`an inbox was called behind at ${n}, which it is not`)
  }

  #deserves({ stream, disk }: Output, reason: RefusalReason): boolean {
    if (reason === RefusalReason.forkedOutbox) return disk.isForked
    if (reason === RefusalReason.recordsGone) return fellBehind(stream, disk)
    if (reason === RefusalReason.retiredGeneration) return disk.generation !== stream.generations.at(-1)
    return false
  }
}

/** Whether the inbox was put back to where it lacks records that the outbox has removed. */
const fellBehind = (stream: Stream, disk: OutboxDisk): boolean =>
  (stream.fallenTo.get(disk.generation) ?? Number.POSITIVE_INFINITY) < disk.removedThrough

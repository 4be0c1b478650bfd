import {
  type Bytes,
  type CommitOutcome,
  type Id64,
  largestRecordCredit,
  type Micros,
  never,
  type RecordNumber,
  RefusalReason,
  type StoreIntent,
  type StreamCursor,
  type StreamName
} from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import { Assembly } from "./assembly.ts"
import type { ReceiverFaults } from "./faults.ts"
import { MemoryShare, overheadAhead, type ReceiverMemory } from "./memory.ts"
import type { ReceiverRun } from "./run.ts"

/**
 * What the receiver knows of one (source, input): which generation it holds parts of, how far it is stored, the commit
 * under way, and the credit that all runs of the stream are told (spec §8, §10.5–§10.8).
 */

/** The part of an inbox that the machine reads; its answers come from memory. */
export interface InboxCursors {
  cursor(name: StreamName): StreamCursor | undefined
  isRetired(name: StreamName, generation: Id64): boolean
  retiredCount(name: StreamName): number
}

/** One batch for the inbox, unless one record alone is longer. */
const largestBatch: Bytes = 4 * 1_048_576
/** When a failed commit is tried again. */
const retryAfter: Micros = 1_000_000
/** For so long a new generation cannot be replaced through a run that began before its own (spec §8.3). */
const startTime: Micros = 10_000_000
/** Retired generations of a stream (spec §8.3). */
const mostRetired = 64
/** Record credit before any record was stored (spec §10.7). */
const firstRecordCredit = 1_024
/** The mean record size is that of about this many records stored last. */
const recentRecords = 4_096

export class ReceiverStream implements StreamName {
  readonly source: string
  readonly input: string
  readonly key: string
  /** The runs that carry it, of every generation. */
  readonly runs: Array<ReceiverRun> = []
  /** The generation whose parts are held; undefined before any. */
  generation: Id64 | undefined
  /** The life of its record n; 0n when n is 0. */
  life: Id64
  readonly assembly: Assembly
  readonly share: MemoryShare
  /** The commit under way, or the one that failed and waits for `retryAt`. */
  intent: StoreIntent | undefined
  isCommitting = false
  /** The last commit failed, and none succeeded since: no credit (spec §10.7). */
  isFailing = false
  /** The last answer gave no record credit for want of room: who asks again has records (spec §9.6, §10.7). */
  isTurnedAway = false
  /** When the failed commit may be handed out again; `never` when none waits. */
  retryAt: Micros = never
  /** Whether it stands in the receiver's list of streams to store. */
  isQueued = false
  private readonly cursors: InboxCursors
  /** The cursor of the inbox as last heard of. */
  private known: StreamCursor | undefined
  private readonly faults: ReceiverFaults
  /** Generations replaced here that the inbox does not know as retired yet, or never stored. */
  private readonly replaced = new Set<Id64>()
  /** What the commit under way belonged to was dropped. */
  private isOrphaned = false
  /**
   * The order of the newest run that carried the present generation in epoch ≥ 1, where no replay gets: a run that
   * began before it replaces nothing, or late packets of an abandoned outbox would retire its successor (spec §8.3).
   */
  private carriedBy = Number.NEGATIVE_INFINITY
  /** The order of the run that brought the present generation, under any epoch, and when. */
  private startedBy = Number.NEGATIVE_INFINITY
  private startedAt: Micros = Number.NEGATIVE_INFINITY
  private recentBytes: Bytes = 0
  private recentCount = 0

  constructor(key: string, name: StreamName, cursors: InboxCursors, memory: ReceiverMemory, faults: ReceiverFaults) {
    this.key = key
    this.source = name.source
    this.input = name.input
    this.cursors = cursors
    this.share = new MemoryShare(memory)
    this.faults = faults
    const cursor = cursors.cursor(this)
    this.known = cursor
    if (this.generation !== cursor?.generation) this.carriedBy = Number.NEGATIVE_INFINITY
    this.generation = cursor?.generation
    this.life = cursor?.life ?? 0n
    this.assembly = new Assembly(cursor?.n ?? 0, this.life, this.share, faults)
  }

  /** The last stored record of a generation: 0 for one that is not adopted. */
  storedOf(generation: Id64): RecordNumber {
    return generation === this.generation ? this.assembly.n : 0
  }

  /** What STORED says to runs of a generation (spec §10.6). */
  reportedOf(generation: Id64): { readonly n: RecordNumber; readonly life: Id64 } {
    if (generation !== this.generation) return nothingStored
    const { assembly } = this
    // The fault `storedBeforeCommit`: reports what is complete before the inbox confirmed it (spec §2.2). Tests only.
    if (this.faults.storedBeforeCommit === true) return { n: assembly.complete, life: assembly.completeLife }
    return { n: assembly.n, life: this.life }
  }

  /** Reasons 5 and 6: whether a run of this generation, with this lowest number held, is refused (spec §8.3, §8.7). */
  refusalOf(generation: Id64, lowestHeld: RecordNumber, order: number): RefusalReason | undefined {
    if (this.isRetired(generation)) return RefusalReason.retiredGeneration
    if (generation !== this.generation && this.isAdopted && order < this.carriedBy) {
      return RefusalReason.retiredGeneration
    }
    if (lowestHeld > this.storedOf(generation) + 1) return RefusalReason.recordsGone
    if (generation !== this.generation && this.generation !== undefined && this.retiredCount >= mostRetired) {
      return RefusalReason.retiredGeneration
    }
    return undefined
  }

  /**
   * Whether records of this generation may be kept now; a packet of epoch ≥ 1 makes a new one replace the known one
   * (spec §8.3). `replaced`: it just did, and what was held of the former one is gone.
   */
  adopt(now: Micros, generation: Id64, inLiveEpoch: boolean, order: number): "held" | "replaced" | "waits" {
    if (generation === this.generation) {
      if (inLiveEpoch) this.carriedBy = Math.max(this.carriedBy, order)
      return "held"
    }
    const { isAdopted } = this
    if (isAdopted && (!inLiveEpoch || order < this.carriedBy || this.isStarting(now, order))) return "waits"
    if (isAdopted) {
      this.replaced.add(this.generation!)
      this.share.endTurn()
    }
    this.dropHeld({ generation, n: 0, life: 0n })
    if (inLiveEpoch) this.carriedBy = order
    this.startedBy = order
    this.startedAt = now
    return isAdopted ? "replaced" : "held"
  }

  /** Whether `adopt` of a packet in epoch ≥ 1, of this generation and run, would change nothing. */
  isCarriedBy(generation: Id64, order: number): boolean {
    return generation === this.generation && order <= this.carriedBy
  }

  /** A run of a generation went live: if it is the present one, no run that began before may replace it (spec §8.3). */
  noteLive(generation: Id64, order: number): void {
    if (generation === this.generation) this.carriedBy = Math.max(this.carriedBy, order)
  }

  /**
   * Whether the present generation began only lately, in a run that is newer than the asking one: what that one carries
   * may be late, of an outbox that was abandoned, while its successor has not yet come to epoch 1 (spec §8.3).
   */
  private isStarting(now: Micros, order: number): boolean {
    return order < this.startedBy && now - this.startedAt < startTime
  }

  /** Something of the present generation is stored or held. */
  get isAdopted(): boolean {
    return this.generation !== undefined && (this.assembly.n > 0 || this.assembly.isHolding)
  }

  /** Bytes past n: what is held of them and what is free (spec §10.7). */
  get creditBytes(): Bytes {
    if (this.isFailing) return 0
    const { limit, memory } = this.share
    return Math.min(limit, this.assembly.heldBytes + memory.free, 2 ** 32 - 1)
  }

  /** Whether record n+1 is here, or can be served: there is room, or the reserve is to be had (spec §10.7). */
  get servesNext(): boolean {
    const { assembly, share } = this
    return assembly.complete > assembly.n || share.mayTakeReserve || share.hasRoom(Math.max(1, share.lacking))
  }

  /** The sender asks although it was turned away, so that it has records: it waits for the reserve (spec §10.7). */
  handleAsked(): void {
    if (this.isTurnedAway && !this.servesNext) this.share.takeReserve()
  }

  get creditRecords(): number {
    if (this.isFailing || !this.servesNext) return 0
    if (this.recentCount === 0) return firstRecordCredit
    const meanSize = Math.max(1, this.recentBytes / this.recentCount)
    const keepable = this.assembly.heldRecords + Math.floor(this.share.memory.overheadFree / overheadAhead)
    return Math.min(largestRecordCredit, Math.max(1, Math.min(keepable, Math.floor(this.creditBytes / meanSize))))
  }

  /** Whether `takeIntent` would return something. */
  get canStore(): boolean {
    if (this.isCommitting || this.retryAt !== never) return false
    return this.intent !== undefined || this.assembly.complete > this.assembly.n
  }

  /** The next commit: the failed one again, or what is complete. At most one is under way (spec §10.5). */
  takeIntent(): StoreIntent | undefined {
    if (!this.canStore) return undefined
    this.intent ??= this.nextIntent()
    this.isCommitting = this.intent !== undefined
    return this.intent
  }

  /** The commit is done. `conflict`: what was held is dropped, and the cursor is that of the inbox (spec §8.6). */
  handleStored(intent: StoreIntent, outcome: CommitOutcome): "stored" | "conflict" {
    assert(intent === this.intent && this.isCommitting)
    this.intent = undefined
    this.isCommitting = false
    this.isFailing = false
    const wasOrphaned = this.isOrphaned
    this.setOrphaned(false)
    const { cursor } = outcome
    this.known = cursor
    if (outcome._tag === "Stored") this.countStored(intent)
    // What it belonged to was dropped, and other things may be held since: they start from what was stored now.
    if (
      wasOrphaned &&
      outcome._tag === "Stored" &&
      (this.generation === intent.generation || !this.assembly.isHolding)
    ) {
      this.restore(cursor)
      return "conflict"
    }
    // What became of a generation that was replaced meanwhile says nothing of the present one.
    if (this.generation !== undefined && intent.generation !== this.generation) return "stored"
    if (outcome._tag === "Conflict" || this.generation === undefined || cursor!.n < this.assembly.n) {
      this.restore(cursor)
      return "conflict"
    }
    this.life = cursor!.life
    if (cursor!.n > this.assembly.n) this.share.endTurn()
    this.assembly.advance(cursor!.n, cursor!.life)
    this.pruneReplaced()
    return "stored"
  }

  /** Whether the inbox stands elsewhere than it was heard to. */
  hasMoved(cursor: StreamCursor | undefined): boolean {
    const { known } = this
    if (known === undefined || cursor === undefined) return known !== cursor
    return known.generation !== cursor.generation || known.n !== cursor.n || known.life !== cursor.life
  }

  /** The commit failed: its batch is kept and tried again (spec §10.5), unless what it belonged to is gone. */
  handleStoreFailed(now: Micros, intent: StoreIntent): void {
    assert(intent === this.intent && this.isCommitting)
    this.isCommitting = false
    if (this.isOrphaned) return this.forgetIntent()
    this.isFailing = true
    this.retryAt = now + retryAfter
  }

  /** Nothing waits to be tried again: no failure holds the credit back any more (spec §10.7). */
  private forgetIntent(): void {
    this.intent = undefined
    this.setOrphaned(false)
    this.isFailing = false
    this.retryAt = never
  }

  /** Drops everything held and continues from a cursor of the inbox. */
  restore(cursor: StreamCursor | undefined): void {
    this.known = cursor
    if (cursor !== undefined) this.replaced.delete(cursor.generation)
    this.dropHeld(cursor)
    this.share.endTurn()
    this.pruneReplaced()
  }

  /** A batch that waits to be tried again goes with what is held; one under way is only counted until it is done. */
  private dropHeld(cursor: StreamCursor | undefined): void {
    if (this.isCommitting) this.setOrphaned(true)
    else this.forgetIntent()
    this.generation = cursor?.generation
    this.life = cursor?.life ?? 0n
    this.assembly.reset(cursor?.n ?? 0, this.life)
  }

  /** The batch of an orphaned commit still counts. */
  private setOrphaned(isOrphaned: boolean): void {
    this.isOrphaned = isOrphaned
    this.share.setOrphaned(isOrphaned ? this.intent!.batch.bytes : undefined)
  }

  /** Whether a generation is refused for ever: the inbox knows, or it was replaced since (spec §8.3). */
  private isRetired(generation: Id64): boolean {
    return generation !== this.generation && (this.replaced.has(generation) || this.cursors.isRetired(this, generation))
  }

  private get retiredCount(): number {
    return this.cursors.retiredCount(this) + this.replaced.size
  }

  /** The inbox has taken over: it knows these as retired itself. */
  private pruneReplaced(): void {
    for (const generation of this.replaced) {
      if (this.cursors.isRetired(this, generation)) this.replaced.delete(generation)
    }
  }

  private nextIntent(): StoreIntent | undefined {
    const cut = this.assembly.batch(largestBatch)
    if (cut === undefined) return undefined
    return { source: this.source, input: this.input, generation: this.generation!, batch: cut.batch, lives: cut.lives }
  }

  private countStored(intent: StoreIntent): void {
    this.recentBytes += intent.batch.bytes.length
    this.recentCount += intent.batch.sizes.length
    while (this.recentCount > recentRecords) {
      this.recentBytes /= 2
      this.recentCount /= 2
    }
  }
}

const nothingStored = { n: 0, life: 0n } as const

/** One key for (source, input): the length tells where the source ends. */
export const streamKey = (source: string, input: string): string => `${source.length}:${source}${input}`

import { type Id64, type Life, lifeOf, type RecordNumber, RefusalReason } from "@pure-link/wire"
import type { ReceiverFaults } from "./faults.ts"
import { mayFollow } from "./lives.ts"
import type { ReceiverRun } from "./run.ts"
import type { ReceiverMemory } from "./memory.ts"
import { type InboxCursors, ReceiverStream, streamKey } from "./stream.ts"

/**
 * The inputs of a receiver and its streams, and the judgement which of the refusals of spec §11.1 holds for a run. A
 * stream is here as long as a run carries it or a commit of it is under way, so that runs bound their number.
 */
export class Streams {
  private readonly shapes = new Map<string, Id64>()
  private readonly byKey = new Map<string, ReceiverStream>()
  private readonly cursors: InboxCursors
  private readonly memory: ReceiverMemory
  private readonly faults: ReceiverFaults

  constructor(cursors: InboxCursors, memory: ReceiverMemory, faults: ReceiverFaults) {
    this.cursors = cursors
    this.memory = memory
    this.faults = faults
  }

  addInput(input: string, shape: Id64): void {
    this.shapes.set(input, shape)
  }

  removeInput(input: string): void {
    this.shapes.delete(input)
  }

  all(): ReadonlyArray<ReceiverStream> {
    return [...this.byKey.values()]
  }

  find(source: string, input: string): ReceiverStream | undefined {
    return this.byKey.get(streamKey(source, input))
  }

  /** Which refusal holds for a run now; it is assembled in its stream unless one of reasons 1 to 3 does. */
  judge(run: ReceiverRun): RefusalReason | undefined {
    const frame = run.stream
    if (frame === undefined) return run.isSurplus ? RefusalReason.tooManyRuns : undefined
    const outside = this.judgeName(run, frame)
    if (outside !== undefined) {
      this.leave(run)
      return outside
    }
    const stream = run.assembledIn ?? this.join(run, frame.source, frame.input)
    if (run.isSurplus) return RefusalReason.tooManyRuns
    if (run.isLive) stream.noteLive(frame.generation, run.order)
    return stream.refusalOf(frame.generation, run.lowestHeld, run.order) ?? judgeFork(run, stream)
  }

  /** The run is gone, or must not be kept here: its stream goes with its last run, and what was held of it. */
  leave(run: ReceiverRun): void {
    const stream = run.assembledIn
    if (stream === undefined) return
    run.assembledIn = undefined
    stream.runs.splice(stream.runs.indexOf(run), 1)
    run.renewReplyRun()
    if (stream.runs.length > 0) return
    stream.restore(this.cursors.cursor(stream))
    this.dissolve(stream)
  }

  /**
   * Drops what a stream holds when some of it may be of a life that none of its runs lists any more: parts of a dead
   * lineage would keep those of the living one out for ever (spec §8.8). A run that nothing is held of leaves nothing
   * behind, such as one of a replayed start. True: it was dropped.
   */
  dropOrphans(stream: ReceiverStream, gone: ReceiverRun): boolean {
    if (stream.runs.length === 0 || !stream.assembly.isHolding || !gone.hasHeld) return false
    const isListed = (life: Id64) => stream.runs.some(({ lives }) => lives.some((entry) => entry.life === life))
    if (gone.lives.every(({ life }) => isListed(life))) return false
    stream.restore(this.cursors.cursor(stream))
    return true
  }

  /** Forgets a stream that nothing needs any more. */
  dissolve(stream: ReceiverStream): void {
    if (stream.runs.length === 0 && !stream.isCommitting) this.byKey.delete(stream.key)
  }

  /** Reasons 1 to 3 (spec §11.1). */
  private judgeName(
    run: ReceiverRun,
    frame: { readonly source: string; readonly input: string; readonly shape: Id64 }
  ): RefusalReason | undefined {
    const shape = this.shapes.get(frame.input)
    if (shape === undefined) return RefusalReason.noSuchInput
    if (shape !== frame.shape) return RefusalReason.otherShape
    return run.peer.maySendAs(frame.source) ? undefined : RefusalReason.sourceNotAllowed
  }

  private join(run: ReceiverRun, source: string, input: string): ReceiverStream {
    const key = streamKey(source, input)
    let stream = this.byKey.get(key)
    if (stream === undefined) {
      stream = new ReceiverStream(key, { source, input }, this.cursors, this.memory, this.faults)
      this.byKey.set(key, stream)
    }
    stream.runs.push(run)
    run.assembledIn = stream
    return stream
  }
}

/**
 * Whether a list names another life for record n than the inbox: it does when a later life of it begins past n. Without
 * one the run may never have had record n, and its last life says nothing of it.
 */
const claimsOther = (lives: ReadonlyArray<Life>, n: RecordNumber, life: Id64): boolean =>
  lives.some(({ first }) => first > n) && (lifeOf(lives, n)?.life ?? life) !== life

/** Reason 4 (spec §8.2, §8.4): lists that contradict, or a record of a fork that is still to be stored. */
const judgeFork = (run: ReceiverRun, stream: ReceiverStream): RefusalReason | undefined => {
  if (run.contradicts) return RefusalReason.forkedOutbox
  const n = stream.storedOf(run.stream!.generation)
  if (n > 0 && claimsOther(run.lives, n, stream.life)) return RefusalReason.forkedOutbox
  if (run.forkedAt === 0) return undefined
  run.forkedAt = Math.max(run.forkedAt, n + 1)
  const life = lifeOf(run.lives, run.forkedAt)
  if (life !== undefined && run.stream!.generation === stream.generation && !mayFollow(n, stream.life, life)) {
    return RefusalReason.forkedOutbox
  }
  run.forkedAt = 0
  return undefined
}

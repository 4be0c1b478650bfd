import {
  type Outbox,
  OutboxFull,
  type OutboxState,
  type ProducerPosition,
  type ReadBounds,
  recordOverhead,
  RecordTooLong,
  StoreError
} from "@pure-link/ports"
import { type Id64, type Life, longestRecord, type RecordBatch, type RecordNumber } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import { ok as assert } from "node:assert/strict"
import type { OutboxContents, OutboxProgress, OutboxStream } from "./file/outboxFile.ts"
import type { Columns } from "./columns.ts"
import type { StoreCounters } from "./StoreCounters.ts"
import { WaitingLine } from "./WaitingLine.ts"

/**
 * The outbox that callers see, over something that carries out one transaction at a time, in memory or on disk. It
 * numbers records, makes groups of waiting appends (one fsync each), holds the byte limit, and lets removals ride along
 * (spec §2.1, §8.5).
 */

/** One transaction: records to append, how far to remove, and the life to register if these are its first records. */
export interface OutboxGroup {
  readonly first: RecordNumber
  /** What was appended, as it was handed over. */
  readonly chunks: ReadonlyArray<Columns>
  readonly life: Id64 | undefined
  readonly removed: RecordNumber
  /** Producers' positions that these appends bring, in order. */
  readonly producers: ReadonlyArray<ProducerPosition>
}

/** What carries out transactions and reads. */
export interface OutboxEngine {
  readonly transact: (group: OutboxGroup) => Effect.Effect<OutboxProgress, StoreError>
  /** The same at once, where nothing has to be waited for: an append that nobody is before need not stand in line. */
  readonly transactNow?: (group: OutboxGroup) => OutboxProgress
  readonly read: (from: RecordNumber, bounds: ReadBounds) => Effect.Effect<RecordBatch, StoreError>
  /** As the port's. */
  readonly ended?: Effect.Effect<never, StoreError>
}

export interface OutboxOptions {
  readonly file: string
  readonly stream: OutboxStream
  readonly limitBytes: number
  readonly life: Id64
  readonly counters: StoreCounters
}

interface Chunk extends Columns {
  readonly from?: ProducerPosition
  /** What it counts against the byte limit. */
  readonly counted: number
}

/** A transaction takes appends up to these bounds, at least one. */
const groupBytes = 4 * 1_048_576
const groupRecords = 65_536
/** Removed records that wait for a transaction of their own, when no append takes them along. */
const lazyRecords = 1_024
const lazyBytes = 1_048_576

export const makeOutbox = Effect.fnUntraced(function* (
  { counters, file, life, limitBytes, stream }: OutboxOptions,
  opened: OutboxContents,
  engine: OutboxEngine
): Effect.fn.Return<Outbox["Service"], never, Scope.Scope> {
  const { generation } = opened
  let { bytes: storedBytes, deleted, last, oldestEnd, removed } = opened
  /** How far the file knows of removals. */
  let written = removed
  let lives: ReadonlyArray<Life> = livesFrom(opened.lives, removed)
  let registered = false
  /** The last transaction found no room: what is removed makes some at once. */
  let isFull = false
  const producers = new Map(opened.producers.map(({ position, producer }) => [producer, position]))
  const wake = Latch.makeUnsafe(true)
  const line = new WaitingLine<Chunk, RecordNumber>(file, () => {
    wake.openUnsafe()
  })

  const heldBytes = (): number => storedBytes + recordOverhead * (last - deleted)

  /**
   * Removals get a transaction when there are enough, when nothing else is held, or when an append needs their room and
   * there is some: where the oldest records that were stored together are all removed.
   */
  const removalIsDue = (): boolean => {
    const makesRoom = removed > deleted && removed >= oldestEnd
    if (!makesRoom && removed === written) return false
    if (removed === last) return true
    if (makesRoom && (isFull || line.next !== undefined)) return true
    const waiting = makesRoom ? removed - deleted : removed - written
    return waiting >= lazyRecords || waiting * (storedBytes / (last - deleted)) >= lazyBytes
  }

  const takeGroup = () => {
    let bytes = 0
    let records = 0
    return line.take((chunk) => {
      const whole = bytes + chunk.counted
      if (heldBytes() + whole > limitBytes) return false
      if (records > 0 && (whole > groupBytes || records + chunk.sizes.length > groupRecords)) return false
      bytes = whole
      records += chunk.sizes.length
      return true
    })
  }

  const groupOf = (chunks: ReadonlyArray<Chunk>): OutboxGroup => ({
    first: last + 1,
    chunks,
    life: registered || !chunks.some((chunk) => chunk.sizes.length > 0) ? undefined : life,
    removed,
    producers: chunks.flatMap((chunk) => chunk.from ?? [])
  })

  /** One transaction, if there is work for one; says whether there was and whether it succeeded. */
  const turn = Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      const tickets = takeGroup()
      if (tickets.length === 0 && !removalIsDue()) return Effect.succeed(false)
      const chunks = tickets.map((ticket) => ticket.item)
      const group = groupOf(chunks)
      return Effect.suspend(() => {
        for (const chunk of chunks) assert(countedBytes(chunk) === chunk.counted, "an append was changed meanwhile")
        return restore(engine.transact(group))
      }).pipe(
        Effect.exit,
        Effect.map((exit) => {
          if (exit._tag === "Failure") {
            const failing = tickets.length > 0 ? tickets : line.take((chunk) => chunk === line.next)
            const error = line.errorOf(exit.cause)
            isFull = error.reason === "full"
            const result = Effect.fail(error)
            for (const ticket of failing) ticket.settle(result)
            return failing.length > 0
          }
          adopt(exit.value, group)
          for (const ticket of tickets) ticket.settle(Effect.succeed(count(ticket.item)))
          return true
        })
      )
    })
  )

  /** What commits a transaction at once; undefined where that is not possible, or somebody is before it. */
  const committing = (): ((chunks: ReadonlyArray<Chunk>) => void) | undefined => {
    const { transactNow } = engine
    if (transactNow === undefined || !line.isIdle) return undefined
    return (chunks) => {
      const group = groupOf(chunks)
      adopt(transactNow(group), group)
    }
  }

  /** Appends at once where that is possible and there is room, else in its turn. */
  const carryOut = (chunk: Chunk): Effect.Effect<RecordNumber, StoreError> => {
    const commit = committing()
    if (commit === undefined || heldBytes() + chunk.counted > limitBytes) return line.join(chunk)
    return line.atOnce(() => {
      commit([chunk])
      return count(chunk)
    })
  }

  /** A transaction was committed: so far has the file come. */
  const adopt = (progress: OutboxProgress, group: OutboxGroup): void => {
    isFull = false
    written = group.removed
    storedBytes = progress.bytes
    deleted = progress.deleted
    oldestEnd = progress.oldestEnd
    counters.transactions = progress.transactions
    if (group.life === undefined) return
    lives = livesFrom([...lives, { life: group.life, first: group.first }], removed)
    registered = true
  }

  /** The records of a chunk are stored; returns the number of the first. */
  const count = ({ bytes, from, sizes }: Chunk): RecordNumber => {
    const first = last + 1
    last += sizes.length
    counters.records += sizes.length
    counters.bytes += bytes.length
    if (from !== undefined) producers.set(from.producer, from.position)
    return first
  }

  /** Leaves the line and writes how far was removed, so that the next opening need not hear it again. */
  const close = Effect.suspend(() => {
    line.close()
    if (removed === written && (removed === deleted || removed < oldestEnd)) return Effect.void
    return Effect.ignore(engine.transact({ first: last + 1, chunks: [], life: undefined, removed, producers: [] }))
  })

  yield* Effect.addFinalizer(() => close)
  yield* Effect.forkScoped(line.run(wake, turn))

  return {
    stream,
    state: (): OutboxState => ({ generation, life, lowestHeld: removed + 1, last, lives, heldBytes: heldBytes() }),
    append: (chunk) =>
      Effect.suspend((): Effect.Effect<RecordNumber, RecordTooLong | OutboxFull | StoreError> => {
        const { bytes, from, sizes } = chunk
        const counted = countedBytes(chunk)
        if (from !== undefined) assertProducer(from)
        let total = 0
        // By index, here and in the inbox: there is a size for each record, and an iterator costs ten times as much.
        for (let i = 0; i < sizes.length; i++) {
          const size = sizes[i]!
          if (size > longestRecord) return Effect.fail(new RecordTooLong({ bytes: size, limit: longestRecord }))
          total += size
        }
        assert(total === bytes.length, `sizes add up to ${total} B, not to the ${bytes.length} B given`)
        if (counted > limitBytes) return Effect.fail(new OutboxFull({ bytes: counted, limit: limitBytes }))
        return carryOut({ ...chunk, counted })
      }),
    producerPosition: (producer) => producers.get(producer),
    read: (from, most) =>
      Effect.suspend(() => {
        const records = Math.min(most.records, last - from + 1)
        if (from <= removed || records <= 0) {
          return Effect.succeed({ first: from, bytes: new Uint8Array(0), sizes: new Uint32Array(0) })
        }
        return Effect.flatMap(engine.read(from, { records, bytes: most.bytes }), (batch) =>
          batch.sizes.length > 0 || from <= removed ? Effect.succeed(batch) : Effect.fail(missing(file, from))
        )
      }),
    removeThrough: (n) =>
      Effect.suspend(() => {
        if (n > last) {
          const detail = `record ${n} cannot be removed, the last appended is ${last}: a forked outbox (spec §8.5)`
          return Effect.fail(new StoreError({ reason: "failed", file, detail, remedy: "find the copy of this outbox" }))
        }
        if (n <= removed) return Effect.void
        removed = n
        lives = livesFrom(lives, removed)
        if (!removalIsDue()) return Effect.void
        const commit = committing()
        if (commit !== undefined) return line.atOnce(() => commit([]))
        wake.openUnsafe()
        return Effect.void
      }),
    ...(engine.ended && { ended: engine.ended })
  }
})

/** A record that the file accounts for is not in it. */
export const missing = (file: string, number: RecordNumber): StoreError =>
  new StoreError({
    reason: "unreadable",
    file,
    detail: `record ${number} is not in the file, which accounts for it: something else changed the file`,
    remedy: "look at what is left with `pure-link outbox show`, and append what was not sent to a new outbox"
  })

/** What a chunk counts against the byte limit. */
const countedBytes = ({ bytes, sizes }: Columns): number => bytes.length + recordOverhead * sizes.length

const assertProducer = ({ position, producer }: ProducerPosition): void => {
  const { length } = producer
  assert(length >= 1 && length <= 4_096, `a producer's name has 1 to 4,096 characters, not ${length}`)
  assert(Number.isSafeInteger(position) && position >= 0, `a producer's position is a whole number, not ${position}`)
}

/** The lives from that of record `removed` on (spec §8.5). */
const livesFrom = (lives: ReadonlyArray<Life>, removed: RecordNumber): ReadonlyArray<Life> => {
  let start = 0
  while (start + 1 < lives.length && lives[start + 1]!.first <= removed) start++
  return start === 0 ? lives : lives.slice(start)
}

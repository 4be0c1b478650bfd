import {
  type Outbox,
  OutboxFull,
  type OutboxState,
  type ProducerPosition,
  recordOverhead,
  RecordTooLong,
  StoreError
} from "@pure-link/ports"
import { type Id64, type Life, longestRecord, type RecordBatch, type RecordNumber } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import { ok as assert } from "node:assert/strict"
import type { OutboxContents, OutboxGroup, OutboxProgress, OutboxStream } from "./file/outboxFile.ts"
import type { ReadBounds } from "./file/reading.ts"
import type { StoreCounters } from "./StoreCounters.ts"
import { WaitingLine } from "./WaitingLine.ts"

/**
 * The outbox that callers see, over something that carries out one transaction at a time, in memory or on disk. It
 * numbers records, makes groups of waiting appends (one fsync each), holds the byte limit, and lets removals ride along
 * (spec §2.1, §8.5).
 */

/** What carries out transactions and reads. */
export interface OutboxEngine {
  readonly transact: (group: OutboxGroup) => Effect.Effect<OutboxProgress, StoreError>
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

interface Chunk {
  readonly bytes: Uint8Array
  readonly sizes: Uint32Array
  readonly from?: ProducerPosition
}

/** A transaction takes appends up to these bounds, at least one. */
const groupBytes = 8 * 1_048_576
const groupRecords = 16_384
/** Removed rows that wait for a transaction of their own, when no append takes them along. */
const lazyRows = 1_024
const lazyBytes = 1_048_576

export const makeOutbox = Effect.fnUntraced(function* (
  { counters, file, life, limitBytes, stream }: OutboxOptions,
  opened: OutboxContents,
  engine: OutboxEngine
): Effect.fn.Return<Outbox["Service"], never, Scope.Scope> {
  const { generation } = opened
  let { bytes: storedBytes, deleted, last, removed } = opened
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
   * Removed rows get a transaction when there are enough, when nothing else is held, or when an append needs their
   * room.
   */
  const removalIsDue = (): boolean => {
    const rows = removed - deleted
    if (rows === 0) return false
    const meanBytes = storedBytes / (last - deleted)
    return isFull || rows >= lazyRows || rows * meanBytes >= lazyBytes || removed === last || line.next !== undefined
  }

  const takeGroup = () => {
    let bytes = 0
    let records = 0
    return line.take((chunk) => {
      const whole = bytes + countedBytes(chunk)
      if (heldBytes() + whole > limitBytes) return false
      if (records > 0 && (whole > groupBytes || records + chunk.sizes.length > groupRecords)) return false
      bytes = whole
      records += chunk.sizes.length
      return true
    })
  }

  /** One transaction, if there is work for one; says whether there was and whether it succeeded. */
  const turn = Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      const tickets = takeGroup()
      if (tickets.length === 0 && !removalIsDue()) return Effect.succeed(false)
      const first = last + 1
      const chunks = tickets.map((ticket) => ticket.item)
      const newLife = registered || !chunks.some((chunk) => chunk.sizes.length > 0) ? undefined : life
      return Effect.suspend(() => restore(engine.transact({ first, ...groupOf(chunks), life: newLife, removed }))).pipe(
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
          isFull = false
          adopt(exit.value, newLife === undefined ? undefined : { life: newLife, first })
          for (const ticket of tickets) {
            const number = last + 1
            count(ticket.item)
            ticket.settle(Effect.succeed(number))
          }
          return true
        })
      )
    })
  )

  /** A transaction was committed: so far has the file come. */
  const adopt = ({ bytes, deleted: deletedNow, transactions }: OutboxProgress, newLife: Life | undefined): void => {
    storedBytes = bytes
    deleted = deletedNow
    counters.transactions = transactions
    if (newLife === undefined) return
    lives = livesFrom([...lives, newLife], removed)
    registered = true
  }

  /** The records of a chunk are on disk. */
  const count = ({ bytes, from, sizes }: Chunk): void => {
    last += sizes.length
    counters.records += sizes.length
    counters.bytes += bytes.length
    if (from !== undefined) producers.set(from.producer, from.position)
  }

  /** Leaves the line and writes how far was removed, so that the next opening need not hear it again. */
  const close = Effect.suspend(() => {
    line.close()
    if (removed === deleted) return Effect.void
    return Effect.ignore(engine.transact({ first: last + 1, ...groupOf([]), life: undefined, removed }))
  })

  yield* Effect.addFinalizer(() => close)
  yield* Effect.forkScoped(line.run(wake, turn))

  return {
    stream,
    state: (): OutboxState => ({ generation, life, lowestHeld: removed + 1, last, lives, heldBytes: heldBytes() }),
    append: (chunk) =>
      Effect.suspend((): Effect.Effect<RecordNumber, RecordTooLong | OutboxFull | StoreError> => {
        const { bytes, from, sizes } = chunk
        if (from !== undefined) assertProducer(from)
        let total = 0
        for (const size of sizes) {
          if (size > longestRecord) return Effect.fail(new RecordTooLong({ bytes: size, limit: longestRecord }))
          total += size
        }
        assert(total === bytes.length, `sizes add up to ${total} B, not to the ${bytes.length} B given`)
        const counted = countedBytes(chunk)
        if (counted > limitBytes) return Effect.fail(new OutboxFull({ bytes: counted, limit: limitBytes }))
        return line.join({ ...chunk, bytes: new Uint8Array(bytes), sizes: new Uint32Array(sizes) })
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
        if (removalIsDue()) wake.openUnsafe()
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
const countedBytes = ({ bytes, sizes }: Chunk): number => bytes.length + recordOverhead * sizes.length

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

/** Copies chunks into one buffer of their own, which can move to another thread. */
const groupOf = (chunks: ReadonlyArray<Chunk>): Pick<OutboxGroup, "bytes" | "sizes" | "producers"> => {
  const bytes = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.bytes.length, 0))
  const sizes = new Uint32Array(chunks.reduce((sum, chunk) => sum + chunk.sizes.length, 0))
  let byte = 0
  let record = 0
  for (const chunk of chunks) {
    bytes.set(chunk.bytes, byte)
    sizes.set(chunk.sizes, record)
    byte += chunk.bytes.length
    record += chunk.sizes.length
  }
  return { bytes, sizes, producers: chunks.flatMap((chunk) => chunk.from ?? []) }
}

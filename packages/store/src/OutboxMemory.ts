import { id64 } from "@pure-link/keys"
import { Entropy, Outbox, type ProducerPosition, StoreError } from "@pure-link/ports"
import type { Life } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ok as assert } from "node:assert/strict"
import {
  isSameStream,
  isUnused,
  type OutboxContents,
  type OutboxProgress,
  type OutboxStream,
  wrongStream
} from "./file/outboxFile.ts"
import { makeOutbox, type OutboxGroup } from "./OutboxFront.ts"
import { Piece, RecordList } from "./RecordList.ts"
import { type StoreCounters, storeCounters } from "./StoreCounters.ts"

/**
 * An outbox in memory, for tests, simulations, and streams that need not outlive the process. It keeps what it is
 * handed as it is, and copies nothing. What its backing holds survives a simulated restart, as a file would.
 */
export interface Options {
  readonly stream: OutboxStream
  readonly limitBytes?: number
  /** The "file": open it again to restart, copy it to restore a backup (default: a fresh one). */
  readonly backing?: Backing
  /**
   * Runs before each transaction takes effect: sleep for a slow disk, fail for a broken one. Interrupted: nothing took
   * effect.
   */
  readonly beforeCommit?: Effect.Effect<void, StoreError>
  readonly counters?: StoreCounters
}

/** What a file would hold. */
export class Backing {
  contents: OutboxContents | undefined
  readonly records = new RecordList()
  isOpen = false
  transactions = 0

  /** A copy, as a backup or a cloned machine has it. */
  copy(): Backing {
    const copy = new Backing()
    copy.contents = this.contents
    for (const piece of this.records.held()) copy.records.push(piece)
    return copy
  }
}

const place = "memory"

export const layer = (options: Options): Layer.Layer<Outbox, StoreError, Entropy> =>
  Layer.effect(
    Outbox,
    Effect.gen(function* () {
      const { backing = new Backing(), counters = storeCounters(), limitBytes = 1_073_741_824, stream } = options
      const entropy = yield* Entropy
      yield* openBacking(backing)
      let { contents } = backing
      if (contents === undefined || (isUnused(contents) && !isSameStream(contents.stream, stream))) {
        contents = backing.contents = emptyContents(stream, id64(entropy))
      }
      if (!isSameStream(contents.stream, stream)) {
        return yield* new StoreError({ file: place, ...wrongStream(contents.stream, stream) })
      }
      const transactNow = (group: OutboxGroup): OutboxProgress => {
        const { bytes, deleted, oldestEnd } = apply(backing, group)
        return { bytes, deleted, oldestEnd, transactions: ++backing.transactions }
      }
      const { beforeCommit } = options
      return yield* makeOutbox({ file: place, stream, limitBytes, life: id64(entropy), counters }, contents, {
        transact: (group) => Effect.map(beforeCommit ?? Effect.void, () => transactNow(group)),
        ...(beforeCommit === undefined && { transactNow }),
        read: (from, bounds) => Effect.sync(() => ({ first: from, ...backing.records.read(from, bounds) }))
      })
    })
  )

/** Takes a backing for one opening, as a process owns a file. */
export const openBacking = (backing: { isOpen: boolean }) =>
  Effect.acquireRelease(
    Effect.suspend(() => {
      if (backing.isOpen) {
        return Effect.fail(
          new StoreError({ reason: "locked", file: place, detail: "the store is open", remedy: "close it first" })
        )
      }
      backing.isOpen = true
      return Effect.void
    }),
    () =>
      Effect.sync(() => {
        backing.isOpen = false
      })
  )

const emptyContents = (stream: OutboxStream, generation: bigint): OutboxContents => ({
  stream,
  generation,
  last: 0,
  removed: 0,
  deleted: 0,
  oldestEnd: 0,
  bytes: 0,
  lives: [],
  producers: []
})

const apply = (backing: Backing, { chunks, first, life, producers, removed }: OutboxGroup): OutboxContents => {
  const before = backing.contents!
  const { records } = backing
  assert(first === before.last + 1)
  let { bytes, deleted, last } = before
  for (const chunk of chunks) {
    if (chunk.sizes.length === 0) continue
    records.push(new Piece(last + 1, chunk))
    last += chunk.sizes.length
    bytes += chunk.bytes.length
  }
  for (let oldest = records.oldest; oldest !== undefined && oldest.last <= removed; oldest = records.oldest) {
    bytes -= oldest.end
    deleted = oldest.last
    records.shift()
  }
  return (backing.contents = {
    ...before,
    last,
    removed,
    deleted,
    oldestEnd: records.oldest?.last ?? deleted,
    bytes,
    lives: livesAfter(before.lives, life === undefined ? undefined : { life, first }, removed),
    producers: producers.length === 0 ? before.producers : newest(before.producers, producers)
  })
}

/** The lives from that of the last removed record on, with one more if one begins. */
const livesAfter = (before: ReadonlyArray<Life>, begun: Life | undefined, removed: number): ReadonlyArray<Life> => {
  if (begun === undefined && (before.length < 2 || before[1]!.first > removed)) return before
  const lives = begun === undefined ? before : [...before, begun]
  return lives.filter((_, i) => i + 1 === lives.length || lives[i + 1]!.first > removed)
}

const newest = (
  before: ReadonlyArray<ProducerPosition>,
  later: ReadonlyArray<ProducerPosition>
): ReadonlyArray<ProducerPosition> => {
  const positions = new Map([...before, ...later].map(({ position, producer }) => [producer, position]))
  return [...positions].map(([producer, position]) => ({ producer, position }))
}

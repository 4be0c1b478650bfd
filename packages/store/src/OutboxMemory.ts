import { id64 } from "@pure-link/keys"
import { Entropy, Outbox, StoreError } from "@pure-link/ports"
import type { Life, RecordBatch, RecordNumber } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ok as assert } from "node:assert/strict"
import {
  isSameStream,
  isUnused,
  type OutboxContents,
  type OutboxGroup,
  type OutboxStream,
  wrongStream
} from "./file/outboxFile.ts"
import type { ReadBounds } from "./file/reading.ts"
import { makeOutbox } from "./OutboxFront.ts"
import { type StoreCounters, storeCounters } from "./StoreCounters.ts"

/**
 * An outbox in memory, for tests and simulations. What its backing holds survives a simulated restart, as a file would.
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
  readonly records = new Map<RecordNumber, Uint8Array>()
  isOpen = false
  transactions = 0

  /** A copy, as a backup or a cloned machine has it. */
  copy(): Backing {
    const copy = new Backing()
    copy.contents = this.contents
    for (const [number, bytes] of this.records) copy.records.set(number, bytes)
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
      return yield* makeOutbox({ file: place, stream, limitBytes, life: id64(entropy), counters }, contents, {
        transact: (group) =>
          Effect.map(options.beforeCommit ?? Effect.void, () => {
            const { bytes, deleted } = apply(backing, group)
            return { bytes, deleted, transactions: ++backing.transactions }
          }),
        read: (from, bounds) => Effect.sync(() => readBatch(backing, from, bounds))
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
  bytes: 0,
  lives: [],
  producers: []
})

const apply = (backing: Backing, { bytes, first, life, producers, removed, sizes }: OutboxGroup): OutboxContents => {
  const before = backing.contents!
  assert(first === before.last + 1)
  let held = before.bytes + bytes.length
  let number = first
  let start = 0
  for (const size of sizes) backing.records.set(number++, bytes.subarray(start, (start += size)))
  for (let gone = before.deleted + 1; gone <= removed; gone++) {
    held -= backing.records.get(gone)!.length
    backing.records.delete(gone)
  }
  const positions = new Map([...before.producers, ...producers].map(({ position, producer }) => [producer, position]))
  const lives: ReadonlyArray<Life> = life === undefined ? before.lives : [...before.lives, { life, first }]
  return (backing.contents = {
    ...before,
    last: number - 1,
    removed,
    deleted: removed,
    bytes: held,
    lives: lives.filter((_, i) => i + 1 === lives.length || lives[i + 1]!.first > removed),
    producers: [...positions].map(([producer, position]) => ({ producer, position }))
  })
}

const readBatch = (backing: Backing, from: RecordNumber, most: ReadBounds): RecordBatch => {
  const records: Array<Uint8Array> = []
  let total = 0
  for (let number = from; records.length < most.records; number++) {
    const record = backing.records.get(number)
    if (record === undefined || (records.length > 0 && total + record.length > most.bytes)) break
    records.push(record)
    total += record.length
  }
  const bytes = new Uint8Array(total)
  let offset = 0
  for (const record of records) {
    bytes.set(record, offset)
    offset += record.length
  }
  return { first: from, bytes, sizes: Uint32Array.from(records, (record) => record.length) }
}

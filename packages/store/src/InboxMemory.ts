import { Inbox, type InboxRecord, type InputSummary, type StoreError } from "@pure-link/ports"
import type { CommitOutcome, StreamCursor } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ByteSlab } from "./ByteSlab.ts"
import type { InboxContents, InboxGroup, InboxProgress, InboxRows, StoredStream } from "./file/inboxFile.ts"
import type { ReadBounds } from "./file/reading.ts"
import { makeInbox } from "./InboxFront.ts"
import { openBacking } from "./OutboxMemory.ts"
import { type StoreCounters, storeCounters } from "./StoreCounters.ts"
import { judge } from "./storingRules.ts"

/**
 * An inbox in memory, for tests and simulations. What its backing holds survives a simulated restart, as a file would.
 */
export interface Options {
  /** The "file": open it again to restart, copy it to restore a backup (default: a fresh one). */
  readonly backing?: Backing
  /**
   * Runs before each transaction takes effect: sleep for a slow disk, fail for a broken one. Interrupted: nothing took
   * effect.
   */
  readonly beforeCommit?: Effect.Effect<void, StoreError>
  readonly counters?: StoreCounters
}

interface Log {
  records: Array<InboxRecord>
  lastPosition: number
  readonly consumers: Map<string, number>
}

/** What a file would hold. */
export class Backing {
  readonly logs = new Map<string, Log>()
  streams: ReadonlyArray<StoredStream> = []
  isOpen = false
  transactions = 0

  /** A copy, as a backup or a cloned machine has it. */
  copy(): Backing {
    const copy = new Backing()
    copy.streams = this.streams
    for (const [input, { consumers, lastPosition, records }] of this.logs) {
      copy.logs.set(input, { records: [...records], lastPosition, consumers: new Map(consumers) })
    }
    return copy
  }
}

export const layer = (options: Options = {}): Layer.Layer<Inbox, StoreError> =>
  Layer.effect(
    Inbox,
    Effect.gen(function* () {
      const { backing = new Backing(), beforeCommit = Effect.void, counters = storeCounters() } = options
      yield* openBacking(backing)
      const opened: InboxContents = {
        streams: backing.streams,
        positions: [...backing.logs].map(([input, log]) => [input, log.lastPosition] as const)
      }
      const slab = new ByteSlab()
      return yield* makeInbox({ file: "memory", counters }, opened, {
        allocate: (length) => slab.take(length),
        transact: (group) => Effect.map(beforeCommit, () => apply(backing, group)),
        read: (input, after, bounds) =>
          Effect.sync(() => readRows(backing.logs.get(input)?.records ?? [], after, bounds)),
        consumerPosition: (input, consumer) => Effect.sync(() => backing.logs.get(input)?.consumers.get(consumer) ?? 0),
        prune: (input, through) => Effect.map(beforeCommit, () => prune(backing, input, through)),
        summaries: Effect.sync(() => summarize(backing))
      })
    })
  )

const apply = (backing: Backing, group: InboxGroup): InboxProgress => {
  const grown = new Set<string>()
  let record = 0
  let start = 0
  const outcomes = group.intents.map((intent): CommitOutcome => {
    const sizes = group.sizes.subarray(record, (record += intent.count))
    const streams = backing.streams.filter(({ input, source }) => source === intent.source && input === intent.input)
    const current = streams.find((stream) => !stream.retired)
    const cursor: StreamCursor | undefined = current && {
      generation: current.generation,
      n: current.n,
      life: current.life
    }
    const retired = streams.filter((stream) => stream.retired)
    const isRetired = retired.some((stream) => stream.generation === intent.generation)
    const verdict = judge(intent, { cursor, isRetired, retiredCount: retired.length })
    if (verdict._tag === "Conflict") {
      for (const size of sizes) start += size
      return { _tag: "Conflict", cursor }
    }
    if (verdict._tag === "Nothing") return { _tag: "Stored", cursor: cursor! }
    const log = logOf(backing, intent.input)
    let number = intent.first
    for (const size of sizes) {
      const bytes = group.bytes.subarray(start, (start += size))
      log.records.push({ position: ++log.lastPosition, source: intent.source, number: number++, bytes })
    }
    grown.add(intent.input)
    const { input, source } = intent
    backing.streams = [
      ...backing.streams.filter((stream) => stream !== current),
      ...(verdict.replaces ? [{ ...current!, retired: true }] : []),
      { source, input, ...verdict.cursor, retired: false }
    ]
    return { _tag: "Stored", cursor: verdict.cursor }
  })
  for (const { consumer, input, position } of group.acknowledgements) {
    const consumers = backing.logs.get(input)?.consumers
    consumers?.set(consumer, Math.max(position, consumers.get(consumer) ?? 0))
  }
  const forgotten = group.forgets.map(({ input, source }) => {
    const before = backing.streams.length
    backing.streams = backing.streams.filter((one) => !(one.retired && one.source === source && one.input === input))
    return before - backing.streams.length
  })
  const positions = [...grown].map((input) => [input, logOf(backing, input).lastPosition] as const)
  return { outcomes, forgotten, positions, transactions: ++backing.transactions }
}

const logOf = (backing: Backing, input: string): Log => {
  const log = backing.logs.get(input) ?? { records: [], lastPosition: 0, consumers: new Map<string, number>() }
  backing.logs.set(input, log)
  return log
}

const readRows = (records: ReadonlyArray<InboxRecord>, after: number, most: ReadBounds): InboxRows => {
  const from = Math.max(0, after + 1 - (records[0]?.position ?? 1)) // positions of a log have no gaps
  let count = 0
  let total = 0
  while (count < most.records && from + count < records.length) {
    const size = records[from + count]!.bytes.length
    if (count > 0 && total + size > most.bytes) break
    total += size
    count++
  }
  const chosen = records.slice(from, from + count)
  const bytes = new Uint8Array(total)
  let offset = 0
  for (const record of chosen) {
    bytes.set(record.bytes, offset)
    offset += record.bytes.length
  }
  const sources = [...new Set(chosen.map((record) => record.source))]
  return {
    bytes,
    sizes: Uint32Array.from(chosen, (record) => record.bytes.length),
    positions: Float64Array.from(chosen, (record) => record.position),
    numbers: Float64Array.from(chosen, (record) => record.number),
    sources,
    sourceIndexes: Uint32Array.from(chosen, (record) => sources.indexOf(record.source))
  }
}

const prune = (backing: Backing, input: string, through: number) => {
  const log = backing.logs.get(input)
  const kept = log?.records.filter((record) => record.position > through) ?? []
  const pruned = (log?.records.length ?? 0) - kept.length
  if (log !== undefined) log.records = kept
  return { pruned, transactions: (backing.transactions += pruned > 0 ? 1 : 0) }
}

const summarize = (backing: Backing): ReadonlyArray<InputSummary> =>
  [...backing.logs]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([input, log]) => ({
      input,
      records: log.records.length,
      bytes: log.records.reduce((sum, record) => sum + record.bytes.length, 0),
      firstPosition: log.records[0]?.position ?? log.lastPosition + 1,
      lastPosition: log.lastPosition,
      sources: backing.streams
        .filter((stream) => stream.input === input && !stream.retired)
        .map(({ generation, life, n, source }) => ({ source, generation, n, life }))
        .toSorted((a, b) => (a.source < b.source ? -1 : 1)),
      consumers: [...log.consumers]
        .map(([consumer, position]) => ({ consumer, position }))
        .toSorted((a, b) => (a.consumer < b.consumer ? -1 : 1))
    }))

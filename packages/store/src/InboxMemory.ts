import { Inbox, type InputSummary, type StoreError } from "@pure-link/ports"
import type { CommitOutcome, StoreIntent, StreamCursor, StreamName } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { InboxContents, InboxProgress, Pruned, Pruning, StoredStream } from "./file/inboxFile.ts"
import { type InboxGroup, makeInbox } from "./InboxFront.ts"
import { InboxLog, SlabPool } from "./InboxLog.ts"
import { openBacking } from "./OutboxMemory.ts"
import { type StoreCounters, storeCounters } from "./StoreCounters.ts"
import { judge } from "./storingRules.ts"

/**
 * An inbox in memory, for tests, simulations, and streams that need not outlive the process. What its backing holds
 * survives a simulated restart, as a file would.
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

/** What stands for one (source, input). */
interface StreamState extends StreamName {
  current: StreamCursor | undefined
  readonly retired: Array<StreamCursor>
}

/** What a file would hold. */
export class Backing {
  readonly logs = new Map<string, InboxLog>()
  readonly #states = new Map<string, StreamState>()
  readonly #pool = new SlabPool()
  isOpen = false
  transactions = 0

  /** Every generation of every stream. */
  get streams(): ReadonlyArray<StoredStream> {
    return [...this.#states.values()].flatMap(({ current, input, retired, source }) => [
      ...retired.map((cursor) => ({ source, input, ...cursor, retired: true })),
      ...(current === undefined ? [] : [{ source, input, ...current, retired: false }])
    ])
  }

  stateOf({ input, source }: StreamName): StreamState {
    const key = `${input}\0${source}`
    const state = this.#states.get(key) ?? { source, input, current: undefined, retired: [] }
    this.#states.set(key, state)
    return state
  }

  logOf(input: string): InboxLog {
    const log = this.logs.get(input) ?? new InboxLog(this.#pool)
    this.logs.set(input, log)
    return log
  }

  /** A copy, as a backup or a cloned machine has it. */
  copy(): Backing {
    const copy = new Backing()
    for (const [key, state] of this.#states) copy.#states.set(key, { ...state, retired: [...state.retired] })
    for (const [input, log] of this.logs) copy.logs.set(input, log.copy(copy.#pool))
    return copy
  }
}

export const layer = (options: Options = {}): Layer.Layer<Inbox, StoreError> =>
  Layer.effect(
    Inbox,
    Effect.gen(function* () {
      const { backing = new Backing(), beforeCommit, counters = storeCounters() } = options
      yield* openBacking(backing)
      const opened: InboxContents = {
        streams: backing.streams,
        positions: [...backing.logs].map(([input, log]) => [input, log.lastPosition] as const)
      }
      return yield* makeInbox({ file: "memory", counters }, opened, {
        transact: (group) => Effect.map(beforeCommit ?? Effect.void, () => apply(backing, group)),
        ...(beforeCommit === undefined && { transactNow: (group: InboxGroup) => apply(backing, group) }),
        read: (input, after, bounds) => Effect.sync(() => (backing.logs.get(input) ?? none).read(after, bounds)),
        consumerPosition: (input, consumer) => Effect.sync(() => backing.logs.get(input)?.consumers.get(consumer) ?? 0),
        summaries: Effect.sync(() => summarize(backing))
      })
    })
  )

/** The log of an input that has none. */
const none = new InboxLog(new SlabPool())

const apply = (backing: Backing, group: InboxGroup): InboxProgress => {
  const pruned = group.prunings.map((pruning) => prune(backing, pruning))
  const grown = new Set<string>()
  const outcomes = group.intents.map((intent) => store(backing, intent, grown))
  for (const { consumer, input, position } of group.acknowledgements) {
    const consumers = backing.logs.get(input)?.consumers
    consumers?.set(consumer, Math.max(position, consumers.get(consumer) ?? 0))
  }
  const forgotten = group.forgets.map((name) => backing.stateOf(name).retired.splice(0).length)
  const positions = Array.from(grown, (input) => [input, backing.logOf(input).lastPosition] as const)
  return { outcomes, forgotten, pruned, positions, transactions: ++backing.transactions }
}

const prune = (backing: Backing, { input, through }: Pruning): Pruned => {
  const log = backing.logs.get(input)
  return { records: log?.prune(through) ?? 0, through: log?.pruned ?? 0, isDone: true }
}

const store = (backing: Backing, intent: StoreIntent, grown: Set<string>): CommitOutcome => {
  const { batch, generation, input, lives, source } = intent
  const state = backing.stateOf(intent)
  const { current: cursor, retired } = state
  const verdict = judge(
    { source, input, generation, lives, first: batch.first, count: batch.sizes.length },
    { cursor, isRetired: retired.some((one) => one.generation === generation), retiredCount: retired.length }
  )
  if (verdict._tag === "Conflict") return { _tag: "Conflict", cursor }
  if (verdict._tag === "Nothing") return { _tag: "Stored", cursor: cursor! }
  backing.logOf(input).append(source, batch)
  grown.add(input)
  if (verdict.replaces) retired.push(cursor!)
  state.current = verdict.cursor
  return { _tag: "Stored", cursor: verdict.cursor }
}

const summarize = (backing: Backing): ReadonlyArray<InputSummary> =>
  [...backing.logs]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([input, log]) => ({
      input,
      records: log.records,
      bytes: log.bytes,
      firstPosition: log.pruned + 1,
      lastPosition: log.lastPosition,
      sources: backing.streams
        .filter((stream) => stream.input === input && !stream.retired)
        .map(({ generation, life, n, source }) => ({ source, generation, n, life }))
        .toSorted((a, b) => (a.source < b.source ? -1 : 1)),
      consumers: [...log.consumers]
        .map(([consumer, position]) => ({ consumer, position }))
        .toSorted((a, b) => (a.consumer < b.consumer ? -1 : 1))
    }))

import { type Inbox, type InboxBatch, type InputSummary, type ReadBounds, StoreError } from "@pure-link/ports"
import type { CommitOutcome, Id64, RecordBatch, StoreIntent, StreamCursor, StreamName } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { ok as assert } from "node:assert/strict"
import type { Acknowledgement, InboxContents, InboxProgress, Pruned, Pruning } from "./file/inboxFile.ts"
import type { StoreCounters } from "./StoreCounters.ts"
import { type Ticket, WaitingLine } from "./WaitingLine.ts"

/**
 * The inbox that callers see, over something that carries out one transaction at a time, in memory or on disk. It makes
 * groups of waiting commits, acknowledgements and prunings (one fsync each), and keeps cursors in memory, moved only
 * after the commit returned.
 */

/** One transaction: what is pruned, batches in order, consumers' acknowledgements, and then what is forgotten. */
export interface InboxGroup {
  readonly prunings: ReadonlyArray<Pruning>
  /** Their batches are the caller's until the transaction has ended. */
  readonly intents: ReadonlyArray<StoreIntent>
  readonly acknowledgements: ReadonlyArray<Acknowledgement>
  /** Streams whose retired generations are forgotten. */
  readonly forgets: ReadonlyArray<StreamName>
}

/** What carries out transactions and reads. */
export interface InboxEngine {
  readonly transact: (group: InboxGroup) => Effect.Effect<InboxProgress, StoreError>
  /** The same at once, where nothing has to be waited for: a call that nobody is before need not stand in line. */
  readonly transactNow?: (group: InboxGroup) => InboxProgress
  readonly read: (input: string, after: number, bounds: ReadBounds) => Effect.Effect<InboxBatch, StoreError>
  readonly consumerPosition: (input: string, consumer: string) => Effect.Effect<number, StoreError>
  readonly summaries: Effect.Effect<ReadonlyArray<InputSummary>, StoreError>
  /** As the port's. */
  readonly ended?: Effect.Effect<never, StoreError>
}

/**
 * A call that waits for a transaction: batches to store, a consumer's acknowledgement, what is to be pruned, or what is
 * to be forgotten.
 */
interface Call {
  readonly intents: ReadonlyArray<StoreIntent>
  readonly acknowledgement?: Acknowledgement
  readonly pruning?: Pruning
  /** The stream whose retired generations are to be forgotten. */
  readonly forget?: StreamName
  readonly bytes: number
}

/** What became of a call. */
interface Settled {
  readonly outcomes: ReadonlyArray<CommitOutcome>
  readonly forgotten: number
  readonly pruned: Pruned
}

/** What is known of one (source, input). */
interface StreamState {
  current: StreamCursor | undefined
  readonly retired: Set<Id64>
}

/** A transaction takes calls up to these bounds, at least one. */
const groupBytes = 8 * 1_048_576
const groupCalls = 4_096

const emptyBatch = (after: number): InboxBatch => ({
  firstPosition: after + 1,
  bytes: new Uint8Array(0),
  sizes: new Uint32Array(0),
  runs: []
})

type Tickets = ReadonlyArray<Ticket<Call, Settled>>

const nonePruned: Pruned = { records: 0, through: 0, isDone: true }

export const makeInbox = Effect.fnUntraced(function* (
  { counters, file }: { readonly file: string; readonly counters: StoreCounters },
  opened: InboxContents,
  engine: InboxEngine
): Effect.fn.Return<Inbox["Service"], never, Scope.Scope> {
  const streams = rememberStreams(opened)
  const positions = new Map(opened.positions)
  const growth = new Map<string, Set<() => void>>()
  const wake = Latch.makeUnsafe(false)
  const line = new WaitingLine<Call, Settled>(file, () => {
    wake.openUnsafe()
  })

  const lastPosition = (input: string): number => positions.get(input) ?? 0

  const takeGroup = () => {
    let bytes = 0
    let calls = 0
    return line.take((call) => {
      if (calls > 0 && (bytes + call.bytes > groupBytes || calls === groupCalls)) return false
      bytes += call.bytes
      calls++
      return true
    })
  }

  /** A transaction of these calls was committed: says what became of each. */
  const adopt = (calls: ReadonlyArray<Call>, progress: InboxProgress): ReadonlyArray<Settled> => {
    counters.transactions = progress.transactions
    for (const [input, position] of progress.positions) positions.set(input, position)
    let i = 0
    let f = 0
    let p = 0
    const outcomesOf = calls.map(({ intents }) =>
      intents.map((intent) => {
        const outcome = progress.outcomes[i++]!
        if (outcome._tag === "Stored") {
          counters.records += intent.batch.sizes.length
          counters.bytes += intent.batch.bytes.length
          streams.remember(intent, outcome.cursor)
        }
        return outcome
      })
    )
    return calls.map(({ forget, pruning }, call) => {
      if (forget !== undefined) streams.of(forget)?.retired.clear()
      return {
        outcomes: outcomesOf[call]!,
        forgotten: forget === undefined ? 0 : progress.forgotten[f++]!,
        pruned: pruning === undefined ? nonePruned : progress.pruned[p++]!
      }
    })
  }

  /** Resumes who waits for records of the inputs that have more. */
  const tellGrowth = (progress: InboxProgress): void => {
    for (const [input] of progress.positions) {
      for (const grown of Array.from(growth.get(input) ?? [])) grown() // a copy: who wakes may wait again at once
    }
  }

  const settle = (tickets: Tickets, progress: InboxProgress): void => {
    const settled = adopt(
      tickets.map((ticket) => ticket.item),
      progress
    )
    tickets.forEach((ticket, t) => ticket.settle(Effect.succeed(settled[t]!)))
    tellGrowth(progress)
  }

  /** One transaction, if calls wait for one; says whether there was. */
  const turn = Effect.uninterruptibleMask((restore) => {
    const transact = (tickets: Tickets) =>
      Effect.suspend(() => restore(engine.transact(groupOf(tickets.map((ticket) => ticket.item))))).pipe(Effect.exit)
    const conclude = (tickets: Tickets, exit: Exit.Exit<InboxProgress, StoreError>): void => {
      if (exit._tag === "Success") return settle(tickets, exit.value)
      const result = Effect.fail(line.errorOf(exit.cause))
      for (const ticket of tickets) ticket.settle(result)
    }
    return Effect.suspend(() => {
      const tickets = takeGroup()
      if (tickets.length === 0) return Effect.succeed(false)
      return Effect.flatMap(transact(tickets), (exit) => {
        const prunings = tickets.filter(({ item }) => item.pruning !== undefined)
        const others = tickets.filter(({ item }) => item.pruning === undefined)
        // On a full disk what makes room must not fail with what needs it.
        const isApart = exit._tag === "Failure" && prunings.length > 0 && others.length > 0
        if (!isApart)
          return Effect.as(
            Effect.sync(() => conclude(tickets, exit)),
            true
          )
        conclude(others, exit)
        return Effect.map(transact(prunings), (alone) => {
          conclude(prunings, alone)
          return true
        })
      })
    })
  })

  /** Has a call carried out: at once where that is possible and nobody is before it, else in its turn. */
  const carryOut = (call: Call): Effect.Effect<Settled, StoreError> => {
    const { transactNow } = engine
    if (transactNow === undefined || !line.isIdle) return line.join(call)
    return line.atOnce(() => {
      const progress = transactNow(groupOf([call]))
      const settled = adopt([call], progress)[0]!
      tellGrowth(progress)
      return settled
    })
  }

  yield* Effect.addFinalizer(() => Effect.sync(() => line.close()))
  yield* Effect.forkScoped(line.run(wake, turn))

  /** Waits until an input's log is beyond a position. */
  const positionBeyond = (input: string, seen: number): Effect.Effect<number> =>
    Effect.callback<number>((resume) => {
      if (lastPosition(input) > seen) return resume(Effect.succeed(lastPosition(input)))
      const waiters = growth.get(input) ?? new Set()
      growth.set(input, waiters)
      const forget = () => {
        waiters.delete(grown)
        if (waiters.size === 0 && growth.get(input) === waiters) growth.delete(input)
      }
      const grown = () => {
        forget()
        resume(Effect.sync(() => lastPosition(input)))
      }
      waiters.add(grown)
      return Effect.sync(forget)
    })

  return {
    cursor: (name) => streams.of(name)?.current,
    isRetired: (name, generation) => streams.of(name)?.retired.has(generation) ?? false,
    retiredCount: (name) => streams.of(name)?.retired.size ?? 0,
    commit: (intents) =>
      Effect.suspend(() => {
        let bytes = 0
        for (const { batch } of intents) bytes += assertBatch(batch)
        if (intents.length === 0) return Effect.succeed([])
        return Effect.map(carryOut({ intents, bytes }), ({ outcomes }) => outcomes)
      }),
    forgetRetired: (name) =>
      Effect.map(
        Effect.suspend(() => carryOut({ intents: [], forget: name, bytes: 0 })),
        ({ forgotten }) => forgotten
      ),
    read: (input, after, most) =>
      Effect.suspend(() => {
        const records = Math.min(most.records, lastPosition(input) - after)
        if (records <= 0) return Effect.succeed(emptyBatch(after))
        return engine.read(input, after, { records, bytes: most.bytes })
      }),
    lastPosition,
    grown: (input) =>
      Stream.unfold(-1, (seen: number) =>
        Effect.map(positionBeyond(input, seen), (position) => [position, position] as const)
      ),
    consumerPosition: (input, consumer) => engine.consumerPosition(input, consumer),
    acknowledge: (input, consumer, position) =>
      Effect.suspend(() => {
        const last = lastPosition(input)
        if (!isPosition(position) || position > last) {
          const detail = `${consumer} acknowledges position ${position} of ${input}, whose last is ${last}`
          return Effect.fail(new StoreError({ reason: "failed", file, detail, remedy: "acknowledge what was read" }))
        }
        return Effect.asVoid(carryOut({ intents: [], acknowledgement: { input, consumer, position }, bytes: 0 }))
      }),
    prune: Effect.fnUntraced(function* (input: string, throughPosition: number) {
      if (!isPosition(throughPosition) && throughPosition !== Number.POSITIVE_INFINITY) {
        const detail = `${input} is to be pruned through ${throughPosition}, which is no position`
        return yield* new StoreError({ reason: "failed", file, detail, remedy: "prune through a position" })
      }
      for (let total = 0; ;) {
        const call: Call = { intents: [], pruning: { input, through: throughPosition }, bytes: 0 }
        const { isDone, records } = (yield* carryOut(call)).pruned
        total += records
        if (isDone) return total
      }
    }),
    summaries: engine.summaries,
    ...(engine.ended && { ended: engine.ended })
  }
})

/** The streams' cursors and retired generations, by name. */
const rememberStreams = (opened: InboxContents) => {
  const byInput = new Map<string, Map<string, StreamState>>()
  const make = ({ input, source }: StreamName): StreamState => {
    const sources = byInput.get(input) ?? new Map<string, StreamState>()
    byInput.set(input, sources)
    const state = sources.get(source) ?? { current: undefined, retired: new Set<Id64>() }
    sources.set(source, state)
    return state
  }
  for (const { generation, input, life, n, retired, source } of opened.streams) {
    const state = make({ source, input })
    if (retired) state.retired.add(generation)
    else state.current = { generation, n, life }
  }
  return {
    of: ({ input, source }: StreamName): StreamState | undefined => byInput.get(input)?.get(source),
    /** A commit returned: this cursor stands now, and another generation's is retired (spec §8.3). */
    remember: (name: StreamName, cursor: StreamCursor): void => {
      const state = make(name)
      if (state.current !== undefined && state.current.generation !== cursor.generation) {
        state.retired.add(state.current.generation)
      }
      state.current = cursor
    }
  }
}

/** Whether it can be that of a record, or 0; another would fail the commits that share its transaction. */
const isPosition = (position: number): boolean => Number.isSafeInteger(position) && position >= 0

/** The bytes of a batch, whose sizes must add up to them. */
const assertBatch = ({ bytes, first, sizes }: RecordBatch): number => {
  let total = 0
  for (let i = 0; i < sizes.length; i++) total += sizes[i]!
  assert(total === bytes.length, `sizes from record ${first} on add up to ${total} B, not to ${bytes.length} B`)
  return total
}

/** What a transaction is given of all calls. */
const groupOf = (calls: ReadonlyArray<Call>): InboxGroup => {
  const intents = calls.flatMap((call) => call.intents)
  const bytes = intents.reduce((sum, { batch }) => sum + batch.bytes.length, 0)
  assert(bytes === calls.reduce((sum, call) => sum + call.bytes, 0), "a batch was changed after it was given")
  return {
    prunings: calls.flatMap((call) => call.pruning ?? []),
    intents,
    acknowledgements: calls.flatMap((call) => call.acknowledgement ?? []),
    forgets: calls.flatMap((call) => call.forget ?? [])
  }
}

/**
 * An open input: a consumer reads typed records from its log, at least once with a durable cursor kept here, or exactly
 * once with a cursor that it keeps beside its own data.
 */
import { type InboxBatch, type InboxRun, lastPositionOf, type StoreError } from "@pure-link/ports"
import type { Bytes, RecordNumber } from "@pure-link/wire"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Pull from "effect/Pull"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Inputs } from "./Inputs.ts"
import type { Intake } from "./Intake.ts"
import type { NodeFailed } from "./LinkNode.ts"
import { type StreamType, UndecodableRecord } from "./StreamType.ts"

/** One record with its value. */
export interface InputRecord<A> {
  /** Where it stands in the input's log: 1, 2, 3… in the order of storing, over all sources. */
  readonly position: number
  /** Who sent it. */
  readonly source: string
  /** Its number in the sender's outbox; consecutive per source and generation. */
  readonly number: RecordNumber
  readonly value: A
}

/** Consecutive records of an input; at least one. */
export interface Chunk<A> {
  readonly records: ReadonlyArray<InputRecord<A>>
  /** The position of the last: what to continue after. */
  readonly end: number
}

/** A chunk for a named consumer. */
export interface ConsumerChunk<A> extends Chunk<A> {
  /**
   * Moves the consumer's durable cursor to `end`: these records and all before are done with. Succeeds when that is on
   * disk.
   */
  readonly acknowledge: Effect.Effect<void, StoreError>
}

/** How much a chunk may hold; a single longer record comes alone. */
export interface ChunkLimits {
  /** 1,024 by default. */
  readonly maximumRecords?: number
  /** Encoded bytes; 1 MiB by default. */
  readonly maximumBytes?: Bytes
}

/**
 * Consecutive records of an input as they are stored, not decoded: record `firstPosition + i` is the `sizes[i]` bytes
 * after those before it; `runs` says whose they are and which. The bytes are valid until these records are pruned: copy
 * what is kept longer, as by an output that they are appended to.
 */
export interface Batch {
  readonly firstPosition: number
  readonly bytes: Uint8Array
  readonly sizes: Uint32Array
  readonly runs: ReadonlyArray<InboxRun>
  /** The position of the last: what to continue after. */
  readonly end: number
}

/** A batch for a named consumer. */
export interface ConsumerBatch extends Batch {
  /** As a chunk's. */
  readonly acknowledge: Effect.Effect<void, StoreError>
}

/** How much a batch may hold; a single longer record comes alone. */
export interface BatchLimits {
  /** 65,536 by default. */
  readonly maximumRecords?: number
  /** 1 MiB by default. */
  readonly maximumBytes?: Bytes
}

/** Two fibers read as the same consumer: their cursor would mean nothing. */
export class ConsumerBusy extends Data.TaggedError("ConsumerBusy")<{
  readonly input: string
  readonly consumer: string
}> {
  override get message(): string {
    return `consumer "${this.consumer}" of input "${this.input}" is being read already; give each reader its own name`
  }
}

/** The input is open under another shape. */
export class InputConflict extends Data.TaggedError("InputConflict")<{ readonly input: string }> {
  override get message(): string {
    return `input "${this.input}" is open with another stream type; use one stream type per input name`
  }
}

export type OpenInputError = InputConflict

/** Why reading an input ended. */
export type ReadError = StoreError | UndecodableRecord | NodeFailed

/** An input that is declared on this node, as long as its scope is open. */
export interface Input<A> {
  readonly input: string
  /**
   * Records from the consumer's durable cursor on, at least once: a consumer that fails or is interrupted before
   * `acknowledge` sees them again when it starts again. Runs until interrupted, waiting for records to come, or until
   * the node fails and nothing is left to read. It reads on without waiting for `acknowledge`, one chunk at a time, as
   * fast as it is pulled.
   */
  readonly chunks: (
    options: { readonly consumer: string } & ChunkLimits
  ) => Stream.Stream<ConsumerChunk<A>, ReadError | ConsumerBusy>
  /**
   * Records after a position, 0 for all that are held. For exactly once: keep `end` in your own database, in the
   * transaction that uses the records, and start from there. Runs until interrupted, or until the node fails and
   * nothing is left to read.
   */
  readonly from: (position: number, limits?: ChunkLimits) => Stream.Stream<Chunk<A>, ReadError>
  /**
   * As `chunks`, without decoding: nothing is done per record. A batch may hold less than its limits although there is
   * more. For who moves records on, or reads them in place. Acknowledging and pruning batch by batch is cheap: both share
   * the transactions of what is being stored.
   */
  readonly batches: (
    options: { readonly consumer: string } & BatchLimits
  ) => Stream.Stream<ConsumerBatch, StoreError | NodeFailed | ConsumerBusy>
  /** As `from`, without decoding. */
  readonly batchesFrom: (position: number, limits?: BatchLimits) => Stream.Stream<Batch, StoreError | NodeFailed>
  /** A consumer's durable cursor: the last position it acknowledged; 0 before the first. */
  readonly position: (consumer: string) => Effect.Effect<number, StoreError>
  /** Moves a consumer's cursor without reading, for instance over a record that no schema can read. */
  readonly acknowledge: (consumer: string, position: number) => Effect.Effect<void, StoreError>
  /** The last position stored; 0 before the first. */
  readonly lastPosition: Effect.Effect<number>
  /**
   * Deletes records up to a position, whoever has read them or not, and succeeds with their number. Senders notice
   * nothing: how far streams are stored stays (spec §2.3).
   */
  readonly prune: (throughPosition: number) => Effect.Effect<number, StoreError>
}

const defaultRecords = 1_024
const defaultBatchRecords = 65_536
const defaultBytes = 1_048_576

/**
 * Declares an input until the scope closes: senders of its shape are accepted from now on, others refused with reason
 * 2; without a declaration it is reason 1 (spec §11.1). May be opened several times with one stream type.
 */
const open = Effect.fnUntraced(function* <A>(
  type: StreamType<A>
): Effect.fn.Return<Input<A>, OpenInputError, Inputs | Scope.Scope> {
  const { seam: intake } = yield* Inputs
  yield* Effect.acquireRelease(
    Effect.suspend(() =>
      intake.openInput(type.input, type.shape) ? Effect.void : Effect.fail(new InputConflict({ input: type.input }))
    ),
    () => Effect.sync(() => intake.closeInput(type.input))
  )
  return inputOf(type, intake)
})

/** Opens inputs. */
export const Input = { open } as const

const inputOf = <A>(type: StreamType<A>, intake: Intake): Input<A> => {
  const { inbox } = intake
  const { input } = type
  /** What a consumer has not acknowledged, as `from` reads it, each with its acknowledgement. */
  const consume = <B extends { readonly end: number }, E>(
    consumer: string,
    from: (position: number) => Stream.Stream<B, E>
  ): Stream.Stream<B & { readonly acknowledge: Effect.Effect<void, StoreError> }, E | StoreError | ConsumerBusy> =>
    Stream.unwrap(
      Effect.gen(function* () {
        yield* takeConsumer(intake, input, consumer)
        const position = yield* inbox.consumerPosition(input, consumer)
        return Stream.map(from(position), (one) => ({
          ...one,
          acknowledge: inbox.acknowledge(input, consumer, one.end)
        }))
      })
    )
  const from: Input<A>["from"] = (position, limits = {}) =>
    read(intake, input, position, { maximumRecords: defaultRecords, ...limits }, (batch) => decodeChunk(type, batch))
  const batchesFrom: Input<A>["batchesFrom"] = (position, limits = {}) =>
    read(intake, input, position, { maximumRecords: defaultBatchRecords, ...limits }, wholeBatch)
  return {
    input,
    chunks: ({ consumer, ...limits }) => consume(consumer, (position) => from(position, limits)),
    from,
    batches: ({ consumer, ...limits }) => consume(consumer, (position) => batchesFrom(position, limits)),
    batchesFrom,
    position: (consumer) => inbox.consumerPosition(input, consumer),
    acknowledge: (consumer, position) => inbox.acknowledge(input, consumer, position),
    lastPosition: Effect.sync(() => inbox.lastPosition(input)),
    prune: (throughPosition) => inbox.prune(input, throughPosition)
  }
}

/** A consumer's name is taken as long as its stream runs. */
const takeConsumer = (
  intake: Intake,
  input: string,
  consumer: string
): Effect.Effect<void, ConsumerBusy, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.suspend(() =>
      intake.takeConsumer(input, consumer) ? Effect.void : Effect.fail(new ConsumerBusy({ input, consumer }))
    ),
    () => Effect.sync(() => intake.releaseConsumer(input, consumer))
  )

/** One read per pull; when there is nothing the pull waits until the log grows. */
const read = <B extends { readonly end: number }, E>(
  { failed, inbox }: Intake,
  input: string,
  position: number,
  { maximumBytes, maximumRecords }: { readonly maximumRecords: number; readonly maximumBytes?: Bytes },
  present: (batch: InboxBatch) => Result.Result<B, E>
): Stream.Stream<B, E | StoreError | NodeFailed> => {
  const most = { records: maximumRecords, bytes: maximumBytes ?? defaultBytes }
  return Stream.fromPull(
    Effect.gen(function* () {
      const mayHaveMore = Latch.makeUnsafe(false)
      let failure: NodeFailed | undefined
      const wake = Effect.sync(() => mayHaveMore.openUnsafe())
      const fail = (why: NodeFailed) => {
        failure = why
        return wake
      }
      yield* Effect.forkScoped(Stream.runForEach(inbox.grown(input), () => wake))
      yield* Effect.forkScoped(Effect.catch(failed, fail))
      let after = position
      const pull: Pull.Pull<readonly [B], E | StoreError | NodeFailed> = Effect.suspend(() => {
        mayHaveMore.closeUnsafe()
        return Effect.flatMap(inbox.read(input, after, most), (batch): typeof pull => {
          if (batch.sizes.length === 0) return failure ?? Effect.andThen(mayHaveMore.await, pull)
          const presented = present(batch)
          if (Result.isFailure(presented)) return Effect.fail(presented.failure)
          after = presented.success.end
          return Effect.succeed([presented.success])
        })
      })
      return pull
    })
  ).pipe(Stream.scoped)
}

const wholeBatch = (batch: InboxBatch): Result.Result<Batch> => Result.succeed({ ...batch, end: lastPositionOf(batch) })

/**
 * Records with their values, up to the first that is none; that one fails when it stands first. Values are the
 * application's for ever, and some are the bytes themselves: they are cut from a copy.
 */
const decodeChunk = <A>(type: StreamType<A>, batch: InboxBatch): Result.Result<Chunk<A>, UndecodableRecord> => {
  const decoded: Array<InputRecord<A>> = []
  const bytes = new Uint8Array(batch.bytes)
  let position = batch.firstPosition
  let offset = 0
  for (const { count, firstNumber, source } of batch.runs) {
    for (let number = firstNumber; number < firstNumber + count; number++) {
      const size = batch.sizes[position - batch.firstPosition]!
      const value = type.decode(bytes.subarray(offset, (offset += size)))
      if (Result.isFailure(value)) {
        if (decoded.length > 0) return Result.succeed({ records: decoded, end: position - 1 })
        return Result.fail(new UndecodableRecord({ input: type.input, source, position, detail: value.failure }))
      }
      decoded.push({ position: position++, source, number, value: value.success })
    }
  }
  return Result.succeed({ records: decoded, end: position - 1 })
}

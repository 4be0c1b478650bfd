/**
 * An open input: a consumer reads typed records from its log, at least once with a durable cursor kept here, or exactly
 * once with a cursor that it keeps beside its own data.
 */
import type { InboxRecord, StoreError } from "@pure-link/ports"
import type { Bytes, RecordNumber } from "@pure-link/wire"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
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
  return {
    input,
    chunks: ({ consumer, ...limits }) =>
      Stream.unwrap(
        Effect.gen(function* () {
          yield* takeConsumer(intake, input, consumer)
          const position = yield* inbox.consumerPosition(input, consumer)
          return Stream.map(chunksFrom(type, intake, position, limits), (chunk): ConsumerChunk<A> => ({
            ...chunk,
            acknowledge: inbox.acknowledge(input, consumer, chunk.end)
          }))
        })
      ),
    from: (position, limits = {}) => chunksFrom(type, intake, position, limits),
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

/** One chunk per pull; when there is none the pull waits until the log grows. */
const chunksFrom = <A>(
  type: StreamType<A>,
  { failed, inbox }: Intake,
  position: number,
  limits: ChunkLimits
): Stream.Stream<Chunk<A>, ReadError> => {
  const most = { records: limits.maximumRecords ?? defaultRecords, bytes: limits.maximumBytes ?? defaultBytes }
  return Stream.fromPull(
    Effect.map(Stream.toPull(inbox.grown(type.input)), (growth) => {
      let after = position
      const pull: Pull.Pull<readonly [Chunk<A>], ReadError> = Effect.suspend(() =>
        Effect.flatMap(inbox.read(type.input, after, most), (records): typeof pull => {
          if (records.length === 0) return Effect.andThen(Effect.raceFirst(growth, failed), pull)
          const chunk = decodeChunk(type, records)
          if (Result.isFailure(chunk)) return Effect.fail(chunk.failure)
          after = chunk.success.end
          return Effect.succeed([chunk.success])
        })
      )
      return pull
    })
  ).pipe(Stream.scoped)
}

/** Records with their values, up to the first that is none; that one fails when it stands first. */
const decodeChunk = <A>(
  type: StreamType<A>,
  records: ReadonlyArray<InboxRecord>
): Result.Result<Chunk<A>, UndecodableRecord> => {
  const decoded: Array<InputRecord<A>> = []
  for (const { bytes, number, position, source } of records) {
    const value = type.decode(bytes)
    if (Result.isFailure(value)) {
      if (decoded.length > 0) break
      return Result.fail(new UndecodableRecord({ input: type.input, source, position, detail: value.failure }))
    }
    decoded.push({ position, source, number, value: value.success })
  }
  return Result.succeed({ records: decoded, end: decoded[decoded.length - 1]!.position })
}

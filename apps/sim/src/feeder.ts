import type { AppendError, Output } from "@pure-link/link"
import type { Micros } from "@pure-link/wire"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { SimOptions } from "./options.ts"
import { type FlowStore, writeRecord } from "./storeWatch.ts"

/**
 * The application of a flow: keeps its outbox full (a drain), pauses once (`--idle`), or appends a record at a time
 * (`--every`).
 */

/** Bytes appended at once. */
const batchBytes = 262_144
const mostBatchRecords = 2_048

/**
 * What the outbox of a flow holds at most: some round trips of the path, so that a drain never waits for the feeder.
 */
export const outboxBytes = ({ rateBitsPerSecond, recordBytes, rttMicros }: SimOptions): number => {
  const ofPath = ((rateBitsPerSecond / 8) * (4 * rttMicros + 100_000)) / 1e6
  return Math.ceil(Math.max(4 * batchBytes, ofPath, 4 * recordBytes) * (1 + 32 / Math.max(1, recordBytes)))
}

/** Appends what a flow has to send; ends when all is appended, or never. `resumed` hears when a pause ends. */
export const feed = (
  output: Output<Uint8Array>,
  options: SimOptions,
  flow: FlowStore,
  resumed: (at: Micros) => void
): Effect.Effect<void, AppendError> =>
  Effect.suspend(() => {
    const feeder = new Feeder(output, options)
    if (options.every > 0) return feeder.rated(flow)
    const { idle } = options
    if (idle === undefined) return feeder.drain(Infinity)
    return Effect.gen(function* () {
      yield* feeder.drain(idle.at)
      yield* Effect.orDie(output.drained)
      yield* Effect.sleep(idle.duration / 1_000)
      resumed(feeder.now((yield* Clock.Clock).monotonicTimeNanosUnsafe()))
      yield* feeder.drain(Infinity)
    })
  })

class Feeder {
  readonly #output: Output<Uint8Array>
  readonly #options: SimOptions
  #appended = 0

  constructor(output: Output<Uint8Array>, options: SimOptions) {
    this.#output = output
    this.#options = options
  }

  now(nanos: bigint): Micros {
    return Number(nanos / 1_000n)
  }

  /** Appends as fast as the outbox takes it, until a time or the last record. */
  drain(until: Micros): Effect.Effect<void, AppendError> {
    return Effect.gen({ self: this }, function* () {
      const clock = yield* Clock.Clock
      const { recordBytes, records } = this.#options
      const most = Math.max(1, Math.min(mostBatchRecords, Math.floor(batchBytes / Math.max(1, recordBytes))))
      while (this.#appended < records && this.now(clock.monotonicTimeNanosUnsafe()) < until) {
        yield* this.#append(Math.min(most, records - this.#appended))
      }
    })
  }

  /** Appends a record every so often, whatever becomes of the former. */
  rated({ appendedAt }: FlowStore): Effect.Effect<void, AppendError> {
    return Effect.gen({ self: this }, function* () {
      const clock = yield* Clock.Clock
      const { every, records } = this.#options
      const start = this.now(clock.monotonicTimeNanosUnsafe())
      while (this.#appended < records) {
        const now = this.now(clock.monotonicTimeNanosUnsafe())
        const due = start + this.#appended * every
        if (due > now) yield* Effect.sleep((due - now) / 1_000)
        appendedAt.push(this.now(clock.monotonicTimeNanosUnsafe()))
        yield* this.#append(1)
      }
    })
  }

  #append(count: number): Effect.Effect<void, AppendError> {
    const size = this.#options.recordBytes
    const bytes = new Uint8Array(count * size)
    for (let i = 0; i < count; i++) writeRecord(bytes, i * size, size, this.#appended + i + 1)
    this.#appended += count
    return Effect.asVoid(this.#output.appendBatch({ bytes, sizes: new Uint32Array(count).fill(size) }))
  }
}

import { Inbox } from "@pure-link/ports"
import { InboxMemory } from "@pure-link/store"
import type { Bytes, Micros, StoreIntent } from "@pure-link/wire"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ok as assert } from "node:assert/strict"
import type { SimOptions } from "./options.ts"
import type { TimeSeries } from "./timeSeries.ts"

/**
 * The receiver's inbox, watched: when which record was stored, in full and for the first time. That is goodput and
 * latency. Every record is checked to be the one that was appended. The inbox is emptied behind what was stored, as a
 * run of minutes would not fit into memory.
 */

/** What one flow's records did. */
export class FlowStore {
  records = 0
  bytes: Bytes = 0
  /** Of those stored from `skip` on. */
  countedBytes: Bytes = 0
  countedRecords = 0
  lastAt: Micros = 0
  /** When record i + 1 was appended, and how long it took; kept in rated mode. */
  readonly appendedAt: Array<Micros> = []
  readonly latencies: Array<Micros> = []

  /** How long the records that are not stored have waited so far; in rated mode. */
  agesAt(now: Micros): ReadonlyArray<Micros> {
    return this.appendedAt.slice(this.records).map((at) => now - at)
  }
}

/** Records kept in the inbox before it is emptied. */
const kept = 8_192

export class StoreWatch {
  readonly flows: ReadonlyArray<FlowStore>
  readonly #bySource: ReadonlyMap<string, FlowStore>
  readonly #options: SimOptions
  readonly #series: TimeSeries

  constructor(sources: ReadonlyArray<string>, options: SimOptions, series: TimeSeries) {
    this.flows = sources.map(() => new FlowStore())
    this.#bySource = new Map(sources.map((source, i) => [source, this.flows[i]!]))
    this.#options = options
    this.#series = series
  }

  /** An inbox in memory that tells this watch what it stores. */
  readonly layer: Layer.Layer<Inbox> = Layer.effect(
    Inbox,
    Effect.gen({ self: this }, function* () {
      const inbox = yield* Inbox
      const clock = yield* Clock.Clock
      let pruned = 0
      const commit = (intents: ReadonlyArray<StoreIntent>) =>
        inbox.commit(intents).pipe(
          Effect.tap((outcomes) => {
            const now = Number(clock.monotonicTimeNanosUnsafe() / 1_000n)
            outcomes.forEach((outcome, i) => {
              if (outcome._tag === "Stored") this.#note(now, intents[i]!)
            })
            const { input } = intents[0]!
            const last = inbox.lastPosition(input)
            if (last - pruned < kept) return Effect.void
            pruned = last
            return inbox.prune(input, last)
          })
        )
      return Inbox.of({ ...inbox, commit })
    })
  ).pipe(Layer.provide(Layer.orDie(InboxMemory.layer())))

  #note(now: Micros, { batch: { bytes, first, sizes }, source }: StoreIntent): void {
    const flow = this.#bySource.get(source)!
    assert(first === flow.records + 1, `records of ${source} from ${first} were stored after ${flow.records}`)
    let at = 0
    for (const [i, size] of sizes.entries()) {
      assert(
        size === this.#options.recordBytes && isRecord(bytes, at, size, first + i),
        `record ${first + i} is damaged`
      )
      at += size
    }
    flow.records += sizes.length
    flow.bytes += bytes.length
    flow.lastAt = now
    if (now >= this.#options.skip) {
      flow.countedBytes += bytes.length
      flow.countedRecords += sizes.length
      if (this.#options.every > 0) this.#noteLatencies(now, flow, first, sizes.length)
    }
    this.#series.addBytes(now, bytes.length)
  }

  #noteLatencies(now: Micros, { appendedAt, latencies }: FlowStore, first: number, count: number): void {
    for (let number = first; number < first + count; number++) latencies.push(now - appendedAt[number - 1]!)
  }
}

/** Records carry the low 32 bits of their number, if they have room for it. */
export const writeRecord = (bytes: Uint8Array, at: number, size: Bytes, number: number): void => {
  if (size < 4) return
  for (let i = 0; i < 4; i++) bytes[at + i] = (number >>> (8 * i)) & 0xff
}

const isRecord = (bytes: Uint8Array, at: number, size: Bytes, number: number): boolean => {
  if (size < 4) return true
  for (let i = 0; i < 4; i++) if (bytes[at + i] !== ((number >>> (8 * i)) & 0xff)) return false
  return true
}

import type { AppendError, Output } from "@pure-link/link"
import * as Effect from "effect/Effect"
import { Pattern, sharedMillis } from "./pattern.ts"

/**
 * What appends: whole periods of the pattern as fast as the outbox takes them, or single records at a rate, each with its
 * send time.
 */

export interface Feed {
  /** Appends until the count or the time is reached, if there is one, and tells after each append how many there are. */
  readonly run: (progress: (appended: number) => void) => Effect.Effect<void, AppendError>
  readonly appended: () => number
}

export interface FeedOptions {
  readonly size: number
  readonly store: "memory" | "sqlite"
  readonly count?: number | undefined
  readonly seconds?: number | undefined
}

/** Appends under way at once: those to a disk share a transaction. */
const appendsAtOnce = { memory: 1, sqlite: 8 }

const untilOf = ({ seconds }: FeedOptions): number =>
  seconds === undefined ? Number.POSITIVE_INFINITY : performance.now() + seconds * 1_000

export const steadyFeed = (output: Output<Uint8Array>, options: FeedOptions): Feed => {
  const pattern = new Pattern(options.size)
  const total = options.count ?? Number.POSITIVE_INFINITY
  let appended = 0
  const run = (progress: (appended: number) => void) =>
    Effect.suspend(() => {
      const until = untilOf(options)
      let left = total
      const one = Effect.suspend(() => {
        const records = Math.min(pattern.period, left)
        left -= records
        return Effect.map(output.appendBatch(batchOf(pattern, records, options.store)), () => {
          appended += records
          progress(appended)
        })
      })
      const line = Effect.whileLoop({
        while: () => left > 0 && performance.now() < until,
        body: () => one,
        step: () => {}
      })
      return Effect.all(
        Array.from({ length: appendsAtOnce[options.store] }, () => line),
        {
          concurrency: "unbounded",
          discard: true
        }
      )
    })
  return { run, appended: () => appended }
}

/**
 * The first records of a period. A store in memory may keep the pattern itself, which nobody changes; one on disk moves the
 * bytes to another thread, so it gets its own.
 */
const batchOf = (pattern: Pattern, records: number, store: "memory" | "sqlite") => {
  const bytes = pattern.bytes.subarray(0, records * pattern.size)
  const sizes = pattern.sizes.subarray(0, records)
  return store === "memory" ? { bytes, sizes } : { bytes: bytes.slice(), sizes: sizes.slice() }
}

export const ratedFeed = (output: Output<Uint8Array>, options: FeedOptions & { readonly rate: number }): Feed => {
  const pattern = new Pattern(options.size)
  const sizes = Uint32Array.of(options.size)
  const total = options.count ?? Number.POSITIVE_INFINITY
  let asked = 0
  let appended = 0
  const run = (progress: (appended: number) => void) =>
    Effect.gen(function* () {
      const begun = performance.now()
      const until = untilOf(options)
      while (asked < total && performance.now() < until) {
        const due = Math.min(total, Math.floor(((performance.now() - begun) / 1_000) * options.rate) + 1)
        for (; asked < due; asked++) {
          const bytes = pattern.stamped(asked + 1, sharedMillis())
          yield* output.appendBatch({ bytes, sizes })
          progress(++appended)
        }
        yield* Effect.sleep(Math.max(0, begun + (asked / options.rate) * 1_000 - performance.now()))
      }
    })
  return { run, appended: () => appended }
}

import { assert } from "@effect/vitest"
import type { Id64, Life, StoreIntent, StreamCursor } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type Inbox, type InboxRecord, inboxRecords } from "../Inbox.ts"
import type { ReadBounds } from "../Outbox.ts"
import type { StoreError } from "../StoreError.ts"
import { recordOf, recordsOf } from "./records.ts"

/** Random histories of an inbox, and the slow readable twin that says what each must leave behind. */

const small = (maximum: number) => Schema.Int.check(Schema.isBetween({ minimum: 0, maximum }))
const TryCommit = Schema.TaggedStruct("Commit", {
  source: small(1),
  input: small(1),
  /** 0: the present generation, else a new one or an old one. */
  generation: Schema.Literals([0, 0, 0, 1, 2, 3]),
  /** Added to the first number that would follow. */
  off: Schema.Literals([0, 0, 0, 0, -1, 1]),
  /** 0: the life of record n goes on; 1: a new life begins; 2: a forked one. */
  life: Schema.Literals([0, 0, 1, 1, 2]),
  sizes: Schema.Array(small(300)).check(Schema.isMaxLength(5))
})
const Step = Schema.Union([
  TryCommit,
  Schema.TaggedStruct("Forget", { source: small(1), input: small(1) }),
  Schema.TaggedStruct("Prune", { input: small(1), per16: small(16) }),
  Schema.TaggedStruct("Acknowledge", { input: small(1), consumer: small(1), per16: small(16) })
])
/** Openings of an inbox, with what is done in each. */
export const InboxSteps = Schema.Array(Schema.Array(Step).check(Schema.isMaxLength(25))).check(Schema.isMaxLength(3))

interface ModelStream {
  generation: Id64
  n: number
  lives: Array<Life>
  readonly retired: Array<Id64>
}

/**
 * The slow readable twin of an inbox: it knows what is right because it makes each intent right or wrong on purpose.
 */
export class InboxModel {
  readonly logs = new Map<string, Array<{ source: string; number: number; bytes: Uint8Array } | undefined>>()
  readonly streams = new Map<string, ModelStream>()
  readonly consumers = new Map<string, number>()
  lastLife = 100n

  /** An intent as a step asks for it, and whether it has to be stored. */
  intentOf(step: typeof TryCommit.Type): { readonly intent: StoreIntent; readonly valid: boolean } {
    const source = `s${step.source}`
    const input = `i${step.input}`
    const stream = this.streams.get(`${source} ${input}`)
    const generation = step.generation === 0 ? (stream?.generation ?? 1n) : BigInt(step.generation)
    const current = stream?.generation === generation ? stream : undefined
    const n = current?.n ?? 0
    const first = Math.max(1, n + 1 + step.off)
    const isFork = step.life === 2 && n > 0
    const lives = [...(isFork ? [] : (current?.lives ?? []))]
    if (isFork) lives.push({ life: ++this.lastLife, first: n })
    else if (step.life === 1 || lives.length === 0) lives.push({ life: ++this.lastLife, first: n + 1 })
    const valid =
      first === n + 1 &&
      !isFork &&
      !(stream?.retired.includes(generation) ?? false) &&
      (step.sizes.length > 0 || current !== undefined)
    return { intent: { source, input, generation, lives, batch: { first, ...recordsOf(first, step.sizes) } }, valid }
  }

  store({ batch, generation, input, lives, source }: StoreIntent): void {
    if (batch.sizes.length === 0) return
    const key = `${source} ${input}`
    const before = this.streams.get(key)
    const retired = before?.retired ?? []
    if (before !== undefined && before.generation !== generation) retired.push(before.generation)
    const n = batch.first + batch.sizes.length - 1
    this.streams.set(key, { generation, n, lives: [...lives], retired })
    const log = this.logs.get(input) ?? []
    this.logs.set(input, log)
    batch.sizes.forEach((size, i) => {
      log.push({ source, number: batch.first + i, bytes: recordOf(batch.first + i, size) })
    })
  }

  assertState(inbox: Inbox["Service"]): Effect.Effect<void, StoreError> {
    const { consumers, logs, streams } = this
    return Effect.gen(function* () {
      for (const [key, { generation, lives, n, retired }] of streams) {
        const [source = "", input = ""] = key.split(" ")
        const life = lives.findLast((entry) => entry.first <= n)?.life
        assert.deepStrictEqual(inbox.cursor({ source, input }), { generation, n, life } as StreamCursor)
        assert.strictEqual(inbox.retiredCount({ source, input }), retired.length)
        for (const old of retired) assert.isTrue(inbox.isRetired({ source, input }, old))
      }
      for (const [input, log] of logs) {
        assert.strictEqual(inbox.lastPosition(input), log.length)
        const expected = log.flatMap((record, i) => (record === undefined ? [] : [{ position: i + 1, ...record }]))
        assert.deepStrictEqual(yield* recordsIn(inbox, input, 0, { records: 1_000, bytes: 1_000_000 }), expected)
      }
      for (const [key, position] of consumers) {
        const [input = "", consumer = ""] = key.split(" ")
        assert.strictEqual(yield* inbox.consumerPosition(input, consumer), position)
      }
    })
  }
}

/** What a read gives, record by record, once its columns are seen to fit each other. */
export const recordsIn = (
  inbox: Inbox["Service"],
  input: string,
  after: number,
  most: ReadBounds
): Effect.Effect<ReadonlyArray<InboxRecord>, StoreError> =>
  Effect.map(inbox.read(input, after, most), (batch) => {
    const { bytes, runs, sizes } = batch
    assert.strictEqual(
      runs.reduce((sum, { count }) => sum + count, 0),
      sizes.length
    )
    assert.strictEqual(
      sizes.reduce((sum, size) => sum + size, 0),
      bytes.length
    )
    return inboxRecords(batch)
  })

export const followSteps = Effect.fnUntraced(function* (
  inbox: Inbox["Service"],
  model: InboxModel,
  steps: ReadonlyArray<typeof Step.Type>
) {
  for (const step of steps) {
    if (step._tag === "Commit") {
      const { intent, valid } = model.intentOf(step)
      const [outcome] = yield* inbox.commit([intent])
      assert.strictEqual(outcome?._tag, valid ? "Stored" : "Conflict")
      if (valid) model.store(intent)
      continue
    }
    const input = `i${step.input}`
    if (step._tag === "Forget") {
      const retired = model.streams.get(`s${step.source} ${input}`)?.retired ?? []
      assert.strictEqual(yield* inbox.forgetRetired({ source: `s${step.source}`, input }), retired.length)
      retired.length = 0
      continue
    }
    const log = model.logs.get(input) ?? []
    const position = Math.floor((log.length * step.per16) / 16)
    if (step._tag === "Prune") {
      const held = log.slice(0, position).filter((record) => record !== undefined).length
      assert.strictEqual(yield* inbox.prune(input, position), held)
      log.fill(undefined, 0, position)
    } else {
      const key = `${input} c${step.consumer}`
      yield* inbox.acknowledge(input, `c${step.consumer}`, position)
      model.consumers.set(key, Math.max(position, model.consumers.get(key) ?? 0))
    }
  }
  yield* model.assertState(inbox)
})

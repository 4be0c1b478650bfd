import { assert } from "@effect/vitest"
import type { Life } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Outbox } from "../Outbox.ts"
import { joined, recordOf, recordsOf } from "./records.ts"

/** Random histories of an outbox, and the slow readable twin that says what each must leave behind. */

const small = (maximum: number) => Schema.Int.check(Schema.isBetween({ minimum: 0, maximum }))
const Step = Schema.Union([
  Schema.TaggedStruct("Append", { sizes: Schema.Array(small(400)), position: small(1_000) }),
  Schema.TaggedStruct("Remove", { per16: small(16) }),
  Schema.TaggedStruct("Read", { per16: small(18), records: small(6), bytes: small(900) })
])
/** Openings of an outbox, with what is done in each. */
export const OutboxSteps = Schema.Array(Schema.Array(Step).check(Schema.isMaxLength(20))).check(Schema.isMaxLength(3))

/** The slow readable twin of an outbox. */
export class OutboxModel {
  readonly records: Array<Uint8Array> = []
  removed = 0
  producer: number | undefined
  readonly lives: Array<Life> = []

  assertState(outbox: Outbox["Service"]): void {
    const { lives, lowestHeld, last } = outbox.state()
    assert.deepStrictEqual({ lowestHeld, last }, { lowestHeld: this.removed + 1, last: this.records.length })
    const held = this.lives.filter((_, i) => (this.lives[i + 1]?.first ?? Infinity) > this.removed)
    assert.deepStrictEqual(lives, held)
    assert.strictEqual(outbox.producerPosition("steps"), this.producer)
  }
}

export const followSteps = Effect.fnUntraced(function* (
  outbox: Outbox["Service"],
  model: OutboxModel,
  steps: ReadonlyArray<typeof Step.Type>
) {
  const { life } = outbox.state()
  for (const step of steps) {
    const last = model.records.length
    if (step._tag === "Append") {
      const chunk = recordsOf(last + 1, step.sizes)
      const first = yield* outbox.append({ ...chunk, from: { producer: "steps", position: step.position } })
      assert.strictEqual(first, last + 1)
      if (step.sizes.length > 0 && model.lives.at(-1)?.life !== life) model.lives.push({ life, first })
      step.sizes.forEach((size, i) => model.records.push(recordOf(first + i, size)))
      model.producer = step.position
    } else if (step._tag === "Remove") {
      const n = model.removed + Math.floor(((last - model.removed) * step.per16) / 16)
      yield* outbox.removeThrough(n)
      model.removed = n
    } else {
      const from = 1 + Math.floor((last * step.per16) / 16)
      const expected: Array<Uint8Array> = []
      let bytes = 0
      for (let number = from; number > model.removed && number <= last && expected.length < step.records; number++) {
        const record = model.records[number - 1]!
        if (expected.length > 0 && bytes + record.length > step.bytes) break
        expected.push(record)
        bytes += record.length
      }
      const batch = yield* outbox.read(from, { records: step.records, bytes: step.bytes })
      assert.deepStrictEqual(batch, { first: from, ...joined(expected) })
    }
    model.assertState(outbox)
  }
})

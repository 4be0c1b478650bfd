import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { RecordQueue } from "./recordQueue.ts"
import { Spans } from "./spans.ts"

const Edge = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 199 }))
const Step = Schema.Struct({ what: Schema.Literals(["add", "addOutside", "merge", "remove"]), a: Edge, b: Edge })

const numbers = (from: number, to: number): ReadonlyArray<number> =>
  Array.from({ length: to - from }, (_, i) => from + i)

const contents = (spans: Spans): ReadonlyArray<readonly [number, number]> =>
  Array.from({ length: spans.count }, (_, i) => [spans.start(i), spans.end(i)] as const)

describe("spans", () => {
  it.prop(
    "hold the same positions as a plain set does, sorted and apart, whatever is added, merged and removed",
    [Schema.Array(Step), Schema.Array(Step)],
    ([outside, steps]) => {
      const others = new Spans()
      for (const { a, b } of outside) others.merge(Math.min(a, b), Math.max(a, b))
      const spans = new Spans()
      const twin = new Set<number>()
      for (const { what, a, b } of steps) {
        const [start, end] = [Math.min(a, b), Math.max(a, b)]
        if (what === "addOutside") spans.addOutside(start, end, others)
        else spans[what](start, end)
        for (let at = start; at < end; at++) {
          if (what === "remove") twin.delete(at)
          else if (what !== "addOutside" || !others.covers(at, at + 1)) twin.add(at)
        }
        const listed = contents(spans)
        assert.deepStrictEqual(
          listed.flatMap(([from, to]) => numbers(from, to)),
          [...twin].sort((x, y) => x - y)
        )
        assert.isTrue(listed.every(([from, to], i) => from < to && (i === 0 || listed[i - 1]![1] <= from)))
        assert.strictEqual(
          spans.covers(start, end),
          numbers(start, end).every((at) => twin.has(at))
        )
      }
    },
    { arbitrary: { runs: 150, seed: 8 } }
  )

  it("keep the edges of what was added; a merge joins all that it meets or touches", () => {
    const spans = new Spans()
    spans.add(10, 20)
    spans.add(20, 30)
    spans.add(5, 35)
    assert.deepStrictEqual(contents(spans), [
      [5, 10],
      [10, 20],
      [20, 30],
      [30, 35]
    ])
    spans.merge(12, 21)
    assert.deepStrictEqual(contents(spans), [
      [5, 10],
      [10, 35]
    ])
  })

  it("grow to thousands of spans taken from the front and added anywhere", () => {
    const spans = new Spans()
    for (let i = 0; i < 5000; i++) spans.add(4 * i, 4 * i + 2)
    for (let i = 0; i < 4000; i++) spans.remove(4 * i, 4 * i + 3)
    for (let i = 0; i < 3000; i++) spans.add(4 * i, 4 * i + 1)
    assert.strictEqual(spans.count, 4000)
    assert.strictEqual(spans.start(0), 0)
    assert.deepStrictEqual([spans.start(3999), spans.end(3999)], [19_996, 19_998])
  })
})

describe("the record queue", () => {
  const Size = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5 }))
  const Batch = Schema.Array(Size).check(Schema.isMinLength(1))

  it.prop(
    "finds and copies every record by number and position, while batches come and leave",
    [Schema.Array(Batch), Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 8 })))],
    ([batches, drops]) => {
      const queue = new RecordQueue(7)
      const all: Array<ReadonlyArray<number>> = []
      let byte = 0
      let drop = 0
      for (const sizes of batches) {
        const records = sizes.map((size) => Array.from({ length: size }, () => (byte = (byte + 1) % 256)))
        const first = 7 + all.length
        all.push(...records)
        queue.append({ first, bytes: Uint8Array.from(records.flat()), sizes: Uint32Array.from(sizes) })
        const dropped = drops[drop++ % Math.max(1, drops.length)] ?? 0
        queue.dropThrough(Math.min(queue.end - 1, queue.first - 1 + dropped))
        const held = all.slice(queue.first - 7)
        assert.strictEqual(queue.bytes, held.flat().length)
        const copied = new Uint8Array(queue.bytes)
        if (queue.records > 0) queue.copy(queue.first, 0, queue.bytes, copied, 0)
        assert.deepStrictEqual([...copied], held.flat())
        for (let number = queue.first; number < queue.end; number++) {
          const record = all[number - 7]!
          assert.strictEqual(queue.lengthOf(number), record.length)
          for (let offset = 0; offset <= record.length; offset++) {
            queue.expect(queue.first + ((31 * offset + number) % (queue.records + 2)))
            assert.strictEqual(queue.recordAt(queue.positionOf(number) + offset), number)
            const rest = new Uint8Array(record.length - offset)
            queue.copy(number, offset, rest.length, rest, 0)
            assert.deepStrictEqual([...rest], record.slice(offset))
          }
        }
      }
    },
    { arbitrary: { runs: 60, seed: 4 } }
  )

  it("skips what was stored while its batch was read", () => {
    const queue = new RecordQueue(1)
    queue.dropThrough(2)
    queue.append({ first: 1, bytes: Uint8Array.of(1, 2, 2, 3, 3, 3), sizes: Uint32Array.of(1, 2, 3) })
    assert.deepStrictEqual([queue.first, queue.end, queue.bytes], [3, 4, 3])
    const out = new Uint8Array(3)
    queue.copy(3, 0, 3, out, 0)
    assert.deepStrictEqual([...out], [3, 3, 3])
  })
})

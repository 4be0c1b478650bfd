import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { seededEntropy } from "./entropy.ts"
import { ReplayWindow } from "./replayWindow.ts"

/** The edges of the replay window as a table, and the window against a readable twin that remembers everything. */

const top = 2 ** 53 - 1

/** Marks in order, then what is accepted and what is not. */
const edges: ReadonlyArray<{ what: string; marked: Array<number>; accepted: Array<number>; dropped: Array<number> }> = [
  { what: "nothing marked", marked: [], accepted: [0, 1, 64, top], dropped: [] },
  { what: "0 marked", marked: [0], accepted: [1, 2], dropped: [0] },
  { what: "the whole depth below the largest", marked: [63], accepted: [0, 1, 31, 32, 62, 64], dropped: [63] },
  { what: "one more", marked: [64], accepted: [1, 2, 63, 65], dropped: [0, 64] },
  { what: "a number at the far edge", marked: [64, 1], accepted: [2, 63, 65], dropped: [0, 1, 64] },
  { what: "a slot used again", marked: [0, 64], accepted: [1, 63], dropped: [0, 64] },
  { what: "a slot passed over by a word", marked: [5, 40, 100], accepted: [37, 69, 99], dropped: [5, 36, 40, 100] },
  { what: "a jump by less than the depth", marked: [10, 73], accepted: [11, 72], dropped: [9, 10, 73] },
  { what: "a jump by the depth", marked: [10, 74], accepted: [11, 73], dropped: [10, 74] },
  { what: "a jump beyond the depth", marked: [1, 2, 3, 1_000], accepted: [937, 999, 1_001], dropped: [1, 936, 1_000] },
  {
    what: "across 2^32",
    marked: [2 ** 32 - 1, 2 ** 32 + 1],
    accepted: [2 ** 32, 2 ** 32 - 62],
    dropped: [2 ** 32 - 1, 2 ** 32 - 63]
  },
  { what: "the last numbers", marked: [top - 1, top], accepted: [top - 2, top - 63], dropped: [top, top - 1, top - 64] }
]

describe("the replay window", () => {
  for (const { accepted, dropped, marked, what } of edges) {
    it(`holds its edges: ${what}`, () => {
      const window = new ReplayWindow(64)
      for (const number of marked) {
        assert.isTrue(window.accepts(number), `before mark ${number}`)
        window.mark(number)
      }
      for (const number of accepted) assert.isTrue(window.accepts(number), `accepts ${number}`)
      for (const number of dropped) assert.isFalse(window.accepts(number), `drops ${number}`)
      assert.strictEqual(window.largest, Math.max(-1, ...marked))
    })
  }

  it("changes nothing by asking", () => {
    const window = new ReplayWindow(64)
    assert.isTrue(window.accepts(7))
    assert.isTrue(window.accepts(7))
    assert.strictEqual(window.largest, -1)
  })

  it("keeps no number of an earlier lap of the ring", () => {
    const window = new ReplayWindow(16_384)
    for (let number = 0; number < 16_384; number++) window.mark(number)
    window.mark(32_767)
    for (let number = 16_384; number < 32_767; number++) assert.isTrue(window.accepts(number))
  })

  it("refuses depths that its ring cannot hold", () => {
    for (const depth of [0, 16, 48, 16_383]) assert.throws(() => new ReplayWindow(depth))
  })

  it.prop(
    "agrees with a set of all numbers seen",
    [Schema.Natural],
    ([seed]) => {
      const entropy = seededEntropy(seed)
      const draw = new Uint8Array(2)
      const window = new ReplayWindow(128)
      const seen = new Set<number>()
      let largest = -1
      for (let i = 0; i < 400; i++) {
        entropy.fill(draw)
        const spread = draw[0]! < 8 ? 4 : 1 // now and then far away
        const number = Math.max(0, largest + (draw[1]! - 200) * spread)
        const fresh = number > largest - 128 && !seen.has(number)
        assert.strictEqual(window.accepts(number), fresh, `number ${number}, largest ${largest}`)
        if (!fresh || draw[0]! % 4 === 0) continue
        window.mark(number)
        seen.add(number)
        largest = Math.max(largest, number)
        assert.strictEqual(window.largest, largest)
      }
    },
    { arbitrary: { runs: 100, seed: 4 } }
  )
})

import { assert, describe, it } from "@effect/vitest"
import { SendBlocks } from "./SendBlocks.ts"

describe("blocks of datagrams that wait for the system", () => {
  it("a block that became free takes datagrams from its beginning again", () => {
    const blocks = new SendBlocks(() => {})
    const datagram = new Uint8Array(1_200).fill(7)
    const waiting: Array<(error: Error | null) => void> = []
    const seen = new Set<object>()
    for (let i = 0; i < 2_000; i++) {
      const block = blocks.blockFor(datagram.length)
      const start = block.add(datagram, 0, datagram.length)
      assert.isAtMost(start + datagram.length, block.bytes.length)
      seen.add(block)
      waiting.push(block.done)
      // The system reports in bursts, as it does when many sends of one turn complete.
      if (waiting.length === 250) for (const done of waiting.splice(0)) done(null)
    }
    assert.isAtMost(seen.size, 5)
  })

  it("bytes that are under way are never overwritten", () => {
    const blocks = new SendBlocks(() => {})
    const kept: Array<{
      readonly view: Uint8Array
      readonly mark: number
      readonly done: (error: Error | null) => void
    }> = []
    for (let i = 0; i < 3_000; i++) {
      const datagram = new Uint8Array(1_000).fill(i % 251)
      const block = blocks.blockFor(datagram.length)
      const start = block.add(datagram, 0, datagram.length)
      kept.push({ view: block.bytes.subarray(start, start + 1_000), mark: i % 251, done: block.done })
      if (kept.length > 400) {
        const { done, mark, view } = kept.splice((i * 7) % kept.length, 1)[0]!
        assert.isTrue(view.every((byte) => byte === mark))
        done(null)
      }
    }
  })
})

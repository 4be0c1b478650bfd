/** Ten thousand live peers and a receiver that lost its memo: `peersMain.ts` does the same with any number. */
import { assert, describe, it } from "@effect/vitest"
import { second } from "./machines.ts"
import { describeMemoLoss, memoLoss } from "./memoLoss.ts"

describe("a memo loss", () => {
  it("keeps none of 10,000 live peers waiting for more than 3 s", () => {
    const loss = memoLoss(10_000, 1, () => performance.now())
    const figures = describeMemoLoss(loss)
    console.log(figures)
    assert.strictEqual(loss.stored, loss.peers, figures)
    assert.isAtMost(loss.lastMicros, 3 * second, figures)
    assert.isAtMost(Math.max(...loss.lostPerSecond), 2 * 4_096, figures)
    assert.isAtMost(loss.keyAgreements, 2 * loss.peers, figures)
  })
})

import { assert, describe, it } from "@effect/vitest"
import { content, frameOf, live } from "../test/scriptedPeer.ts"

describe("answers that only raise n (spec §10.6)", () => {
  it("wait for the next packet's answer while packets come close together, for 1 ms at most", () => {
    const { world, peer } = live()
    const storeFrom = (number: number, gap: number): void => {
      world.now += gap
      peer.send([peer.records(number, content(number, 50))])
      peer.answers()
      world.store()
    }
    storeFrom(1, 500)
    assert.strictEqual(frameOf(peer.answer(), "Stored")!.n, 1, "one packet is no train")
    storeFrom(2, 999)
    assert.deepStrictEqual(peer.answers(), [])
    assert.strictEqual(world.receiver.deadline(), world.now + 1_000)
    world.now += 999
    peer.send([peer.records(3, content(3, 50))])
    assert.strictEqual(frameOf(peer.answer(), "Stored")!.n, 2)
    world.store()
    world.now += 999
    world.receiver.handleTimeout(world.now)
    assert.deepStrictEqual(peer.answers(), [])
    world.now += 1
    world.receiver.handleTimeout(world.now)
    assert.strictEqual(frameOf(peer.answer(), "Stored")!.n, 3)
    storeFrom(4, 1_000)
    assert.strictEqual(frameOf(peer.answer(), "Stored")!.n, 4, "the train has ended")
  })
})

import { seededEntropy } from "@pure-link/keys"
import { assert, describe, it } from "@effect/vitest"
import type { Micros } from "@pure-link/wire"
import { never } from "@pure-link/wire"
import { content, frameOf, live } from "../test/scriptedPeer.ts"
import { Lingering } from "./lingering.ts"
import type { ReceiverRun } from "./run.ts"

/** All of a run that lingering knows of. */
const aRun = (): ReceiverRun => ({ lingersUntil: never, isGone: false }) as unknown as ReceiverRun

describe("Lingering", () => {
  it("lets a run wait again once it was due", () => {
    const lingering = new Lingering()
    const run = aRun()
    for (const now of [0, 1_000, 5_000]) {
      lingering.add(run, now)
      assert.strictEqual(lingering.deadline(), now + 1_000)
      assert.isUndefined(lingering.takeDue(now + 999))
      assert.strictEqual(lingering.takeDue(now + 1_000), run)
      assert.isUndefined(lingering.takeDue(now + 1_000))
      assert.deepStrictEqual([lingering.deadline(), run.lingersUntil], [never, never])
    }
  })

  it("agrees with a list of who waits until when, through any history", () => {
    for (let seed = 1; seed <= 5; seed++) {
      const entropy = seededEntropy(seed)
      const dice = new Uint8Array(2)
      const lingering = new Lingering()
      const runs = Array.from({ length: 8 }, aRun)
      let waiting: Array<{ readonly run: ReceiverRun; readonly until: Micros }> = []
      let now = 0
      for (let step = 0; step < 6_000; step++) {
        entropy.fill(dice)
        const run = runs[dice[0]! & 7]!
        now += dice[1]! >>> 2
        if ((dice[1]! & 3) > 0) {
          if (!waiting.some((entry) => entry.run === run)) waiting.push({ run, until: now + 1_000 })
          lingering.add(run, now)
        } else {
          // It was answered meanwhile.
          run.lingersUntil = never
          waiting = waiting.filter((entry) => entry.run !== run)
        }
        if (step % 7 === 0) {
          const due = waiting.filter(({ until }) => until <= now)
          waiting = waiting.filter(({ until }) => until > now)
          for (const entry of due) assert.strictEqual(lingering.takeDue(now), entry.run, `seed ${seed}, step ${step}`)
          assert.isUndefined(lingering.takeDue(now))
        }
        assert.strictEqual(lingering.deadline(), waiting[0]?.until ?? never, `seed ${seed}, step ${step}`)
      }
    }
  })

  it("passes over runs that are gone", () => {
    const lingering = new Lingering()
    const [gone, other] = [aRun(), aRun()]
    lingering.add(gone, 0)
    lingering.add(other, 10)
    Object.assign(gone, { isGone: true })
    assert.strictEqual(lingering.deadline(), 1_010)
    assert.strictEqual(lingering.takeDue(2_000), other)
  })
})

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

import { content, frameOf, ping, type ScriptedPeer } from "../../packages/receiver/test/scriptedPeer.ts"
import { assert, describe, it } from "@effect/vitest"
import { amplificationLimit, type Address, type Frame, sameAddress, smallestEpochPacket } from "@pure-link/wire"
import { Hostile } from "./dataAttacks.ts"
import { recordsOf, second, Stage } from "./stage.ts"
import { standingOf } from "./standing.ts"

/** Where the tables of a receiver end (spec §8.3, §12.4, §12.5, §13.2, §15.2), and that others do not notice when a peer runs into them. */

const begin = () => {
  const stage = new Stage()
  const before = stage.join("before", recordsOf(20, 500))
  stage.advance(second)
  return { stage, hostile: new Hostile(stage), before }
}

/** The next answer to a run tells this refusal, or none. */
const refusalOf = (stage: Stage, peer: ScriptedPeer): number | undefined => {
  const bytes = peer.seal([peer.stream, ping], { long: true })
  assert.isTrue(stage.receiver.handleDatagram(stage.now, bytes, 0, bytes.length, peer.from))
  const answer = stage
    .transmit()
    .map((sent) => peer.open(sent.bytes, sent.to))
    .find((opened) => opened !== undefined)
  return frameOf(answer!, "Refused")?.reason
}

/** An honest sender that comes now is served. */
const servesOthers = (stage: Stage): void => {
  const after = stage.join("after", recordsOf(20, 500))
  assert.isTrue(stage.advanceUntil(() => after.isDone, 10 * second))
  for (const output of stage.outputs) output.check()
}

describe("tables end", () => {
  it("100 runs of one peer: 64 are live, those beyond are refused for it, and none is evicted", () => {
    const { stage, hostile } = begin()
    const peers: Array<ScriptedPeer> = []
    for (let i = 0; i < 100; i++) {
      peers.push(hostile.live({ source: `hostile ${i}` }))
      stage.advance(second / 8)
    }
    const refusals = peers.map((peer) => refusalOf(stage, peer))
    assert.deepStrictEqual(
      refusals.slice(0, 64),
      Array.from({ length: 64 }, () => undefined)
    )
    assert.deepStrictEqual(
      refusals.slice(64),
      Array.from({ length: 36 }, () => 7)
    )
    servesOthers(stage)
  })

  it("300 runs of one peer that are never live: 64 of them are kept, and no other peer's is evicted", () => {
    const { stage, hostile } = begin()
    const { runsBegun, runsEvicted } = stage.receiver.counters
    for (let i = 0; i < 300; i++) {
      const peer = hostile.peer({ source: `hostile ${i}` })
      stage.hit(
        [peer.seal([peer.stream, peer.offer(), peer.records(2, content(2, 100))], { long: true })],
        hostile.from
      )
      stage.advance(second / 20)
    }
    const begun = stage.receiver.counters.runsBegun - runsBegun
    assert.isAbove(begun, 200)
    assert.strictEqual(stage.receiver.counters.runsEvicted - runsEvicted, begun - 64)
    assert.strictEqual(stage.receiver.heldBytes, 64 * 100)
    servesOthers(stage)
  })

  it("generations of one stream: after 64 further ones are refused, and the last one goes on", () => {
    const { stage, hostile } = begin()
    let last: ScriptedPeer | undefined
    for (let i = 0; i < 70; i++) {
      const peer = hostile.live({ generation: BigInt(100 + i) })
      stage.hit([peer.seal([peer.records(1, content(i, 20))])], hostile.from)
      stage.advance(second / 8)
      if (stage.inbox.cursor(peer.stream)?.generation === peer.stream.generation) last = peer
      else assert.strictEqual(refusalOf(stage, peer), 6)
    }
    assert.isTrue(last!.stream.generation >= 163n)
    assert.isAtMost(stage.inbox.retiredCount(last!.stream), 64)
    stage.hit([last!.seal([last!.records(2, content(2, 20))])], hostile.from)
    assert.strictEqual(stage.inbox.cursor(last!.stream)?.n, 2)
    servesOthers(stage)
  })

  it("offers, runs and epochs cost no more key agreements than their tokens", () => {
    const { stage, hostile } = begin()
    const peer = hostile.live()
    const { keyAgreements } = stage.receiver.counters
    const from = stage.now
    for (let turn = 0; turn < 100; turn++) {
      const offers = Array.from({ length: 10 }, (_, i): Frame => {
        return { _tag: "Offer", epoch: 10 + 10 * turn + i, publicKey: new Uint8Array(32).fill(i + 2) }
      })
      const starts = Array.from({ length: 8 }, () => {
        const start = hostile.peer()
        return start.seal([start.stream, start.offer()], { long: true })
      })
      stage.hit([peer.seal(offers), ...starts], hostile.from)
      stage.advance(second / 100)
    }
    // At once and in each second: 64 offers of live runs; starts, 64 (32) of the peer's own and 256 of all (spec §12.5).
    const seconds = (stage.now - from) / second
    const most = 64 * (1 + seconds) + 64 + 32 * seconds + 256 * (1 + seconds) + seconds
    assert.isAtMost(stage.receiver.counters.keyAgreements - keyAgreements, most)
    servesOthers(stage)
  })

  it("a thousand addresses of one run get a challenge each and little else, and leave nothing behind", () => {
    const { stage, hostile } = begin()
    const peer = hostile.live()
    stage.hit([peer.seal([ping])], hostile.from)
    stage.advance(30 * second)
    const { pathsChallenged, pathsValidated } = stage.receiver.counters
    const atRest = standingOf(stage.receiver).length
    assert.strictEqual(stage.receiver.deadline(), Number.POSITIVE_INFINITY)
    const padding: Frame = { _tag: "Padding" }
    const filled = Array.from({ length: smallestEpochPacket - peer.seal([ping]).length }, () => padding)
    for (let i = 0; i < 1_000; i++) {
      const from: Address = { host: "203.0.113.7", port: 1_000 + i }
      const bytes = peer.seal([ping, ...filled])
      const received = bytes.length
      assert.strictEqual(received, smallestEpochPacket)
      assert.isTrue(stage.receiver.handleDatagram(stage.now, bytes, 0, bytes.length, from))
      const there = stage.transmit().filter(({ to }) => sameAddress(to, from))
      assert.isAtMost(
        there.reduce((sum, sent) => sum + sent.bytes.length, 0),
        amplificationLimit * received
      )
      const challenges = there.filter((sent) => frameOf(peer.open(sent.bytes, sent.to)!, "Challenge") !== undefined)
      assert.strictEqual(challenges.length, 1, `address ${i}`)
      stage.advance(1_000)
    }
    assert.strictEqual(stage.receiver.counters.pathsChallenged - pathsChallenged, 1_000)
    assert.isBelow(stage.receiver.deadline(), stage.now + 10 * second)
    stage.turn()
    stage.advance(30 * second)
    assert.strictEqual(stage.receiver.counters.pathsValidated, pathsValidated)
    assert.strictEqual(stage.receiver.deadline(), Number.POSITIVE_INFINITY)
    assert.isAtMost(standingOf(stage.receiver).length, 1.01 * atRest)
    servesOthers(stage)
  })

  it("the largest packet number there is ends a run's numbers, and nothing else", () => {
    const { stage, hostile } = begin()
    const peer = hostile.live()
    stage.hit(
      [peer.seal([peer.records(1, content(1, 10))], { number: Number.MAX_SAFE_INTEGER, long: true })],
      hostile.from
    )
    assert.strictEqual(stage.inbox.cursor(peer.stream)?.n, 1)
    stage.hit(
      [peer.seal([peer.records(2, content(2, 10))], { number: Number.MAX_SAFE_INTEGER - 1, long: true })],
      hostile.from
    )
    stage.hit([peer.seal([peer.records(3, content(3, 10))], { number: Number.MAX_SAFE_INTEGER - 2 })], hostile.from)
    assert.strictEqual(stage.inbox.cursor(peer.stream)?.n, 3)
    stage.hit([peer.seal([peer.records(4, content(4, 10))], { number: 100, long: true })], hostile.from)
    assert.strictEqual(stage.inbox.cursor(peer.stream)?.n, 3)
    servesOthers(stage)
  })
})

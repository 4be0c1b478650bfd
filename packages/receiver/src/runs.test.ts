import { assert, describe, it } from "@effect/vitest"
import { keyPair, nodeSuite } from "@pure-link/keys"
import {
  begun,
  content,
  frameOf,
  live,
  ping,
  ScriptedPeer,
  second,
  storedContents,
  World
} from "../test/scriptedPeer.ts"

describe("addresses", () => {
  it("send at most three times the bytes that came from an address that is not validated", () => {
    const { world, peer } = begun()
    const packet = peer.seal([peer.stream, peer.offer(), peer.records(1, content(1, 5))], { long: true })
    peer.deliver(packet)
    let sent = 0
    for (let round = 0; round < 50; round++) {
      for (const { bytes } of world.transmit()) sent += bytes.length
      const intent = world.receiver.pollStore()
      if (intent === undefined) break
      world.receiver.handleStoreFailed(world.now, intent)
      world.now += second
      world.receiver.handleTimeout(world.now)
    }
    assert.isAbove(sent, packet.length)
    assert.isAtMost(sent, 3 * packet.length)
    peer.send([ping])
    assert.isNotEmpty(world.transmit())
  })

  it("send freely to an address from which a packet in epoch ≥ 1 came", () => {
    const { world, peer } = live()
    peer.send([peer.records(1, content(1, 5))])
    for (let round = 0; round < 50; round++) {
      const intent = world.receiver.pollStore()!
      world.receiver.handleStoreFailed(world.now, intent)
      assert.strictEqual(peer.answers().length, 1)
      world.now += second
      world.receiver.handleTimeout(world.now)
    }
  })
})

describe("runs", () => {
  it("keep at most 64 provisional ones of a peer", () => {
    const world = new World()
    const identity = keyPair(nodeSuite, world.entropy)
    const runs = Array.from({ length: 65 }, () => new ScriptedPeer(world, { identity }).allowed())
    for (const run of runs) {
      assert.isTrue(run.send([run.stream, run.offer()], { long: true }))
      world.now += second
    }
    assert.strictEqual(runs.filter((run) => run.send([ping])).length, 64)
    assert.strictEqual(world.receiver.counters.runsEvicted, 1)
  })

  it("that hold nothing leave what a live run holds alone when they are evicted", () => {
    const { world, peer } = live()
    // Recorded first packets of former processes, whose lives are over: their records are stored.
    const lives = [{ life: 5n, first: 1 }]
    const former = Array.from({ length: 80 }, () => new ScriptedPeer(world, { identity: peer.identity, lives }))
    const replays = former.map((run) => run.seal([run.stream, run.records(1, content(1, 10))], { long: true }))
    peer.send([peer.records(1, content(1, 10))])
    world.store()
    peer.send([peer.records(3, content(3, 10))])
    const { replyRun } = peer.answers().at(-1)!
    for (const packet of replays) {
      peer.deliver(packet, peer.from)
      world.now += second
    }
    assert.isAbove(world.receiver.counters.runsEvicted, 10)
    peer.send([peer.records(2, content(2, 10))])
    assert.strictEqual(peer.answers().at(-1)!.replyRun, replyRun)
    world.store()
    assert.strictEqual(storedContents(world).length, 3)
  })

  it("never evict a live one for replayed starts", () => {
    const { world, peer } = live()
    for (let i = 0; i < 20; i++) {
      const replayed = new ScriptedPeer(world, { identity: peer.identity })
      replayed.send([replayed.stream, replayed.records(1, content(1, 10))], { long: true })
    }
    assert.isTrue(peer.send([ping]))
  })

  it("make one provisional run of a peer for each run id, not for each packet", () => {
    const { world, peer } = begun()
    for (let i = 0; i < 20; i++) peer.send([peer.stream, ping], { long: true })
    assert.strictEqual(world.receiver.counters.runsBegun, 1)
  })

  it("of equal prefix are all tried, at most 4", () => {
    const world = new World()
    const identity = keyPair(nodeSuite, world.entropy)
    const runs = [1n, 2n, 3n, 4n, 5n].map((low) =>
      new ScriptedPeer(world, { identity, run: (7n << 32n) + low }).allowed()
    )
    for (const run of runs.slice(0, 4)) run.send([run.stream, ping], { long: true })
    for (const run of runs.slice(0, 4)) assert.isTrue(run.send([ping]))
    assert.isTrue(runs[4]!.send([runs[4]!.stream, ping], { long: true }))
    assert.isFalse(runs[0]!.send([ping]))
  })

  it("beyond 64 live ones are refused with reason 7", () => {
    const world = new World()
    const identity = keyPair(nodeSuite, world.entropy)
    for (let i = 0; i < 64; i++) new ScriptedPeer(world, { identity, source: `s${i}` }).allowed().start()
    const beyond = new ScriptedPeer(world, { identity, source: "s64" })
    beyond.start()
    beyond.send([ping])
    assert.strictEqual(frameOf(beyond.answer(), "Refused")!.reason, 7)
    const newer = new ScriptedPeer(world, { identity, source: "s3" })
    newer.start()
    newer.send([ping])
    assert.isUndefined(frameOf(newer.answers().at(-1)!, "Refused"))
  })

  it("that were not heard for an hour give their place to new ones, and may draw LOST", () => {
    const world = new World()
    const identity = keyPair(nodeSuite, world.entropy)
    const old = Array.from({ length: 64 }, (_, i) => {
      const run = new ScriptedPeer(world, { identity, source: `s${i}` }).allowed()
      run.start()
      return run
    })
    world.now += 3_600 * second
    for (const run of old.slice(1)) run.send([ping])
    const beyond = new ScriptedPeer(world, { identity, source: "s64" })
    beyond.start()
    beyond.send([ping])
    assert.isUndefined(frameOf(beyond.answers().at(-1)!, "Refused"))
    world.transmit()
    assert.isFalse(old[0]!.send(Array.from({ length: 40 }, () => ping)))
    world.transmit()
    assert.strictEqual(world.receiver.counters.lostSent, 1)
    assert.isTrue(old[1]!.send([ping]))
  })

  it("survive a late packet of a run that was evicted and begins anew", () => {
    const { world, peer } = begun()
    const first = peer.seal([peer.stream, peer.records(1, content(1, 10))], { long: true })
    peer.deliver(first)
    const { replyRun } = peer.answer()
    world.receiver.revoke(peer.identity.publicKey)
    peer.allowed()
    peer.deliver(first)
    assert.notStrictEqual(peer.answer().replyRun, replyRun)
    world.store()
    assert.deepStrictEqual(storedContents(world), [content(1, 10)])
  })
})

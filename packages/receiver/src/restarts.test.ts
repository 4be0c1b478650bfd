/**
 * A receiver that starts again: with its memo it goes on at once, without it says LOST (spec §12.1, §12.2, §12.5).
 */
import { assert, describe, it } from "@effect/vitest"
import { lostKey, nodeSuite, seededEntropy, staticSecret } from "@pure-link/keys"
import { lostLength, PacketEcho, PacketHeader, runPrefixOf } from "@pure-link/wire"
import {
  begun,
  content,
  elsewhere,
  frameOf,
  generationA,
  generationB,
  lifeA,
  lifeB,
  live,
  MapMemo,
  numbersOf,
  ping,
  ScriptedPeer,
  second,
  storedContents,
  World
} from "../test/scriptedPeer.ts"

/** What a LOST says, opened as its sender would; undefined when it does not open. */
const openLost = (peer: ScriptedPeer, datagram: Uint8Array): PacketEcho | undefined => {
  const bytes = datagram.slice()
  const header = new PacketHeader()
  assert.isTrue(header.read(bytes, 0, bytes.length))
  assert.strictEqual(header.runPrefix, runPrefixOf(peer.run))
  const pair = { sender: peer.identity.publicKey, receiver: peer.world.identity.publicKey }
  const secret = staticSecret(nodeSuite, peer.identity.privateKey, pair.receiver, pair)!
  const key = lostKey(nodeSuite, secret, pair, header.replyRun)
  if (!key.open(bytes, 0, header.length, bytes.length, 0)) return undefined
  const echo = new PacketEcho()
  return echo.read(bytes, header.length, bytes.length - 16) ? echo : undefined
}

/** A packet of epoch ≥ 1 that may draw LOST. */
const long = [ping, ...Array.from({ length: 60 }, () => ({ _tag: "Padding" }) as const)]

describe("a receiver with its memo", () => {
  it("opens its peer's next packet after a restart, without X25519 and without LOST, in a fresh reply run", () => {
    const memo = new MapMemo()
    const { world, peer } = live({ memo })
    peer.send([peer.records(1, content(1, 40))])
    world.store()
    const before = peer.answers().at(-1)!
    world.restart({ memo })
    peer.allowed()
    // A short header, without STREAM: it opens, but the lives may be older than it.
    assert.isTrue(peer.send([peer.records(2, content(2, 40))]))
    const seen = peer.answers().at(-1)!
    assert.notStrictEqual(seen.replyRun, before.replyRun)
    assert.strictEqual(frameOf(seen, "Stored")!.n, 1)
    assert.isUndefined(frameOf(seen, "Name"))
    assert.deepStrictEqual(numbersOf(seen, "Seen"), [peer.number - 1])
    // The sender hears of the new reply run, and sends STREAM again.
    peer.send([peer.stream, peer.records(2, content(2, 40))])
    world.store()
    assert.strictEqual(frameOf(peer.answers().at(-1)!, "Stored")!.n, 2)
    const { keyAgreements, lostSent, runsRestored } = world.receiver.counters
    assert.deepStrictEqual(
      { keyAgreements, lostSent, runsRestored },
      { keyAgreements: 0, lostSent: 0, runsRestored: 1 }
    )
    assert.deepStrictEqual(storedContents(world), [content(1, 40), content(2, 40)])
  })

  it("knows a candidate before its ACCEPT leaves", () => {
    const memo = new MapMemo()
    const { world, peer } = begun({ memo })
    peer.send([peer.stream, peer.offer()], { long: true })
    const accept = frameOf(peer.answer(), "Accept")!
    assert.isTrue(peer.epochs.handleAccept(world.now, accept.epoch, accept.echo, accept.publicKey))
    world.restart({ memo })
    peer.allowed()
    assert.isTrue(peer.send([peer.stream, peer.records(1, content(1, 9))]))
    assert.strictEqual(world.receiver.counters.keyAgreements, 0)
    assert.isDefined(world.events().find(({ _tag }) => _tag === "RunLive"))
  })

  it("answers the same OFFER with the same ACCEPT as before", () => {
    const memo = new MapMemo()
    const { world, peer } = begun({ memo })
    const offer = peer.offer()
    peer.send([peer.stream, offer], { long: true })
    const accept = frameOf(peer.answer(), "Accept")!
    world.restart({ memo })
    peer.allowed()
    peer.send([peer.stream, offer], { long: true })
    assert.deepStrictEqual(frameOf(peer.answer(), "Accept"), accept)
  })

  it("lets packets up to the remembered bound change no path, epoch or candidate", () => {
    const memo = new MapMemo()
    const { world, peer } = live({ memo })
    const offer = peer.offer()
    const late = peer.seal([offer])
    peer.send([ping, offer])
    peer.answers()
    const bound = peer.number - 1
    const old = memo.copy()
    assert.strictEqual([...old.peers.values()][0]!.runs.get(peer.run)!.bound, bound)
    world.restart({ memo: old })
    peer.allowed()
    assert.isTrue(peer.deliver(late, elsewhere))
    // Nothing went to where it came from, and the run has no other address yet.
    assert.deepStrictEqual(world.transmit(), [])
    assert.isTrue(peer.send(long))
    const answer = peer.answer()
    assert.deepStrictEqual(answer.to, peer.from)
    assert.deepStrictEqual([...numbersOf(answer, "Ack")].sort(), [bound - 1, bound + 1])
  })

  it("asks for the name of a stream that has more lives than it holds", () => {
    const memo = new MapMemo()
    const { world, peer } = begun({ memo })
    const lives = [1, 2, 3].map((first) => ({ life: BigInt(first), first }))
    const other = new ScriptedPeer(world, { identity: peer.identity, lives })
    other.start()
    world.restart({ memo })
    peer.allowed()
    other.send([other.records(1, content(1, 5))])
    const answer = other.answer()
    assert.isDefined(frameOf(answer, "Name"))
    assert.deepStrictEqual(numbersOf(answer, "Seen"), [other.number - 1])
  })

  it("keeps no record under lives that may be older than its packet", () => {
    const memo = new MapMemo()
    const { world, peer } = live({ memo })
    const early = peer.seal([peer.stream, ping])
    const lives = [...peer.stream.lives, { life: lifeB, first: 2 }]
    const late = peer.seal([peer.records(2, content(2, 5))])
    const latest = peer.seal([{ ...peer.stream, lives }, ...long])
    world.restart({ memo })
    peer.allowed()
    // An older list arrives late, and then a record of a life that it does not know.
    peer.deliver(early)
    peer.deliver(late)
    assert.isTrue(numbersOf(peer.answers().at(-1)!, "Seen").includes(peer.number - 2))
    peer.deliver(latest)
    peer.send([peer.records(1, content(1, 5), content(2, 5))])
    const answer = peer.answers().at(-1)!
    assert.isTrue(numbersOf(answer, "Seen").includes(peer.number - 1))
    // RESPONSE proves that the sender heard of this life; it repeats STREAM until that is answered here.
    const { token } = frameOf(answer, "Challenge")!
    peer.send([
      { _tag: "Response", token },
      { ...peer.stream, lives }
    ])
    peer.send([peer.records(1, content(1, 5), content(2, 5))])
    world.store()
    assert.deepStrictEqual(world.inbox.cursor(peer.stream), { generation: generationA, n: 2, life: lifeB })
  })

  it("writes the bound again every 2^14 numbers", () => {
    const memo = new MapMemo()
    const { peer } = live({ memo })
    const boundOf = () => [...memo.peers.values()][0]!.runs.get(peer.run)!.bound
    const first = boundOf()
    peer.send([ping], { number: first + 2 ** 14 - 1 })
    assert.strictEqual(boundOf(), first)
    peer.send([ping], { number: first + 2 ** 14 })
    assert.strictEqual(boundOf(), first + 2 ** 14)
  })

  it("forgets the secrets of a run that was replaced, and all of a peer that was revoked", () => {
    const memo = new MapMemo()
    const { world, peer } = live({ memo })
    const next = new ScriptedPeer(world, { identity: peer.identity })
    next.start()
    const [kept] = memo.peers.values()
    assert.deepStrictEqual([...kept!.runs.keys()], [next.run])
    world.receiver.revoke(peer.identity.publicKey)
    assert.strictEqual(memo.peers.size, 0)
  })

  it("forgets a run that it only remembered when a newer one of the stream goes live", () => {
    const memo = new MapMemo()
    const { world, peer } = live({ memo })
    world.restart({ memo })
    peer.allowed()
    const next = new ScriptedPeer(world, { identity: peer.identity })
    next.start()
    assert.deepStrictEqual([...[...memo.peers.values()][0]!.runs.keys()], [next.run])
    assert.isFalse(peer.send([ping]))
  })

  it("lets no remembered run replace the generation of the inbox: its sender, if there is one, begins anew", () => {
    for (const isOtherPeer of [false, true]) {
      const memo = new MapMemo()
      const { world, peer } = live({ memo })
      const other = isOtherPeer ? {} : { identity: peer.identity }
      const abandoned = new ScriptedPeer(world, { ...other, generation: generationB }).allowed()
      abandoned.start()
      const late = abandoned.seal([abandoned.stream, abandoned.records(1, content(9, 30))])
      peer.send([peer.records(1, content(1, 5))])
      world.store()
      peer.answers()
      for (let life = 0; life < 2; life++) {
        world.restart({ memo })
        peer.allowed()
        abandoned.allowed()
        // A stranger's datagram that only looks like one of the abandoned run.
        const forged = late.slice()
        forged[40]! ^= 1
        assert.isFalse(abandoned.deliver(forged))
        peer.send([peer.stream, peer.records(2 + life, content(2, 5))])
        world.store()
      }
      world.transmit()
      abandoned.deliver(late)
      world.store()
      assert.deepStrictEqual(world.inbox.cursor(peer.stream), { generation: generationA, n: 3, life: lifeA })
      assert.isDefined(openLost(abandoned, world.transmit().at(-1)!.bytes))
      peer.send([peer.stream, peer.records(4, content(4, 5))])
      assert.isUndefined(frameOf(peer.answers().at(-1)!, "Refused"))
      // Its sender is alive after all: the fresh run is a new one, and may replace.
      const fresh = new ScriptedPeer(world, { identity: abandoned.identity, generation: generationB })
      fresh.start()
      fresh.send([fresh.records(1, content(1, 7))])
      world.store()
      assert.strictEqual(world.inbox.cursor(peer.stream)!.generation, generationB)
    }
  })

  it("goes on without a memo that takes nothing, says so once, and says when it works again", () => {
    const memo = new MapMemo()
    memo.fails = true
    const { world, peer } = begun({ memo })
    peer.start()
    assert.isAbove(world.receiver.counters.memoFailures, 0)
    const tags = () => world.events().map(({ _tag }) => _tag)
    assert.deepStrictEqual(
      tags().filter((tag) => tag.startsWith("Memo")),
      ["MemoFailed"]
    )
    memo.fails = false
    new ScriptedPeer(world, { identity: peer.identity }).start()
    assert.deepStrictEqual(
      tags().filter((tag) => tag.startsWith("Memo")),
      [],
      "it may fail for the next one again"
    )
    world.now += 10 * second
    new ScriptedPeer(world, { identity: peer.identity }).start()
    assert.deepStrictEqual(
      tags().filter((tag) => tag.startsWith("Memo")),
      ["MemoWorks"]
    )
  })

  it("reuses no reply run, so that two machines with copies of a memo reuse no nonce", () => {
    const memo = new MapMemo()
    const { world, peer } = live({ memo })
    const replyRuns = [1, 2].map((seed) => {
      world.restart({ memo: memo.copy(), entropy: seededEntropy(seed) })
      peer.allowed()
      peer.send(long)
      return peer.answer().replyRun
    })
    assert.strictEqual(new Set(replyRuns).size, 2)
  })
})

describe("LOST", () => {
  it("answers a packet in epoch ≥ 1 of a forgotten run with an echo of it, smaller than it", () => {
    const { world, peer } = live()
    world.restart()
    peer.allowed()
    const packet = peer.seal(long)
    assert.isFalse(peer.deliver(packet, elsewhere))
    const [lost, ...more] = world.transmit()
    assert.deepStrictEqual(more, [])
    assert.deepStrictEqual(lost!.to, elsewhere)
    assert.strictEqual(lost!.bytes.length, lostLength)
    assert.isBelow(lost!.bytes.length, packet.length)
    const expected = new PacketEcho()
    expected.take(packet, 0, packet.length, peer.number - 1)
    assert.deepStrictEqual(openLost(peer, lost!.bytes), expected)
    assert.deepStrictEqual(
      world.events().map(({ _tag }) => _tag),
      ["LostSent"]
    )
  })

  it("is drawn by a run whose memo is older than its epoch, but not by garbage in an epoch that the memo knows", () => {
    const memo = new MapMemo()
    const { world, peer } = live({ memo })
    const old = memo.copy()
    for (let rotation = 0; rotation < 2; rotation++) {
      peer.send([peer.offer()])
      const accept = frameOf(peer.answer(), "Accept")!
      peer.epochs.handleAccept(world.now, accept.epoch, accept.echo, accept.publicKey)
      peer.send([ping])
      peer.answers()
    }
    const packet = peer.seal(long)
    world.restart({ memo: old })
    peer.allowed()
    const garbage = packet.slice()
    garbage[0] = 1
    assert.isFalse(peer.deliver(garbage))
    assert.deepStrictEqual(world.transmit(), [])
    assert.isFalse(peer.deliver(packet))
    assert.isDefined(openLost(peer, world.transmit()[0]!.bytes))
  })

  it("is never drawn by a run that opened a packet in this life, whatever epoch is made up, even when it ended", () => {
    const { world, peer } = live()
    for (let bits = 2; bits < 16; bits++) {
      const packet = peer.seal(long)
      packet[0] = bits
      assert.isFalse(peer.deliver(packet))
    }
    new ScriptedPeer(world, { identity: peer.identity }).start()
    assert.isFalse(peer.send(long))
    assert.deepStrictEqual(world.transmit(), [])
    assert.strictEqual(world.receiver.counters.lostSent, 0)
  })

  it("is not drawn by packets shorter than itself, epoch 0, or strangers", () => {
    const { world, peer } = live()
    world.restart()
    peer.send(long)
    peer.allowed()
    const packet = peer.seal(long)
    peer.deliver(packet.subarray(0, 46))
    peer.send(long, { epoch: 0 })
    assert.deepStrictEqual(world.transmit(), [])
    peer.deliver(packet.subarray(0, 47))
    assert.strictEqual(world.transmit().length, 1)
  })

  it("goes to one peer once, then ten times a second", () => {
    const { world, peer } = live()
    world.restart()
    peer.allowed()
    let sent = 0
    for (let i = 0; i < 1_000; i++) {
      peer.send(long)
      sent += world.transmit().length
      world.now += 1_000
    }
    assert.isAtLeast(sent, 10)
    assert.isAtMost(sent, 11)
    assert.strictEqual(world.receiver.counters.lostLimited, 1_000 - sent)
  })
})

describe("tokens", () => {
  it("bound what forged starts of runs make the receiver compute, and let honest ones through", () => {
    const world = new World()
    const peers = Array.from({ length: 20 }, () => new ScriptedPeer(world).allowed())
    const packets = peers.map((peer) => peer.seal(long, { long: true, epoch: 0 }))
    const forge = (i: number) => {
      const packet = packets[i]!
      world.entropy.fill(packet.subarray(5, 13))
      return peers[i]!.deliver(packet, elsewhere)
    }
    const before = world.receiver.counters.keyAgreements
    for (let i = 0; i < 20_000; i++) {
      assert.isFalse(forge(i % 10))
      world.now += 20
    }
    const { keyAgreements, keyDerivations, keyDerivationsLimited, runsBegun } = world.receiver.counters
    assert.isAtMost(keyDerivations, 8_192 * 1.5)
    assert.strictEqual(keyDerivations + keyDerivationsLimited, 20_000)
    assert.strictEqual(keyAgreements - before, 10, "static secrets, once for each peer")
    assert.strictEqual(runsBegun, 0)
    assert.deepStrictEqual(world.transmit(), [])
    for (const peer of peers.slice(10)) {
      world.now += second
      peer.start()
    }
  })

  it("bound the runs that replayed first packets begin, and keep a start for the peer's own host", () => {
    const { world, peer } = live()
    const starts = Array.from({ length: 200 }, () => {
      const run = new ScriptedPeer(world, { identity: peer.identity })
      return run.seal([run.stream, run.offer()], { long: true })
    })
    const { runsBegun } = world.receiver.counters
    for (const packet of starts) peer.deliver(packet, elsewhere)
    assert.strictEqual(world.receiver.counters.runsBegun - runsBegun, 64)
    const again = new ScriptedPeer(world, { identity: peer.identity })
    assert.isTrue(again.send([again.stream, again.offer()], { long: true }))
    // As many again do not push it out, because they are not from there.
    world.now += 2 * second
    for (const packet of starts.slice(64)) peer.deliver(packet, elsewhere)
    assert.isTrue(again.send([ping]))
  })

  it("are not taken away from a peer by a flood that claims its key id", () => {
    const world = new World()
    const peer = new ScriptedPeer(world).allowed()
    const forged = peer.seal(long, { long: true, epoch: 0 })
    const flood = (count: number) => {
      for (let i = 0; i < count; i++) {
        world.entropy.fill(forged.subarray(5, 13))
        world.now += 50
        assert.isFalse(peer.deliver(forged, elsewhere))
      }
    }
    // 20,000 a second: two in five are tried, and the honest packet is no worse off.
    flood(20_000)
    let tries = 0
    for (let opened = false; !opened; tries++) {
      assert.isBelow(tries, 30)
      flood(97)
      world.now += 25
      opened = peer.send([peer.stream, peer.offer()], { long: true })
    }
  })

  it("bound the ACCEPTs of a peer that offers without end", () => {
    const { world, peer } = live()
    const before = world.receiver.counters.keyAgreements
    for (let epoch = 2; epoch < 1_002; epoch++) {
      const publicKey = nodeSuite.agreement.publicKey(world.identity.privateKey)
      peer.send([{ _tag: "Offer", epoch, publicKey }])
      peer.answers()
      world.now += 1_000
    }
    assert.isAtMost(world.receiver.counters.keyAgreements - before, 64 + 64)
    assert.isTrue(peer.send([peer.records(1, content(1, 5))]))
  })
})

describe("an epoch past its limits", () => {
  it("opens nothing but a packet that carries an OFFER", () => {
    const { world, peer } = live({ epochLimits: { packets: 10, mostPackets: 20 } })
    for (let i = 0; i < 20; i++) peer.send([ping])
    peer.answers()
    peer.send([peer.records(1, content(1, 5))])
    assert.deepStrictEqual(peer.answers(), [])
    assert.isAbove(world.receiver.counters.dropped["expired epoch"], 0)
    peer.send([peer.offer(), peer.records(1, content(1, 5))])
    const accept = frameOf(peer.answer(), "Accept")!
    assert.isTrue(peer.epochs.handleAccept(world.now, accept.epoch, accept.echo, accept.publicKey))
    peer.send([peer.records(1, content(1, 5))])
    assert.isTrue(numbersOf(peer.answer(), "Ack").includes(peer.number - 1))
  })

  it("is not one of any age: the clock of a device that slept for days may not have moved", () => {
    const { world, peer } = live({ epochLimits: { lifetimeMicros: second } })
    world.now += 86_400 * second
    assert.isTrue(peer.send([peer.records(1, content(1, 5))]))
    assert.isTrue(numbersOf(peer.answer(), "Ack").includes(peer.number - 1))
  })

  it("is one that opened too many packets, or turned away too many forged ones", () => {
    for (const forged of [false, true]) {
      const { world, peer } = live({ epochLimits: { packets: 10, mostPackets: 20, mostForged: 20 } })
      for (let i = 0; i < 25; i++) {
        const packet = peer.seal([ping])
        if (forged) packet[packet.length - 1]! ^= 1
        peer.deliver(packet)
      }
      peer.answers()
      peer.send([ping])
      assert.deepStrictEqual(peer.answers(), [], `forged ${forged}`)
      assert.isAbove(world.receiver.counters.dropped["expired epoch"], 0)
    }
  })
})

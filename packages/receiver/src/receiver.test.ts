import { assert, describe, it } from "@effect/vitest"
import { type CryptoSuite, keyPair, nodeSuite } from "@pure-link/keys"
import { type Frame, Kind, smallestDatagram } from "@pure-link/wire"
import {
  begun,
  content,
  elsewhere,
  frameOf,
  generationA,
  lifeA,
  lifeB,
  live,
  numbersOf,
  ping,
  ScriptedPeer,
  second,
  storedContents,
  World
} from "../test/scriptedPeer.ts"
import { PeerNotAllowable } from "./index.ts"

describe("opening", () => {
  it("stores what an unknown run of an allowed peer sends in epoch 0, and answers with ACK, STORED and ACCEPT", () => {
    const { world, peer } = begun()
    assert.isTrue(peer.send([peer.stream, peer.offer(), peer.records(1, content(1, 100))], { long: true }))
    const first = peer.answer()
    assert.deepStrictEqual(numbersOf(first, "Ack"), [0])
    assert.strictEqual(frameOf(first, "Stored")!.n, 0)
    assert.isDefined(frameOf(first, "Accept"))
    world.store()
    assert.deepStrictEqual(storedContents(world), [content(1, 100)])
    const { n, life } = frameOf(peer.answer(), "Stored")!
    assert.strictEqual(n, 1)
    assert.strictEqual(life, lifeA)
  })

  it("meets strangers, and unknown runs with a short header or in epoch ≥ 1, with silence", () => {
    const { world, peer } = begun()
    const stranger = new ScriptedPeer(world)
    assert.isFalse(stranger.send([stranger.stream, ping], { long: true }))
    assert.isFalse(peer.send([peer.stream, ping]))
    const other = live()
    const packet = other.peer.seal([ping], { long: true })
    assert.isFalse(world.receiver.handleDatagram(world.now, packet, 0, packet.length, elsewhere))
    assert.deepStrictEqual(world.transmit(), [])
  })

  it("does nothing with a packet that was tampered with at any byte but say LOST, and still takes the genuine one", () => {
    const { world, peer } = live()
    const packet = peer.seal([peer.records(1, content(1, 30))])
    const { packetsOpened } = world.receiver.counters
    for (let i = 0; i < packet.length; i++) {
      const forged = packet.slice()
      forged[i]! ^= 1 << (i % 8)
      assert.isFalse(peer.deliver(forged), `byte ${i}`)
      assert.isFalse(peer.deliver(packet.subarray(0, i)), `${i} bytes`)
    }
    assert.strictEqual(world.receiver.counters.packetsOpened, packetsOpened)
    // Another run prefix is one that nobody knows.
    const lost = world.transmit()
    assert.strictEqual(lost.length, 1)
    assert.strictEqual(lost[0]!.bytes[0]! >>> 6, Kind.lost)
    assert.isTrue(peer.deliver(packet))
  })

  it("opens no packet twice", () => {
    const { world, peer } = live()
    const packet = peer.seal([ping])
    assert.isTrue(peer.deliver(packet))
    peer.answer()
    assert.isFalse(peer.deliver(packet))
    assert.deepStrictEqual(world.transmit(), [])
    assert.strictEqual(world.receiver.counters.dropped.replayed, 1)
  })

  it("with the fault markBeforeVerify, a forged packet shuts out the genuine one", () => {
    const { peer } = begun({ faults: { markBeforeVerify: true } })
    const first = peer.seal([peer.stream, ping], { long: true })
    assert.isTrue(peer.deliver(first))
    assert.isFalse(peer.deliver(first), "the number of a run's first packet is used too")
    const packet = peer.seal([ping])
    const forged = packet.slice()
    forged[forged.length - 1]! ^= 1
    assert.isFalse(peer.deliver(forged))
    assert.isFalse(peer.deliver(packet))
  })

  it("expands short numbers within the receive range only; a long header may jump", () => {
    const { peer } = live()
    assert.isFalse(peer.send([ping], { number: 100_000 }))
    assert.isTrue(peer.send([ping], { number: 100_000, long: true }))
    peer.answer()
    assert.isTrue(peer.send([ping], { number: 165_000 }))
    assert.isTrue(peer.send([ping], { number: 164_990 }))
  })

  it("validates a body as a whole before any of it takes effect", () => {
    const { world, peer } = live()
    const good = peer.records(1, content(1, 30))
    const answerFrame: Frame = { _tag: "Name" }
    assert.isTrue(peer.send([good, answerFrame]))
    assert.strictEqual(world.receiver.counters.violations, 1)
    assert.deepStrictEqual(
      world.events().map((event) => event._tag),
      ["Violation"]
    )
    assert.deepStrictEqual(world.transmit(), [])
    assert.isUndefined(world.receiver.pollStore())
  })

  it("survives authenticated garbage in every body", () => {
    const { world, peer } = live()
    for (let seed = 0; seed < 3_000; seed++) {
      const junk = content(seed * 7 + 1, 1 + (seed % 40))
      if (seed % 3 === 0) junk[0] = 0x80 | (seed % 128)
      if (seed % 3 === 1) junk[0] = [0x02, 0x03, 0x40, 0x41, 0x01][seed % 5]!
      assert.isTrue(peer.deliver(peer.sealBody(junk)))
      assert.isTrue(peer.send(hostileFrames(junk)))
      if (seed % 100 === 0) peer.answers()
    }
    assert.isAbove(world.receiver.counters.violations, 100)
    peer.answers()
    peer.send([peer.records(1, content(1, 10))])
    world.store()
    assert.strictEqual(world.inbox.records.length, 1)
  })

  it("tries up to four peers of one key id and refuses a fifth", () => {
    const suite: CryptoSuite = {
      ...nodeSuite,
      derivation: { ...nodeSuite.derivation, sha256: () => new Uint8Array(32) }
    }
    const world = new World({ suite })
    const peers = Array.from({ length: 4 }, () => new ScriptedPeer(world).allowed())
    for (const peer of peers) assert.isTrue(peer.send([peer.stream, ping], { long: true }))
    assert.throws(() => new ScriptedPeer(world).allowed(), PeerNotAllowable)
    world.receiver.revoke(peers[0]!.identity.publicKey)
    assert.isFalse(peers[0]!.send([ping]))
    new ScriptedPeer(world).allowed()
  })

  it("refuses to allow a key that is not canonical", () => {
    const world = new World()
    const publicKey = new Uint8Array(32).fill(0xff)
    assert.throws(() => world.receiver.allow({ publicKey, sources: "any" }), PeerNotAllowable)
  })

  it("computes the static secret of a peer once", () => {
    let agreements = 0
    const suite: CryptoSuite = {
      ...nodeSuite,
      agreement: {
        publicKey: nodeSuite.agreement.publicKey,
        shared: (own, other) => {
          agreements += 1
          return nodeSuite.agreement.shared(own, other)
        }
      }
    }
    const world = new World({ suite })
    const identity = keyPair(nodeSuite, world.entropy)
    const runs = Array.from({ length: 5 }, () => new ScriptedPeer(world, { identity }).allowed())
    agreements = 0
    for (const run of runs) run.send([run.stream, ping], { long: true })
    assert.strictEqual(agreements, 1)
  })
})

/** Well-formed frames of hostile values. */
const hostileFrames = (junk: Uint8Array): ReadonlyArray<Frame> => [
  {
    _tag: "Records",
    firstDelta: 1 + junk[0]! * 300,
    partOffset: (junk[1] ?? 0) * 256,
    endsRecord: junk.length % 2 === 0,
    parts: [junk]
  },
  {
    _tag: "Part",
    delta: 2 ** 32 - 1 - junk[0]!,
    partOffset: 2 ** 24 - 300 + (junk[1] ?? 0),
    endsRecord: junk.length % 3 === 0,
    bytes: junk
  },
  { _tag: "Offer", epoch: junk[0]!, publicKey: content(junk[0]!, 32) },
  { _tag: "Response", token: BigInt(junk[0]!) }
]

describe("epochs", () => {
  it("go live with the first packet under the accepted epoch, and ACCEPT ends", () => {
    const { world, peer } = begun()
    peer.start()
    assert.deepStrictEqual(
      world.events().map((event) => event._tag),
      ["RunLive"]
    )
    peer.send([ping])
    const answer = peer.answer()
    assert.isUndefined(frameOf(answer, "Accept"))
    assert.strictEqual(answer.epochBits, 1)
  })

  it("keep ACCEPT in every answer until then, the same for the same OFFER", () => {
    const { peer } = begun()
    const offer = peer.offer()
    peer.send([peer.stream, offer], { long: true })
    const first = frameOf(peer.answer(), "Accept")
    peer.send([offer])
    assert.deepStrictEqual(frameOf(peer.answer(), "Accept"), first)
    peer.send([ping])
    assert.deepStrictEqual(frameOf(peer.answer(), "Accept"), first)
  })

  it("let a silent recovery in epoch 0 lead a live run into a new epoch", () => {
    const { peer } = live()
    const { epoch, publicKey } = peer.epochs.offer(0)
    peer.send([peer.stream, { _tag: "Offer", epoch, publicKey }], { epoch: 0, long: true })
    const accept = frameOf(peer.answer(), "Accept")!
    assert.isTrue(peer.epochs.handleAccept(peer.world.now, accept.epoch, accept.echo, accept.publicKey))
    peer.send([ping])
    assert.strictEqual(peer.answer().epochBits, 2)
  })

  it("erase the former epoch when its time has come", () => {
    const { world, peer } = live()
    const { epoch, publicKey } = peer.epochs.offer(1)
    peer.send([{ _tag: "Offer", epoch, publicKey }])
    const late = peer.seal([ping])
    const later = peer.seal([ping])
    const accept = frameOf(peer.answer(), "Accept")!
    peer.epochs.handleAccept(world.now, accept.epoch, accept.echo, accept.publicKey)
    peer.send([ping])
    assert.isTrue(peer.deliver(late))
    assert.strictEqual(world.receiver.deadline(), world.now + 10 * second)
    world.now += 10 * second
    world.receiver.handleTimeout(world.now)
    assert.isFalse(peer.deliver(later))
    assert.strictEqual(world.receiver.deadline(), Number.POSITIVE_INFINITY)
  })
})

describe("acknowledging and storing", () => {
  it("answer a batch once, and each packet that comes alone at once", () => {
    const { peer } = live()
    for (let i = 0; i < 10; i++) peer.send([ping])
    assert.deepStrictEqual(numbersOf(peer.answer(), "Ack").slice(0, 10), [11, 10, 9, 8, 7, 6, 5, 4, 3, 2])
    peer.send([ping])
    assert.strictEqual(numbersOf(peer.answer(), "Ack")[0], 12)
  })

  it("acknowledge parts that are held, and confirm nothing before the inbox does", () => {
    const { world, peer } = live()
    peer.send([peer.records(1, content(1, 50))])
    const intent = world.receiver.pollStore()!
    const answer = peer.answer()
    assert.strictEqual(numbersOf(answer, "Ack")[0], 2)
    assert.strictEqual(frameOf(answer, "Stored")!.n, 0)
    world.receiver.handleStored(world.now, intent, world.inbox.commit(intent))
    assert.strictEqual(frameOf(peer.answer(), "Stored")!.n, 1)
  })

  it("with the fault storedBeforeCommit, STORED runs ahead of the inbox", () => {
    const { world, peer } = live({ faults: { storedBeforeCommit: true } })
    peer.send([peer.records(1, content(1, 50))])
    assert.strictEqual(frameOf(peer.answer(), "Stored")!.n, 1)
    assert.isUndefined(world.inbox.cursor(peer.stream))
  })

  it("with the fault acceptGap, a later record is stored although one is missing", () => {
    for (const acceptGap of [false, true]) {
      const { world, peer } = live({ faults: { acceptGap } })
      peer.send([peer.records(2, content(2, 50))])
      world.store()
      assert.deepStrictEqual(
        storedContents(world).map((bytes) => bytes.length),
        acceptGap ? [0, 50] : []
      )
    }
  })

  it("store in order what came out of order", () => {
    const { world, peer } = live()
    for (const number of [3, 1, 4, 2]) peer.send([peer.records(number, content(number, 50))])
    world.store()
    assert.deepStrictEqual(
      storedContents(world),
      [1, 2, 3, 4].map((number) => content(number, 50))
    )
  })

  it("have at most one commit of a stream under way, and gather what comes meanwhile", () => {
    const { world, peer } = live()
    peer.send([peer.records(1, content(1, 50))])
    const first = world.receiver.pollStore()!
    peer.send([peer.records(2, content(2, 50), content(3, 50))])
    assert.isUndefined(world.receiver.pollStore())
    world.receiver.handleStored(world.now, first, world.inbox.commit(first))
    assert.strictEqual(world.receiver.pollStore()!.batch.sizes.length, 2)
  })

  it("keep the batch of a failed commit, give no credit, answer meanwhile, and try again after a second", () => {
    const { world, peer } = live()
    peer.send([peer.records(1, content(1, 50))])
    const intent = world.receiver.pollStore()!
    peer.answer()
    world.receiver.handleStoreFailed(world.now, intent)
    const { creditRecords, creditBytes } = frameOf(peer.answer(), "Stored")!
    assert.deepStrictEqual([creditRecords, creditBytes], [0, 0])
    peer.send([ping])
    assert.strictEqual(frameOf(peer.answer(), "Stored")!.creditRecords, 0)
    assert.isUndefined(world.receiver.pollStore())
    assert.strictEqual(world.receiver.deadline(), world.now + second)
    world.now += second
    world.receiver.handleTimeout(world.now)
    assert.strictEqual(world.receiver.pollStore(), intent)
    world.receiver.handleStored(world.now, intent, world.inbox.commit(intent))
    const stored = frameOf(peer.answer(), "Stored")!
    assert.strictEqual(stored.n, 1)
    assert.isAbove(stored.creditBytes, 0)
    assert.deepStrictEqual(
      world.events().map((event) => event._tag),
      ["StoreFailed", "StoreRecovered"]
    )
  })

  for (const size of [0, 50]) {
    it(`hold no credit back for a failed commit of ${size} B whose stream was dropped meanwhile`, () => {
      const { world, peer } = live()
      peer.send([peer.records(1, content(1, size))])
      const intent = world.receiver.pollStore()!
      peer.answer()
      world.receiver.removeInput("orders")
      world.receiver.addInput("orders", peer.stream.shape)
      world.receiver.handleStoreFailed(world.now, intent)
      world.now += 10_000
      peer.send([peer.stream, peer.records(1, content(1, size))])
      assert.isAbove(frameOf(peer.answer(), "Stored")!.creditBytes, 0)
      const again = world.receiver.pollStore()!
      world.receiver.handleStored(world.now, again, world.inbox.commit(again))
      assert.strictEqual(frameOf(peer.answer(), "Stored")!.n, 1)
    })
  }

  it("drop what is held on a conflict, and go on from the inbox's cursor in a fresh reply run", () => {
    const { world, peer } = live()
    peer.send([peer.records(1, content(1, 50), content(2, 50))])
    peer.send([peer.records(4, content(4, 50))])
    const { replyRun } = peer.answer()
    const intent = world.receiver.pollStore()!
    const cursor = { generation: generationA, n: 1, life: lifeA }
    world.inbox.cursorsByName.set("till>orders", cursor)
    world.receiver.handleStored(world.now, intent, { _tag: "Conflict", cursor })
    assert.deepStrictEqual(peer.answers(), [], "nothing to say until something opens")
    peer.send([peer.records(2, content(2, 50))])
    const answer = peer.answer()
    assert.notStrictEqual(answer.replyRun, replyRun)
    assert.strictEqual(answer.number, 0)
    assert.deepStrictEqual(numbersOf(answer, "Ack"), [4], "only numbers opened since")
    assert.strictEqual(frameOf(answer, "Stored")!.n, 1)
    world.store()
    assert.strictEqual(world.inbox.cursor(peer.stream)!.n, 2)
  })

  it("take the outcome of a commit whose run is gone, and go on from it with the next run", () => {
    const { world, peer } = live()
    peer.send([peer.records(1, content(1, 50))])
    const intent = world.receiver.pollStore()!
    world.receiver.revoke(peer.identity.publicKey)
    const again = new ScriptedPeer(world, { identity: peer.identity }).allowed()
    again.start()
    world.receiver.handleStored(world.now, intent, world.inbox.commit(intent))
    again.send([again.records(1, content(1, 50), content(2, 50))])
    assert.strictEqual(frameOf(again.answers().at(-1)!, "Stored")!.n, 1)
    world.store()
    assert.deepStrictEqual(storedContents(world), [content(1, 50), content(2, 50)])
  })

  it("renew the reply run when a commit lets a held record of a fork become next", () => {
    const { world, peer } = live()
    const fork = new ScriptedPeer(world, {
      lives: [
        { life: lifeA, first: 1 },
        { life: lifeB, first: 2 }
      ]
    }).allowed()
    fork.start([fork.records(3, content(3, 50))])
    fork.answers()
    const cursor = { generation: generationA, n: 2, life: lifeA }
    peer.send([peer.records(1, content(1, 50))])
    const before = peer.answers().at(-1)!
    const intent = world.receiver.pollStore()!
    world.receiver.handleStored(world.now, intent, { _tag: "Stored", cursor })
    peer.send([ping])
    assert.notStrictEqual(peer.answers().at(-1)!.replyRun, before.replyRun)
  })

  it("continue an assembly with the newer run of a restarted sender", () => {
    const { world, peer } = live()
    peer.send([peer.part(1, 0, content(1, 100).slice(0, 60), false)])
    peer.send([peer.records(2, content(2, 50))])
    peer.answer()
    const restarted = new ScriptedPeer(world, { identity: peer.identity })
    restarted.start([restarted.part(1, 60, content(1, 100).slice(60), true)])
    world.store()
    assert.deepStrictEqual(storedContents(world), [content(1, 100), content(2, 50)])
    assert.isFalse(peer.send([ping]), "the older run was replaced")
    assert.deepStrictEqual(
      world.events().flatMap((event) => (event._tag === "RunEnded" ? [event.cause] : [])),
      ["replaced"]
    )
  })

  it("store two sources into one input apart", () => {
    const world = new World()
    const tills = ["till-1", "till-2"].map((source) => new ScriptedPeer(world, { source }).allowed([source]))
    for (const till of tills) till.start([till.records(1, content(1, 20)), till.records(2, content(2, 20))])
    world.store()
    assert.strictEqual(world.inbox.records.length, 4)
    for (const till of tills) {
      till.send([ping])
      assert.strictEqual(frameOf(till.answers()[0]!, "Stored")!.n, 2)
    }
  })

  it("give 1,024 records of credit before any, then by mean size, and 65,536 for empty records", () => {
    const { world, peer } = live()
    peer.send([peer.records(1, content(1, 16_384))])
    assert.strictEqual(frameOf(peer.answer(), "Stored")!.creditRecords, 1_024)
    world.store()
    const stored = frameOf(peer.answer(), "Stored")!
    assert.strictEqual(stored.creditBytes, 16 * 1_048_576)
    assert.strictEqual(stored.creditRecords, (1_024 * 16_384) / 16_384)
    const empty = live()
    empty.peer.send([empty.peer.records(1, content(1, 0))])
    empty.world.store()
    assert.strictEqual(frameOf(empty.peer.answer(), "Stored")!.creditRecords, 65_536)
  })

  it("take what other streams hold of the total from a stream's credit", () => {
    const world = new World({ streamBytes: 10_000, totalBytes: 12_000 })
    const holder = new ScriptedPeer(world, { source: "holder" }).allowed()
    holder.start()
    holder.send([holder.part(2, 0, content(2, 8_000), true)])
    holder.answers()
    const other = new ScriptedPeer(world, { source: "other" }).allowed()
    assert.strictEqual(frameOf(other.start(), "Stored")!.creditBytes, 4_000)
  })

  it("say SEEN for what has no room, and keep it when it comes again with room", () => {
    const { world, peer } = live({ streamBytes: 1_000 })
    peer.send([peer.records(2, content(2, 900))])
    peer.send([peer.records(3, content(3, 200))])
    const answer = peer.answer()
    assert.include(numbersOf(answer, "Ack"), 2)
    assert.deepStrictEqual(numbersOf(answer, "Seen"), [3])
    peer.send([peer.records(1, content(1, 10))])
    world.store()
    peer.send([peer.records(3, content(3, 200))])
    assert.include(numbersOf(peer.answer(), "Ack"), 5)
  })

  it("ask for the name with NAME and SEEN, and keep nothing, until STREAM came", () => {
    const { world, peer } = begun()
    peer.send([peer.offer(), peer.records(1, content(1, 10))], { long: true })
    const answer = peer.answer()
    assert.isDefined(frameOf(answer, "Name"))
    assert.deepStrictEqual(numbersOf(answer, "Seen"), [0])
    assert.isUndefined(frameOf(answer, "Stored"))
    peer.send([peer.stream, ping])
    assert.isUndefined(frameOf(peer.answer(), "Name"))
    assert.isUndefined(world.receiver.pollStore())
  })

  it("treat a STREAM of another stream in the same run as a violation", () => {
    const { world, peer } = live()
    peer.send([{ ...peer.stream, source: "other" }, peer.records(1, content(1, 10))])
    world.store()
    assert.strictEqual(world.receiver.counters.violations, 1)
    assert.strictEqual(world.inbox.records[0]!.name, "till>orders")
  })

  it("split a report that does not fit over answers that each fit", () => {
    const { peer } = live()
    for (let i = 0; i < 12_000; i++) {
      const number = 2 + 2 * i + ((i * i) % 7 === 0 ? 1 : 0)
      peer.send(i % 3 === 0 ? [peer.records(70_000, content(1, 1))] : [ping], { number, long: i % 1_000 === 0 })
    }
    const answers = peer.answers()
    assert.isAbove(answers.length, 1)
    const reported = new Set(answers.flatMap((answer) => [...numbersOf(answer, "Ack"), ...numbersOf(answer, "Seen")]))
    for (const answer of answers) assert.isAtMost(answer.length, smallestDatagram)
    const { packetsOpened } = peer.world.receiver.counters
    assert.strictEqual(reported.size, packetsOpened - 2, "the first two were reported before and are out of reach")
    assert.isAbove(peer.world.receiver.counters.dropped.limit, 0, "no unreported number was pushed out")
  })
})

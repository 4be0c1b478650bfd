import { Bench, list, makeRecords, stored } from "../../packages/sender/test/scriptedPeer.ts"
import { content, elsewhere, MapMemo, ScriptedPeer } from "../../packages/receiver/test/scriptedPeer.ts"
import { assert, describe, it } from "@effect/vitest"
import { amplificationLimit, writeLongHeader, writeShortHeader, runPrefixOf } from "@pure-link/wire"
import { keyIdOf, nodeSuite } from "@pure-link/keys"
import { Chance } from "../world/chance.ts"
import { Scene } from "./capture.ts"
import { recordsOf, second, Stage } from "./stage.ts"

/**
 * Silence (spec §10.1, §15.1): what is tampered with, replayed, cut or made up changes nothing in the machines, and draws nothing but
 * a LOST that is smaller than its cause.
 */

const withByte = (packet: Uint8Array, at: number, change: number): Uint8Array => {
  const changed = packet.slice()
  changed[at]! ^= change
  return changed
}

describe("a receiver keeps silent", () => {
  it("when any byte of a valid packet of any kind is another", () => {
    const scene = new Scene()
    const before = scene.standing()
    for (const { kind, packet } of scene.fresh()) {
      for (let at = 0; at < packet.length; at++) {
        const changes = at === 0 ? [1, 2, 4, 8, 16, 32, 64, 128, 255] : [1 << (at % 8)]
        for (const change of changes) scene.endure(withByte(packet, at, change), before, `${kind}, byte ${at}`)
      }
    }
    scene.compare(before, "at the end")
  })

  it("when a valid packet of any kind is cut at any length, or goes on", () => {
    const scene = new Scene()
    const before = scene.standing()
    for (const { kind, packet } of scene.fresh()) {
      for (let length = 0; length < packet.length; length++) {
        scene.endure(packet.subarray(0, length), before, `${kind} of ${length} B`)
      }
      scene.endure(Uint8Array.from([...packet, 0]), before, `${kind}, longer`)
    }
    scene.compare(before, "at the end")
  })

  it("and the packets that were changed and cut open as they were sent", () => {
    const scene = new Scene()
    for (const { kind, packet } of scene.fresh()) {
      const bytes = packet.slice()
      assert.isTrue(scene.stage.receiver.handleDatagram(scene.stage.now, bytes, 0, bytes.length, scene.live.from), kind)
    }
  })

  it("when every packet of its runs comes again, from the same address and from another", () => {
    const scene = new Scene()
    const before = scene.standing()
    for (const from of [scene.live.from, elsewhere]) {
      for (const [i, packet] of scene.packets.entries()) scene.endure(packet, before, `packet ${i}`, from)
    }
    assert.strictEqual(scene.lostBytes, 0)
    scene.compare(before, "at the end")
  })

  it("when garbage comes with a live run's id and a made-up epoch", () => {
    const scene = new Scene()
    const before = scene.standing()
    const { identity, run } = scene.live
    const keyId = keyIdOf(nodeSuite, identity.publicKey)
    const chance = new Chance(1)
    for (let bits = 0; bits < 16; bits++) {
      for (const number of [0, 1, 7, 8, 500, 65_000, 2 ** 30, 2 ** 53 - 1]) {
        const long = new Uint8Array(200)
        chance.fill(long)
        writeLongHeader(long, 0, bits, keyId, run, number)
        scene.endure(long, before, `long, epoch bits ${bits}, number ${number}`)
        const short = new Uint8Array(200)
        chance.fill(short)
        writeShortHeader(short, 0, bits, keyId, runPrefixOf(run), number)
        scene.endure(short, before, `short, epoch bits ${bits}, number ${number}`)
      }
    }
    assert.strictEqual(scene.lostBytes, 0)
    scene.compare(before, "at the end")
  })

  it("when bytes are random, with and without the key id of a peer", () => {
    const scene = new Scene()
    const before = scene.standing()
    const chance = new Chance(2)
    for (let turn = 0; turn < 1_000; turn++) {
      const datagram = new Uint8Array(chance.between(0, 200))
      chance.fill(datagram)
      if (turn % 2 === 0 && datagram.length > 5) datagram.set(scene.packets[0]!.subarray(1, 5), 1)
      scene.endure(datagram, before, `datagram ${turn}`)
    }
    scene.compare(before, "at the end")
  })
})

describe("these checks notice", () => {
  it("a number that a forged packet uses up", () => {
    const scene = new Scene({ markBeforeVerify: true })
    const before = scene.standing()
    scene.endure(withByte(scene.fresh()[0]!.packet, 30, 1), before, "forged")
    assert.throws(() => scene.compare(before, "forged"), /something changed/)
  })

  it("a LOST for garbage of a run that is known", () => {
    const scene = new Scene({ lostForKnownRun: true })
    const garbage = new Uint8Array(100).fill(7)
    writeLongHeader(garbage, 0, 9, keyIdOf(nodeSuite, scene.live.identity.publicKey), scene.live.run, 50)
    scene.endure(garbage, scene.standing(), "garbage")
    assert.isAbove(scene.lostBytes, 0)
  })
})

/** Everything that an honest sender sent in one life of it, and what it left in the inbox. */
const oldRun = (stage: Stage): ReadonlyArray<Uint8Array> => {
  const packets: Array<Uint8Array> = []
  const output = stage.join("honest", recordsOf(30, 2_000))
  const { carry } = stage
  stage.carry = (bytes, from) => {
    packets.push(bytes.slice())
    carry.call(stage, bytes, from)
  }
  assert.isTrue(stage.advanceUntil(() => output.isDone, 20 * second))
  stage.advance(second)
  stage.carry = carry
  output.end()
  assert.isAbove(packets.length, 30)
  return packets
}

const replayWhole = (
  stage: Stage,
  packets: ReadonlyArray<Uint8Array>
): { readonly received: number; readonly sent: number } => {
  let received = 0
  stage.strayBytes = 0
  for (let turn = 0; turn < 3; turn++) {
    for (const packet of packets) {
      received += packet.length
      stage.hit([packet], elsewhere)
      assert.isAtMost(stage.strayBytes, amplificationLimit * received)
    }
  }
  return { received, sent: stage.strayBytes }
}

describe("a whole old run", () => {
  it("moves nothing while its successor is live", () => {
    const stage = new Stage()
    const packets = oldRun(stage)
    const successor = new ScriptedPeer(stage, { source: "other" }).allowed()
    successor.start([successor.records(1, content(1, 100))])
    stage.store()
    const { n } = stage.inbox.cursor({ source: "honest", input: "orders" })!
    const runsLive = stage.receiver.counters.runsLive
    replayWhole(stage, packets)
    assert.strictEqual(stage.inbox.cursor({ source: "honest", input: "orders" })!.n, n)
    assert.strictEqual(stage.receiver.counters.runsLive, runsLive)
    assert.isTrue(successor.send([successor.records(2, content(2, 50))]))
    assert.deepStrictEqual(successor.answer().to, successor.from)
  })

  for (const memory of ["without a memo", "with a memo of other runs"]) {
    it(`moves nothing at a receiver that has forgotten it, ${memory}`, () => {
      const stage = new Stage()
      const packets = oldRun(stage)
      const { cursorsByName } = stage.inbox
      const before = JSON.stringify([...cursorsByName].map(([name, { n }]) => [name, n]))
      stage.restart(memory === "without a memo" ? {} : { memo: new MapMemo() })
      for (const publicKey of stage.allowedKeys) stage.receiver.allow({ publicKey, sources: "any" })
      const { sent, received } = replayWhole(stage, packets)
      assert.isAbove(sent, 0)
      assert.isAtMost(sent, amplificationLimit * received)
      assert.strictEqual(JSON.stringify([...cursorsByName].map(([name, { n }]) => [name, n])), before)
      const { runsLive, recordsStored, pathsValidated } = stage.receiver.counters
      assert.deepStrictEqual([runsLive, recordsStored, pathsValidated], [0, 0, 0])
    })
  }
})

/** How a sender stands, as far as one can see. */
const standingOfSender = ({ link, now }: Bench): string => {
  const {
    replayed: _,
    unopened: __,
    limited: ___,
    lostIgnored: ____,
    ...counters
  } = link.counters as unknown as Record<string, number>
  return JSON.stringify({
    ...link.status,
    stored: link.stored,
    state: link.state,
    deadline: link.deadline(),
    run: String(link.run),
    now,
    counters,
    recovery: link.recoveryCounters
  })
}

const talking = () => {
  const bench = new Bench({ records: makeRecords(Array.from({ length: 60 }, () => 900)) })
  const answers: Array<Uint8Array> = []
  const say = (...frames: Parameters<Bench["peer"]["answer"]>[0]) => {
    const answer = bench.peer.answer(frames)
    answers.push(answer.slice())
    return answer
  }
  for (let turn = 0; turn < 3; turn++) {
    const packets = bench.transmit()
    bench.now += 20_000
    bench.hear(say(list("Ack", ...packets.map(({ number }) => number)), stored(turn)))
  }
  bench.transmit()
  return { bench, answers, say }
}

describe("a sender keeps silent", () => {
  it("when any byte of a valid answer is another, or it is cut at any length", () => {
    const { bench, say } = talking()
    const twin = talking()
    const answer = say(list("Ack", 0, 1, 2), stored(4), { _tag: "Challenge", ipChanged: false, token: 5n })
    const before = standingOfSender(bench)
    for (let at = 0; at < answer.length; at++) {
      assert.isFalse(bench.hear(withByte(answer, at, 1 << (at % 8))), `byte ${at}`)
      assert.isFalse(bench.hear(answer.slice(0, at)), `${at} B`)
    }
    assert.strictEqual(standingOfSender(bench), before)
    // Whatever was heard in between, what follows is what a sender says that heard nothing.
    const same = twin.say(list("Ack", 0, 1, 2), stored(4), { _tag: "Challenge", ipChanged: false, token: 5n })
    assert.isTrue(bench.hear(answer) && twin.bench.hear(same))
    assert.deepStrictEqual(bench.send(), twin.bench.send())
    assert.deepStrictEqual(bench.runUntil(bench.now + second), twin.bench.runUntil(twin.bench.now + second))
  })

  it("when all that was answered comes again, and when bytes are random", () => {
    const { bench, answers } = talking()
    const before = standingOfSender(bench)
    const chance = new Chance(3)
    for (const answer of answers) assert.isFalse(bench.hear(answer.slice()))
    for (let turn = 0; turn < 500; turn++) {
      const datagram = new Uint8Array(chance.between(0, 120))
      chance.fill(datagram)
      if (turn % 2 === 0 && datagram.length > 30) datagram.set(answers[0]!.subarray(0, 17))
      assert.isFalse(bench.hear(datagram))
    }
    assert.strictEqual(standingOfSender(bench), before)
  })
})

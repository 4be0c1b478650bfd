import { assert, describe, it } from "@effect/vitest"
import { keyPair, nodeSuite } from "@pure-link/keys"
import type { Life } from "@pure-link/wire"
import {
  type Answer,
  content,
  frameOf,
  generationA,
  generationB,
  lifeA,
  lifeB,
  numbersOf,
  type PeerOptions,
  ping,
  ScriptedPeer,
  shapeOfTest,
  World
} from "../test/scriptedPeer.ts"

const refusalOf = (answer: Answer): number | undefined => frameOf(answer, "Refused")?.reason

/** The inbox holds `n` records of life A in generation A. */
const worldAt = (n: number, life = lifeA): World => {
  const world = new World()
  world.inbox.cursorsByName.set("till>orders", { generation: generationA, n, life })
  return world
}

const startedAt = (world: World, options: PeerOptions = {}): ScriptedPeer => {
  const peer = new ScriptedPeer(world, options).allowed()
  peer.start()
  return peer
}

const eventsOf = (world: World): ReadonlyArray<string> =>
  world.events().flatMap((event) => {
    if (event._tag === "RefusalBegan") return [`began ${event.reason}`]
    return event._tag === "RefusalEnded" ? [`ended ${event.reason}`] : []
  })

describe("refusals", () => {
  it("1: no such input, in every answer, its packets SEEN, one event; ends when the input appears", () => {
    const world = new World()
    const peer = startedAt(world, { input: "unknown" })
    for (let i = 0; i < 3; i++) {
      peer.send([peer.stream, peer.records(1, content(1, 10))])
      const answer = peer.answer()
      assert.strictEqual(refusalOf(answer), 1)
      assert.include(numbersOf(answer, "Seen"), peer.number - 1)
      assert.isUndefined(frameOf(answer, "Stored"))
    }
    assert.deepStrictEqual(eventsOf(world), ["began 1"])
    world.receiver.addInput("unknown", shapeOfTest)
    peer.answers()
    peer.send([peer.records(1, content(1, 10))])
    const answer = peer.answer()
    assert.isUndefined(refusalOf(answer))
    assert.include(numbersOf(answer, "Ack"), peer.number - 1)
    assert.deepStrictEqual(eventsOf(world), ["ended 1"])
  })

  it("1: begins when the input disappears, and what was held goes with it", () => {
    const world = new World()
    const peer = startedAt(world)
    peer.send([peer.records(2, content(2, 10))])
    const { replyRun } = peer.answer()
    world.receiver.removeInput("orders")
    peer.send([ping])
    const answer = peer.answer()
    assert.strictEqual(refusalOf(answer), 1)
    assert.notStrictEqual(answer.replyRun, replyRun)
    world.receiver.addInput("orders", shapeOfTest)
    peer.send([peer.records(1, content(1, 10))])
    world.store()
    assert.strictEqual(world.inbox.records.length, 1)
  })

  it("2: another shape", () => {
    const peer = startedAt(new World(), { shape: 99n })
    peer.send([peer.stream])
    assert.strictEqual(refusalOf(peer.answer()), 2)
  })

  it("3: a source that the key may not send as; ends when the operator allows it", () => {
    const world = new World()
    const peer = new ScriptedPeer(world).allowed(["another"])
    peer.start()
    peer.send([ping])
    assert.strictEqual(refusalOf(peer.answer()), 3)
    peer.allowed(["till"])
    assert.isUndefined(refusalOf(peer.answer()))
  })

  it("4: a record past n whose life began at or below n and is not that of n", () => {
    const world = worldAt(50)
    const lives: ReadonlyArray<Life> = [
      { life: lifeA, first: 1 },
      { life: lifeB, first: 41 }
    ]
    const clone = startedAt(world, { base: 41, lives })
    clone.send([clone.records(51, content(51, 10))])
    const answer = clone.answer()
    assert.strictEqual(refusalOf(answer), 4)
    assert.include(numbersOf(answer, "Seen"), clone.number - 1)
    assert.strictEqual(frameOf(answer, "Stored")!.n, 50, "the sender checks n and its life itself")
    clone.send([clone.records(52, content(52, 10))])
    clone.answer()
    assert.deepStrictEqual(eventsOf(world), ["began 4"])
    world.store()
    assert.isEmpty(world.inbox.records)
  })

  it("4: a list that names another life for record n, even if a third one begins right after it", () => {
    const world = worldAt(50)
    const restored = startedAt(world, {
      base: 50,
      lives: [
        { life: lifeB, first: 50 },
        { life: 0xccccn, first: 51 }
      ]
    })
    restored.send([restored.records(51, content(51, 10))])
    assert.strictEqual(refusalOf(restored.answer()), 4)
    world.store()
    assert.isEmpty(world.inbox.records)
  })

  it("records of two clones are never mixed, also when a life of one begins right after the other's last", () => {
    const world = new World()
    const original = startedAt(world, { lives: [{ life: lifeA, first: 1 }] })
    original.send([original.records(1, content(1, 10), content(2, 10))])
    original.answer()
    const clone = new ScriptedPeer(world, {
      identity: original.identity,
      lives: [
        { life: lifeB, first: 1 },
        { life: 0xccccn, first: 3 }
      ]
    }).allowed()
    clone.send([clone.stream, clone.offer(), clone.records(3, content(3, 10))], { long: true })
    world.store()
    clone.send([clone.stream, clone.records(3, content(3, 10))], { long: true })
    world.store()
    assert.deepStrictEqual(
      world.inbox.records.map(({ bytes }) => bytes),
      [content(1, 10), content(2, 10)]
    )
    assert.strictEqual(refusalOf(clone.answer()), 4)
  })

  it("4: lists that contradict one another, whatever the run lists later", () => {
    const world = new World()
    const peer = startedAt(world, {
      lives: [
        { life: lifeA, first: 1 },
        { life: lifeB, first: 5 }
      ]
    })
    peer.send([{ ...peer.stream, lives: [{ life: lifeB, first: 6 }] }, peer.records(1, content(1, 10))])
    assert.strictEqual(refusalOf(peer.answer()), 4)
    peer.send([peer.stream, peer.records(1, content(1, 10))])
    assert.strictEqual(refusalOf(peer.answer()), 4)
  })

  it("4: the life of n with another first number than the one that n was stored under", () => {
    const world = worldAt(50)
    const peer = startedAt(world, { base: 51, lives: [{ life: lifeA, first: 51 }] })
    peer.send([peer.records(51, content(51, 10))])
    assert.strictEqual(refusalOf(peer.answer()), 4)
  })

  it("4: two clones that race for the same numbers are never mixed", () => {
    const world = worldAt(30)
    const original = startedAt(world, { base: 31, lives: [{ life: lifeA, first: 1 }] })
    const clone = startedAt(world, {
      base: 31,
      lives: [
        { life: lifeA, first: 1 },
        { life: lifeB, first: 31 }
      ]
    })
    clone.send([clone.records(32, content(132, 10))])
    original.send([original.records(32, content(32, 10))])
    const before = original.answers().at(-1)!
    assert.include(numbersOf(before, "Seen"), original.number - 1, "32 is held under the clone's life")
    original.send([original.records(31, content(31, 10))])
    const after = original.answers().at(-1)!
    assert.notStrictEqual(after.replyRun, before.replyRun, "the clone's 32 cannot follow and is gone")
    world.store()
    assert.strictEqual(world.inbox.cursor(original.stream)!.n, 31)
    original.send([original.records(32, content(32, 10))])
    clone.send([clone.records(32, content(132, 10))])
    world.store()
    assert.deepStrictEqual(
      world.inbox.records.map((record) => record.bytes),
      [content(31, 10), content(32, 10)]
    )
    assert.strictEqual(refusalOf(clone.answers().at(-1)!), 4)
  })

  it("5: the lowest number held is beyond n + 1, and ends when the inbox has moved", () => {
    const world = worldAt(10)
    const peer = startedAt(world, { base: 21 })
    peer.send([peer.records(21, content(21, 10))])
    const answer = peer.answer()
    assert.strictEqual(refusalOf(answer), 5)
    assert.strictEqual(frameOf(answer, "Stored")!.n, 10)
    world.inbox.cursorsByName.set("till>orders", { generation: generationA, n: 20, life: lifeA })
    world.receiver.revise(world.now)
    peer.answers()
    peer.send([peer.records(21, content(21, 10))])
    world.store()
    assert.strictEqual(world.inbox.cursor(peer.stream)!.n, 21)
    assert.deepStrictEqual(eventsOf(world), ["began 5", "ended 5"])
  })

  it("6: a retired generation, for ever", () => {
    const world = worldAt(3)
    world.inbox.retire("till>orders", generationB)
    const peer = startedAt(world, { generation: generationB })
    peer.send([peer.records(1, content(1, 10))])
    const answer = peer.answer()
    assert.strictEqual(refusalOf(answer), 6)
    assert.isUndefined(frameOf(answer, "Stored"))
  })

  it("6: a new generation when 64 are retired, until the operator forgets some", () => {
    const world = worldAt(3)
    for (let i = 0; i < 64; i++) world.inbox.retire("till>orders", BigInt(1_000 + i))
    const peer = startedAt(world, { generation: generationB })
    peer.send([peer.records(1, content(1, 10))])
    assert.strictEqual(refusalOf(peer.answer()), 6)
    world.inbox.retired.clear()
    world.receiver.revise(world.now)
    peer.send([peer.records(1, content(1, 10))])
    world.store()
    assert.strictEqual(world.inbox.cursor(peer.stream)!.generation, generationB)
  })

  it("end with an event when their run is gone", () => {
    const world = new World()
    const peer = startedAt(world, { input: "unknown" })
    world.receiver.revoke(peer.identity.publicKey)
    assert.deepStrictEqual(eventsOf(world), ["began 1", "ended 1"])
  })
})

describe("generations", () => {
  it("are replaced by records under epoch ≥ 1 only: a replayed start in epoch 0 changes nothing", () => {
    const world = worldAt(3)
    const peer = new ScriptedPeer(world, { generation: generationB }).allowed()
    peer.send([peer.stream, peer.offer(), peer.records(1, content(1, 10))], { long: true })
    const answer = peer.answer()
    assert.deepStrictEqual(numbersOf(answer, "Seen"), [0])
    assert.strictEqual(frameOf(answer, "Stored")!.n, 0)
    assert.isUndefined(refusalOf(answer))
    assert.isUndefined(world.receiver.pollStore())
    const accept = frameOf(answer, "Accept")!
    peer.epochs.handleAccept(world.now, accept.epoch, accept.echo, accept.publicKey)
    peer.send([ping])
    world.store()
    assert.strictEqual(world.inbox.cursor(peer.stream)!.generation, generationA, "a PING carries no records")
    peer.send([peer.records(1, content(1, 10))])
    world.store()
    assert.deepStrictEqual(world.inbox.cursor(peer.stream), { generation: generationB, n: 1, life: lifeA })
  })

  it("that are replaced are refused at once, lose what was held, and are named in an event", () => {
    const world = worldAt(3)
    const former = startedAt(world, { base: 4 })
    former.send([former.records(5, content(5, 10))])
    const { replyRun } = former.answer()
    const next = startedAt(world, { generation: generationB })
    next.send([next.records(1, content(1, 10))])
    former.send([former.records(4, content(4, 10))])
    const answer = former.answers().at(-1)!
    assert.strictEqual(refusalOf(answer), 6)
    assert.notStrictEqual(answer.replyRun, replyRun)
    const replaced = world.events().filter((event) => event._tag === "GenerationReplaced")
    assert.deepStrictEqual(
      replaced.map((event) => [event.former, event.generation]),
      [[generationA, generationB]]
    )
    world.store()
    assert.strictEqual(world.inbox.records.length, 1)
  })

  it("that are still in epoch 0 wait out late packets of an abandoned outbox, for 10 s", () => {
    for (const [age, isReplaced] of [
      [9_999_999, false],
      [10_000_000, true]
    ] as const) {
      const world = new World()
      const abandoned = startedAt(world)
      const successor = new ScriptedPeer(world, { generation: generationB }).allowed()
      successor.send([successor.stream, successor.records(2, content(2, 10))], { long: true })
      assert.deepStrictEqual(numbersOf(successor.answer(), "Ack"), [0], "nothing was stored or held before")
      world.now += age
      abandoned.send([abandoned.records(1, content(101, 10))])
      assert.include(numbersOf(abandoned.answer(), isReplaced ? "Ack" : "Seen"), abandoned.number - 1)
      assert.deepStrictEqual(eventsOf(world), isReplaced ? ["began 6"] : [], `after ${age} µs`)
    }
  })

  it("that nothing was stored or held of give way under any epoch", () => {
    const world = new World()
    const first = new ScriptedPeer(world).allowed()
    first.send([first.stream, ping], { long: true })
    const second = new ScriptedPeer(world, { generation: generationB }).allowed()
    second.send([second.stream, second.records(1, content(1, 10))], { long: true })
    world.store()
    assert.strictEqual(world.inbox.cursor(second.stream)!.generation, generationB)
  })

  it("keep a commit under way apart from the generation that replaced its own", () => {
    const world = new World()
    const former = startedAt(world)
    former.send([former.records(1, content(1, 10))])
    const intent = world.receiver.pollStore()!
    const next = startedAt(world, { generation: generationB })
    next.send([next.records(1, content(101, 10))])
    assert.isUndefined(world.receiver.pollStore(), "one commit of a stream at a time")
    world.receiver.handleStored(world.now, intent, world.inbox.commit(intent))
    world.store()
    assert.deepStrictEqual(world.inbox.cursor(next.stream), { generation: generationB, n: 1, life: lifeA })
    next.send([ping])
    assert.strictEqual(frameOf(next.answers().at(-1)!, "Stored")!.n, 1)
  })

  it("refuse one whose first records are gone, without giving up the known one", () => {
    const world = worldAt(3)
    const peer = startedAt(world, { generation: generationB, base: 7 })
    peer.send([peer.records(7, content(7, 10))])
    assert.strictEqual(refusalOf(peer.answer()), 5)
    const known = startedAt(world, { base: 4 })
    known.send([known.records(4, content(4, 10))])
    world.store()
    assert.strictEqual(world.inbox.cursor(known.stream)!.n, 4)
  })
})

describe("lives", () => {
  it("are merged over lists, so that a life that began later extends a known run", () => {
    const world = new World()
    const peer = startedAt(world)
    const stream = {
      ...peer.stream,
      lives: [
        { life: lifeA, first: 1 },
        { life: lifeB, first: 2 }
      ]
    }
    peer.send([stream, peer.records(1, content(1, 5), content(2, 5))])
    world.store()
    assert.strictEqual(world.inbox.cursor(peer.stream)!.life, lifeB)
  })

  it("that are not listed let a record be SEEN", () => {
    const world = new World()
    const peer = startedAt(world, { lives: [{ life: lifeA, first: 5 }] })
    peer.send([peer.records(4, content(4, 5))])
    assert.deepStrictEqual(numbersOf(peer.answer(), "Seen"), [2])
  })

  it("keep a restarted sender's parts apart from those of a life that it does not have", () => {
    const world = new World()
    const identity = keyPair(nodeSuite, world.entropy)
    const first = startedAt(world, {
      identity,
      lives: [
        { life: lifeA, first: 1 },
        { life: lifeB, first: 2 }
      ]
    })
    first.send([first.part(2, 0, new Uint8Array(5).fill(0xff), false)])
    first.answers()
    const lifeC = 0xccccn
    const restored = startedAt(world, {
      identity,
      lives: [
        { life: lifeA, first: 1 },
        { life: lifeC, first: 2 }
      ]
    })
    restored.send([restored.part(2, 5, content(2, 10).slice(5), true)])
    restored.answer()
    restored.send([restored.records(1, content(1, 5)), restored.part(2, 0, content(2, 10).slice(0, 5), false)])
    world.store()
    assert.deepStrictEqual(
      world.inbox.records.map(({ bytes }) => bytes),
      [content(1, 5), content(2, 10)]
    )
  })
})

import { assert, describe, it } from "@effect/vitest"
import { type Id64, longestRecord } from "@pure-link/wire"
import {
  type Answer,
  content,
  frameOf,
  live,
  numbersOf,
  ping,
  ScriptedPeer,
  second,
  storedContents,
  World
} from "../test/scriptedPeer.ts"
import { reserveBytes } from "./memory.ts"

const mebibyte = 1_048_576
const part = 60_000

const creditOf = (answer: Answer): number => frameOf(answer, "Stored")!.creditRecords

const startedIn = (world: World, source: string): ScriptedPeer => {
  const peer = new ScriptedPeer(world, { source }).allowed()
  peer.start()
  return peer
}

/** Sends whole empty records far ahead of what is there, until one is not kept; says how many were. */
const fillAhead = (peer: ScriptedPeer, most: number): number => {
  const parts = Array.from({ length: 32 }, () => new Uint8Array(0))
  for (let first = 2; first + 32 <= most; first += 32) {
    peer.send([peer.records(first, ...parts)])
    const answer = peer.answers().at(-1)!
    if (!numbersOf(answer, "Ack").includes(peer.number - 1)) return first - 2
  }
  return most
}

/** Sends one part alone; whether it was acknowledged, and the record credit of the answer. */
const tellsOf = (peer: ScriptedPeer, offset: number, bytes: Uint8Array, ends = false, number = 1) => {
  peer.send([peer.part(number, offset, bytes, ends)])
  const answer = peer.answers().at(-1)!
  return { kept: numbersOf(answer, "Ack").includes(peer.number - 1), credit: creditOf(answer) }
}

/** A receiver of 1 MiB, one stream that nearly fills it, and one that holds the reserve. */
const held = () => {
  const world = new World({ totalBytes: mebibyte })
  const full = startedIn(world, "full")
  assert.isTrue(tellsOf(full, 1_000_000, content(1, 1_000)).kept)
  const holder = startedIn(world, "holder")
  assert.isTrue(tellsOf(holder, part, content(1, part)).kept)
  return { world, holder }
}

/** And one that is starved. */
const contended = () => {
  const both = held()
  return { ...both, starved: startedIn(both.world, "starved") }
}

/** A sender of some large records of its own, which keeps the rules of credit, reply runs and questions (spec §9). */
class LargeSender {
  readonly peer: ScriptedPeer
  readonly records: ReadonlyArray<Uint8Array>
  private n = 0
  private credit = 1
  private askAt = 0
  private replyRun: Id64 = 0n
  private readonly acked = new Set<number>()
  private readonly flights = new Map<number, number>()

  constructor(peer: ScriptedPeer, records: ReadonlyArray<Uint8Array>) {
    this.peer = peer
    this.records = records
  }

  get isDone(): boolean {
    return this.n === this.records.length
  }

  handle(answer: Answer): void {
    if (answer.replyRun !== this.replyRun) this.acked.clear()
    this.replyRun = answer.replyRun
    for (const number of numbersOf(answer, "Ack")) {
      if (this.flights.has(number)) this.acked.add(this.flights.get(number)!)
    }
    const { n, creditRecords } = frameOf(answer, "Stored")!
    this.credit = creditRecords
    if (n === this.n) return
    this.n = n
    this.acked.clear()
    this.flights.clear()
  }

  /** Sends up to four parts of record n+1, of which some are lost, or asks. */
  turn(isLost: () => boolean): void {
    const { peer } = this
    if (this.isDone) return
    if (this.credit === 0) {
      if (peer.world.now < this.askAt) return
      this.askAt = peer.world.now + second
      peer.send([ping])
      return
    }
    const record = this.records[this.n]!
    let sent = 0
    for (let offset = 0; offset < record.length && sent < 4; offset += part) {
      if (this.acked.has(offset)) continue
      const bytes = record.subarray(offset, offset + part)
      this.flights.set(peer.number, offset)
      const packet = peer.seal([peer.part(this.n + 1, offset, bytes, offset + bytes.length === record.length)])
      if (!isLost()) peer.deliver(packet)
      sent += 1
    }
  }
}

describe("the memory of a receiver", () => {
  it("stays within a stream's limit under hostile authenticated packets, and counts down to nothing", () => {
    const { world, peer } = live({ streamBytes: 1_048_576 })
    for (let number = 400; number >= 2; number--) {
      peer.send([peer.part(number, 2 ** 24 - 2_000, content(number, 1_000), false)])
      peer.send([peer.part(number, 1_000 * (number % 60), content(number, 1_000), false)])
    }
    peer.answers()
    const other = new ScriptedPeer(world, { source: "other" }).allowed()
    const credit = frameOf(other.start(), "Stored")!.creditBytes
    assert.strictEqual(credit, 1_048_576)
    world.receiver.revoke(peer.identity.publicKey)
    world.receiver.revoke(other.identity.publicKey)
    const third = new ScriptedPeer(world, { source: "third" }).allowed()
    assert.strictEqual(frameOf(third.start(), "Stored")!.creditBytes, 1_048_576)
  })

  it("never exceeds the total and one reserve under parts at the far end of record n+1 of 40 streams", () => {
    const totalBytes = 20 * mebibyte
    const world = new World({ totalBytes })
    const acknowledged = Array.from({ length: 40 }, (_, i) => {
      const peer = startedIn(world, `source-${i}`)
      const { kept } = tellsOf(peer, longestRecord - 2_000, content(1, 1_000))
      assert.isAtMost(world.receiver.heldBytes, totalBytes + reserveBytes)
      return kept
    })
    assert.strictEqual(acknowledged.filter((kept) => kept).length, 2, "one within the total, one by the reserve")
    assert.isAtMost(world.receiver.bufferBytes, totalBytes + reserveBytes)
  })

  it("never exceeds them either when each stream holds a little of everything", () => {
    const totalBytes = 2 * mebibyte
    const world = new World({ totalBytes })
    for (let i = 0; i < 20; i++) {
      const peer = startedIn(world, `source-${i}`)
      for (let number = 1; number < 12; number++) {
        peer.send([peer.part(number, 0, content(number, 5_000), number % 3 === 1)])
        peer.send([peer.part(number, 40_000 * number, content(number, 5_000), false)])
        world.store()
        assert.isAtMost(world.receiver.heldBytes, totalBytes + reserveBytes)
        assert.isAtMost(world.receiver.bufferBytes, 1.25 * world.receiver.heldBytes + totalBytes / 4)
      }
      peer.answers()
    }
  })

  it("counts the batch of a stream that is gone until its commit is done", () => {
    const world = new World()
    const peer = startedIn(world, "gone")
    peer.send([peer.records(1, content(1, 5_000))])
    const intent = world.receiver.pollStore()!
    world.receiver.revoke(peer.identity.publicKey)
    assert.isAtLeast(world.receiver.heldBytes, 5_000)
    world.receiver.handleStored(world.now, intent, world.inbox.commit(intent))
    assert.deepStrictEqual([world.receiver.heldBytes, world.receiver.bufferBytes], [0, 0])
  })
})

describe("the reserve", () => {
  it("is told as record credit 0 to a starved stream, and above 0 at once when it is its turn", () => {
    const { world, holder, starved } = contended()
    assert.deepStrictEqual(tellsOf(starved, part, content(1, part)), { kept: false, credit: 0 })
    starved.send([ping])
    assert.strictEqual(creditOf(starved.answer()), 0)
    assert.isTrue(tellsOf(holder, 0, content(1, part)).kept)
    assert.isTrue(tellsOf(holder, 2 * part, content(1, 9), true).kept)
    world.store()
    assert.isAbove(creditOf(starved.answers().at(-1)!), 0)
    assert.isTrue(tellsOf(starved, part, content(1, part)).kept)
  })

  it("lets two starved streams both finish", () => {
    const { world, holder, starved } = contended()
    assert.isFalse(tellsOf(starved, part, content(1, part)).kept)
    for (const peer of [holder, starved]) {
      assert.isTrue(tellsOf(peer, 0, content(1, part)).kept)
      assert.isTrue(tellsOf(peer, part, content(1, part)).kept)
      assert.isTrue(tellsOf(peer, 2 * part, content(1, 9), true).kept)
      world.store()
    }
    assert.deepStrictEqual(
      world.inbox.records.map(({ name }) => name),
      ["holder>orders", "starved>orders"]
    )
  })

  it("serves no other while its record waits for the store", () => {
    const { world, holder, starved } = contended()
    assert.isTrue(tellsOf(holder, 0, content(1, part)).kept)
    assert.isTrue(tellsOf(holder, 2 * part, content(1, 9), true).kept)
    assert.isFalse(tellsOf(starved, part, content(1, part)).kept)
    assert.isFalse(tellsOf(holder, part, content(2, part), false, 2).kept)
    world.now += 11 * second
    world.receiver.handleTimeout(world.now)
    assert.strictEqual(world.receiver.counters.halfRecordsDropped, 0)
    world.store()
    assert.isTrue(tellsOf(starved, part, content(1, part)).kept)
  })

  it("is lost after 10 s without progress to one that waits, and the half record through a fresh reply run", () => {
    const { world, holder, starved } = contended()
    holder.send([ping])
    const before = holder.answer()
    world.now += 4 * second
    assert.isFalse(tellsOf(starved, part, content(1, part)).kept)
    assert.isTrue(tellsOf(holder, part, content(1, part)).kept, "what is held already is no progress")
    const left = world.receiver.deadline() - world.now
    assert.closeTo(left, 6 * second, 20_000, "less the time that the other stream took to start")
    world.now += left - 1
    world.receiver.handleTimeout(world.now)
    assert.strictEqual(world.receiver.counters.halfRecordsDropped, 0)
    world.now += 1
    world.receiver.handleTimeout(world.now)
    assert.strictEqual(world.receiver.counters.halfRecordsDropped, 1)
    assert.isAbove(creditOf(starved.answer()), 0)
    assert.isTrue(tellsOf(starved, part, content(1, part)).kept)
    holder.send([ping])
    const after = holder.answer()
    assert.notStrictEqual(after.replyRun, before.replyRun)
    assert.deepStrictEqual(numbersOf(after, "Ack"), [holder.number - 1])
  })

  it("stays while nobody else needs it, and passes over those whose senders are silent", () => {
    const { world, holder } = held()
    world.now += 60 * second
    world.receiver.handleTimeout(world.now)
    assert.strictEqual(world.receiver.deadline(), Number.POSITIVE_INFINITY)
    const starved = startedIn(world, "starved")
    assert.isTrue(tellsOf(holder, 0, content(1, part)).kept)
    assert.isFalse(tellsOf(starved, part, content(1, part)).kept)
    world.now += 11 * second
    world.receiver.handleTimeout(world.now)
    assert.strictEqual(world.receiver.counters.halfRecordsDropped, 1)
    assert.isTrue(tellsOf(startedIn(world, "late"), part, content(1, part)).kept)
  })

  it("goes in turn to a stream that was told 0 before it sent anything, once it asks", () => {
    const world = new World({ totalBytes: mebibyte })
    const full = startedIn(world, "full")
    assert.isTrue(tellsOf(full, mebibyte - 1_000, content(1, 1_000)).kept)
    const holder = startedIn(world, "holder")
    assert.isTrue(tellsOf(holder, part, content(1, 9), true).kept)
    const asking = new ScriptedPeer(world, { source: "asking" }).allowed()
    assert.strictEqual(creditOf(asking.start()), 0)
    assert.isTrue(tellsOf(holder, 0, content(1, part)).kept)
    world.store()
    assert.isAbove(creditOf(asking.answers().at(-1)!), 0)
    assert.isFalse(tellsOf(holder, 0, content(2, part), false, 2).kept, "the reserve waits for who asked before")
    assert.isTrue(tellsOf(asking, 0, content(1, part)).kept)
  })

  it("is not given twice while a batch that was in it is still being stored for a stream that is gone", () => {
    const { world, holder, starved } = contended()
    assert.isTrue(tellsOf(holder, 0, content(1, part)).kept)
    assert.isTrue(tellsOf(holder, 2 * part, content(1, 9), true).kept)
    const intent = world.receiver.pollStore()!
    world.receiver.revoke(holder.identity.publicKey)
    assert.isFalse(tellsOf(starved, part, content(1, part)).kept)
    world.receiver.handleStored(world.now, intent, world.inbox.commit(intent))
    world.receiver.endBatch(world.now)
    assert.isTrue(tellsOf(starved, part, content(1, part)).kept)
  })

  it("and the total together let 40 senders of large records finish, over a lossy path", () => {
    const totalBytes = mebibyte
    const world = new World({ totalBytes, streamBytes: 500_000 })
    const senders = Array.from({ length: 40 }, (_, i) => {
      const records = [content(2 * i, 600_000), content(2 * i + 1, 350_000 + 10_000 * i)]
      return new LargeSender(startedIn(world, `source-${i}`), records)
    })
    let packets = 0
    const began = world.now
    for (let tick = 0; !senders.every((sender) => sender.isDone); tick++) {
      assert.isBelow(world.now - began, 300 * second, "a sender waits for ever")
      for (const sender of senders) sender.turn(() => ++packets % 7 === 0)
      if (tick % 2 === 1) world.store()
      for (const { bytes, to } of world.transmit()) {
        for (const sender of senders) {
          const answer = sender.peer.open(bytes.slice(), to)
          if (answer !== undefined) sender.handle(answer)
        }
      }
      assert.isAtMost(world.receiver.heldBytes, totalBytes + reserveBytes)
      world.now += second / 20
      if (world.now >= world.receiver.deadline()) world.receiver.handleTimeout(world.now)
    }
    const sent = senders.flatMap(({ peer, records }) =>
      records.map((record) => `${peer.stream.source} ${record.length}`)
    )
    const stored = world.inbox.records.map(({ name, bytes }) => `${name.split(">")[0]} ${bytes.length}`)
    assert.deepStrictEqual(stored.sort(), sent.sort())
    for (const bytes of storedContents(world)) assert.strictEqual(bytes.length % 10_000, 0)
    assert.deepStrictEqual([world.receiver.heldBytes, world.receiver.bufferBytes], [0, 0])
  })
})

describe("what keeping records costs", () => {
  it("is bounded for all streams together, of any size, and record n+1 is kept all the same", () => {
    const world = new World({ totalBytes: mebibyte })
    const peers = Array.from({ length: 4 }, (_, i) => startedIn(world, `source ${i}`))
    const kept = peers.map((peer) => fillAhead(peer, 65_500))
    // 64 MiB at 1 KiB each, whatever the number of streams.
    assert.closeTo(
      kept.reduce((sum, count) => sum + count, 0),
      65_536,
      128
    )
    for (const peer of peers) {
      const { credit, kept } = tellsOf(peer, 0, content(1, 10), true)
      assert.isTrue(kept)
      assert.isAtLeast(credit, 1)
    }
    world.store()
    assert.isAtLeast(world.inbox.records.length, 65_000)
  })

  it("is given back when records are stored or dropped", () => {
    const world = new World({ totalBytes: mebibyte })
    const first = startedIn(world, "first")
    const second = startedIn(world, "second")
    fillAhead(first, 65_500)
    assert.isBelow(fillAhead(second, 65_500), 200)
    tellsOf(first, 0, content(1, 10), true)
    world.store()
    assert.strictEqual(fillAhead(second, 65_500), 65_500)
  })
})

/**
 * Sender and receiver over the network and back, in simulated time: what an application may rely on, whatever the network does.
 */
import { assert, describe, it } from "@effect/vitest"
import { Inputs, joinRecords, LinkNode, Output, OutputClosed } from "@pure-link/link"
import { ForkedOutbox, Input, InvalidPeerKey, StreamType, WrongOutbox } from "@pure-link/link"
import { StoreError } from "@pure-link/ports"
import { InboxMemory, OutboxMemory } from "@pure-link/store"
import { VirtualNetwork } from "@pure-link/virtual-net"
import { RefusalReason } from "@pure-link/wire"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import {
  badLink, blobs, deviceNode, Dice, hub, hubAddress, hubNode, hubPeer, identities, inputs, node, outbox, play, take
} from "./world.ts"

const device = { source: "device", peer: hubPeer }
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

/** Records of many sizes: empty, small, just around a datagram, and a few long ones. */
const manySizes = (dice: Dice, count: number): ReadonlyArray<Uint8Array> =>
  numbers(count).map(() => dice.bytes([0, 1, 60, 255, 256, 1_100, 1_200, 5_000, 40_000][dice.below(9)]!))

const sameRecords = (
  records: ReadonlyArray<{ readonly number: number; readonly value: Uint8Array }>,
  sent: ReadonlyArray<Uint8Array>
): void => {
  assert.deepStrictEqual(records.map(({ number }) => number), numbers(sent.length))
  for (const [index, { value }] of records.entries()) assert.isTrue(Buffer.from(value).equals(sent[index]!), `record ${index + 1}`)
}

describe("a stream", () => {
  it.for([1, 2, 3, 4])("arrives exactly once and in order through loss, copies and overtaking (seed %i)", (seed) => {
    const sent = manySizes(new Dice(seed), 300)
    const records = play(Effect.gen(function*() {
      const receiving = yield* Effect.forkScoped(take(blobs, sent.length))
      yield* Effect.gen(function*() {
        const output = yield* Output.open(blobs, device)
        for (let i = 0; i < sent.length; i += 10) yield* output.appendAll(sent.slice(i, i + 10))
        assert.strictEqual((yield* output.drained).through, sent.length)
        assert.deepStrictEqual(yield* output.state, { _tag: "Idle" })
      }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
      return yield* Fiber.join(receiving)
    }).pipe(Effect.provide(hub())), { seed, link: badLink })
    sameRecords(records, sent)
  })

  it("carries the longest record and the empty one", () => {
    const sent = [new Uint8Array(0), new Uint8Array(16_777_216).fill(7), new Uint8Array(0), Uint8Array.of(1)]
    const records = play(Effect.gen(function*() {
      const receiving = yield* Effect.forkScoped(take(blobs, sent.length))
      yield* Effect.gen(function*() {
        const output = yield* Output.open(blobs, device)
        yield* output.appendAll(sent)
        yield* output.drained
      }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
      return yield* Fiber.join(receiving)
    }).pipe(Effect.provide(hub())))
    sameRecords(records, sent)
  })

  it("leaves the outbox once it is STORED, and not before", () => {
    const backing = new OutboxMemory.Backing()
    play(Effect.gen(function*() {
      yield* Effect.gen(function*() {
        const output = yield* Output.open(blobs, device)
        yield* output.append(Uint8Array.of(1))
        yield* Effect.sleep(5_000)
        assert.strictEqual(backing.records.size, 1)
        yield* Effect.forkScoped(Effect.provide(Effect.scoped(take(blobs, 2)), hub()))
        yield* output.drained
        yield* Effect.sleep(1_000)
        assert.strictEqual(backing.records.size, 0)
      }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs, { backing })]))
    }))
  })

  it("tells with each receipt when it was stored, however late it is asked", () => {
    play(Effect.gen(function*() {
      yield* Input.open(blobs)
      yield* Effect.gen(function*() {
        const output = yield* Output.open(blobs, device)
        const first = yield* output.append(Uint8Array.of(1))
        const second = yield* Effect.andThen(Effect.sleep(3_000), output.appendAll([Uint8Array.of(2), Uint8Array.of(3)]))
        const nothing = yield* output.appendAll([])
        assert.deepStrictEqual([first.first, first.last, second.first, second.last], [1, 1, 2, 3])
        const last = yield* second.stored
        const early = yield* first.stored
        assert.deepStrictEqual([early.through, last.through], [1, 3])
        assert.isAtLeast(last.atMicros - early.atMicros, 2_900_000)
        assert.isAtMost(early.at, 200)
        assert.isAtLeast(last.at, yield* Effect.map(Clock.currentTimeMillis, (now) => now - 200))
        assert.strictEqual((yield* nothing.stored).through, 3)
        assert.strictEqual(yield* output.storedThrough, 3)
      }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
    }).pipe(Effect.provide(hub())))
  })

  it("goes out as full packets when many append at once", () => {
    play(Effect.gen(function*() {
      yield* Input.open(blobs)
      yield* Effect.gen(function*() {
        const output = yield* Output.open(blobs, device)
        yield* Effect.all(numbers(200).map(() => output.append(new Uint8Array(50))), { concurrency: "unbounded" })
        yield* output.drained
        const { outputs } = yield* (yield* LinkNode).counters
        assert.isAtMost(outputs[0]!.counters["packetsSent"]!, 40)
      }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
    }).pipe(Effect.provide(hub())))
  })
})

describe("restarts", () => {
  it.for([11, 12, 13])("of a sender, killed at any moment, lose and repeat nothing (seed %i)", (seed) => {
    const dice = new Dice(seed)
    const backing = new OutboxMemory.Backing()
    const sent = manySizes(dice, 200)
    const records = play(Effect.gen(function*() {
      const receiving = yield* Effect.forkScoped(take(blobs, sent.length))
      let finished = false
      while (!finished) {
        const life = yield* Effect.gen(function*() {
          const output = yield* Output.open(blobs, device)
          for (;;) {
            const start = backing.contents!.last
            if (start >= sent.length) break
            yield* output.appendAll(sent.slice(start, start + 7))
            yield* Effect.sleep(5)
          }
          yield* output.drained
          finished = true
        }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs, { backing })]), Effect.forkChild)
        yield* Effect.raceFirst(Fiber.await(life), Effect.sleep(20 + dice.below(400)))
        yield* Fiber.interrupt(life)
      }
      return yield* Fiber.join(receiving)
    }).pipe(Effect.provide(hub())), { seed, link: badLink })
    sameRecords(records, sent)
  })

  it.for([21, 22])("of a receiver, killed at any moment, lose and repeat nothing (seed %i)", (seed) => {
    const dice = new Dice(seed)
    const backing = new InboxMemory.Backing()
    const sent = manySizes(dice, 200)
    play(Effect.gen(function*() {
      const sending = yield* Effect.gen(function*() {
        const output = yield* Output.open(blobs, device)
        for (let i = 0; i < sent.length; i += 5) {
          yield* output.appendAll(sent.slice(i, i + 5))
          yield* Effect.sleep(100)
        }
        yield* output.drained
      }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]), Effect.forkChild)
      while (sending.pollUnsafe() === undefined) {
        const life = yield* Effect.forkChild(Effect.andThen(Input.open(blobs), Effect.never).pipe(
          Effect.scoped, Effect.provide(hub({ backing }))
        ))
        yield* Effect.raceFirst(Fiber.await(sending), Effect.sleep(3_000 + dice.below(3_000)))
        yield* Fiber.interrupt(life)
      }
      yield* Fiber.join(sending)
      sameRecords(yield* Effect.provide(Effect.scoped(take(blobs, sent.length)), hub({ backing })), sent)
    }), { seed, link: badLink })
  })

  it("of a receiver are over within seconds for a sender that goes on", () => {
    const backing = new InboxMemory.Backing()
    const up = Effect.andThen(Input.open(blobs), Effect.never).pipe(Effect.scoped, Effect.provide(hub({ backing })))
    play(Effect.gen(function*() {
      const output = yield* Output.open(blobs, device)
      const first = yield* Effect.forkChild(up)
      yield* (yield* output.append(Uint8Array.of(1))).stored
      yield* Fiber.interrupt(first)
      yield* Effect.forkChild(up)
      const receipt = yield* output.append(Uint8Array.of(2))
      const begun = yield* Clock.currentTimeMillis
      yield* receipt.stored
      assert.isBelow((yield* Clock.currentTimeMillis) - begun, 6_000)
      assert.strictEqual((yield* (yield* LinkNode).counters).events["SilentRecovery"], 1)
    }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)])), { link: { delayMicros: 10_000 } })
  })
})

describe("what stands in the way", () => {
  const Number_ = StreamType.make("blobs", Schema.Struct({ n: Schema.Finite }))

  it("is told as Refused while the input is missing, and ends by itself when it appears", () => {
    play(Effect.gen(function*() {
      const receiving = yield* Effect.forkChild(Effect.gen(function*() {
        yield* Effect.sleep(5_000)
        yield* Input.open(blobs)
        yield* Effect.sleep(10_000)
        return yield* (yield* LinkNode).counters
      }).pipe(Effect.scoped, Effect.provide(hub())))
      yield* Effect.gen(function*() {
        const output = yield* Output.open(blobs, device)
        const states: Array<string> = []
        yield* Effect.forkScoped(Stream.runForEach(output.changes, (state) => Effect.sync(() => states.push(state._tag))))
        const receipt = yield* output.append(Uint8Array.of(1))
        yield* Effect.sleep(2_000)
        const state = yield* output.state
        assert.strictEqual(state._tag, "Refused")
        if (state._tag === "Refused") {
          assert.strictEqual(state.reason, RefusalReason.noSuchInput)
          assert.match(state.remedy, /open it there/)
        }
        yield* receipt.stored
        yield* Effect.sleep(1)
        assert.deepStrictEqual(states, ["Idle", "Sending", "Refused", "Idle"])
        const { events } = yield* (yield* LinkNode).counters
        assert.deepInclude(events, { OutputRefused: 1, OutputAccepted: 1 })
      }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
      assert.deepInclude((yield* Fiber.join(receiving)).events, { InputRefused: 1, InputAccepted: 1 })
    }))
  })

  it("is told as Refused for another shape, and for a source that the key may not use", () => {
    const peers = [{ publicKey: identities.device.publicKey, sources: ["device"] }]
    play(Effect.gen(function*() {
      yield* Input.open(blobs)
      const refusalOf = <A>(type: StreamType<A>, source: string, value: A) =>
        Effect.gen(function*() {
          const output = yield* Output.open(type, { source, peer: hubPeer })
          yield* output.append(value)
          return yield* output.changes.pipe(
            Stream.filter((state) => state._tag === "Refused"), Stream.map(({ reason }) => reason), Stream.take(1), Stream.runCollect
          )
        }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(type, { source })]))
      assert.deepStrictEqual(yield* refusalOf(Number_, "device", { n: 1 }), [RefusalReason.otherShape])
      assert.deepStrictEqual(yield* refusalOf(blobs, "other", Uint8Array.of(1)), [RefusalReason.sourceNotAllowed])
    }).pipe(Effect.scoped, Effect.provide(hub({ peers }))))
  })

  it("is told as Silent, with what to check, when nobody answers for 10 s, and ends when somebody does", () => {
    play(Effect.gen(function*() {
      const output = yield* Output.open(blobs, device)
      const receipt = yield* output.append(Uint8Array.of(1))
      yield* Effect.sleep(9_000)
      assert.strictEqual((yield* output.state)._tag, "Sending")
      yield* Effect.sleep(2_000)
      const state = yield* output.state
      assert.strictEqual(state._tag, "Silent")
      if (state._tag === "Silent") {
        const keys = [identities.hub, identities.device].map(({ publicKey }) => Buffer.from(publicKey).toString("base64url"))
        for (const text of ["hub:4600", ...keys]) assert.include(state.remedy, text)
      }
      yield* Effect.forkScoped(Effect.provide(Effect.scoped(take(blobs, 2)), hub()))
      yield* receipt.stored
      yield* Effect.sleep(1)
      assert.strictEqual((yield* output.state)._tag, "Idle")
      assert.deepInclude((yield* (yield* LinkNode).counters).events, { OutputSilent: 1, OutputAnswered: 1 })
    }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)])))
  })

  it("may be an address that is found later, and another one after silence", () => {
    play(Effect.gen(function*() {
      let lookUps = 0
      const lookUp = Effect.suspend(() => {
        lookUps++
        if (lookUps < 3) return Effect.fail(new Error("no such host"))
        return Effect.succeed(lookUps < 4 ? { host: "nowhere", port: 1 } : hubAddress)
      })
      const output = yield* Output.open(blobs, { source: "device", peer: { ...hubPeer, address: lookUp } })
      const receipt = yield* output.append(Uint8Array.of(1))
      yield* Effect.sleep(500)
      assert.deepStrictEqual(yield* output.state, { _tag: "Resolving", detail: "no such host" })
      yield* Effect.forkScoped(Effect.provide(Effect.scoped(take(blobs, 2)), hub()))
      yield* receipt.stored
      assert.strictEqual(lookUps, 4)
    }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)])))
  })

  it("may be a copied outbox, which stops for good with a typed error and keeps what it holds", () => {
    const original = new OutboxMemory.Backing()
    const send = <A, E>(backing: OutboxMemory.Backing, body: (output: Output<Uint8Array>) => Effect.Effect<A, E>) =>
      Effect.flatMap(Output.open(blobs, device), body).pipe(
        Effect.scoped, Effect.provide([deviceNode(), outbox(blobs, { backing })])
      )
    play(Effect.gen(function*() {
      yield* Input.open(blobs)
      yield* send(original, (output) => Effect.andThen(output.append(Uint8Array.of(1)), output.drained))
      const copy = original.copy()
      yield* send(original, (output) => Effect.andThen(output.appendAll([Uint8Array.of(2), Uint8Array.of(3)]), output.drained))
      yield* send(copy, (output) =>
        Effect.gen(function*() {
          const receipt = yield* output.append(Uint8Array.of(9))
          const error = yield* Effect.flip(receipt.stored)
          assert.instanceOf(error, ForkedOutbox)
          assert.match(error.message, /make a new outbox/)
          assert.instanceOf(yield* Effect.flip(output.append(Uint8Array.of(10))), ForkedOutbox)
          assert.strictEqual((yield* output.state)._tag, "Forked")
          assert.instanceOf(yield* Effect.flip(output.drained), ForkedOutbox)
        }))
      assert.deepStrictEqual([...copy.records.values()], [Uint8Array.of(9)])
    }).pipe(Effect.scoped, Effect.provide(hub())))
  })

  it("may be a mistake that is told when the output is opened", () => {
    play(Effect.gen(function*() {
      const open = (options: Parameters<typeof Output.open>[1]) => Effect.flip(Output.open(blobs, options))
      assert.instanceOf(yield* open({ source: "other", peer: hubPeer }), WrongOutbox)
      assert.instanceOf(yield* open({ source: "device", peer: { ...hubPeer, publicKey: new Uint8Array(31) } }), InvalidPeerKey)
      assert.instanceOf(yield* open({ source: "device", peer: { ...hubPeer, publicKey: new Uint8Array(32) } }), InvalidPeerKey)
      assert.strictEqual((yield* open({ source: "", peer: hubPeer }))._tag, "InvalidName")
      assert.deepStrictEqual((yield* (yield* LinkNode).counters).outputs, [])
    }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)])))
  })
})

describe("stores", () => {
  it("that are full hold back those who append until records were STORED", () => {
    play(Effect.gen(function*() {
      const output = yield* Output.open(blobs, device)
      let appended = 0
      const appending = yield* Effect.forkChild(Effect.forEach(numbers(100), () =>
        Effect.map(output.append(new Uint8Array(1_000)), () => void appended++), { discard: true }))
      yield* Effect.sleep(1_000)
      assert.strictEqual(appended, 10)
      yield* Effect.forkScoped(Effect.provide(Effect.scoped(take(blobs, 1_000)), hub()))
      yield* Fiber.join(appending)
      assert.strictEqual((yield* output.drained).through, 100)
    }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs, { limitBytes: 10_000 })])))
  })

  it("that are slow delay STORED and no acknowledgement: nothing is sent twice", () => {
    play(Effect.gen(function*() {
      yield* Input.open(blobs)
      yield* Effect.gen(function*() {
        const output = yield* Output.open(blobs, device)
        for (let i = 0; i < 20; i++) {
          yield* output.appendAll(numbers(10).map(() => new Uint8Array(500)))
          yield* Effect.sleep(20)
        }
        yield* output.drained
        const { counters } = (yield* (yield* LinkNode).counters).outputs[0]!
        assert.strictEqual(counters["recordBytesSent"], 200 * 500)
      }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
    }).pipe(Effect.scoped, Effect.provide(hub({ beforeCommit: Effect.sleep(700) }))))
  })

  it("that fail for a while lose nothing, and are told of once", () => {
    let full = true
    const error = new StoreError({ reason: "full", file: "inbox", detail: "no space left", remedy: "make room" })
    const sent = manySizes(new Dice(5), 100)
    play(Effect.gen(function*() {
      const receiving = yield* Effect.forkChild(take(blobs, sent.length))
      yield* Effect.gen(function*() {
        const output = yield* Output.open(blobs, device)
        yield* output.appendAll(sent)
        yield* Effect.sleep(20_000)
        assert.strictEqual(yield* output.storedThrough, 0)
        full = false
        yield* output.drained
      }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
      sameRecords(yield* Fiber.join(receiving), sent)
      assert.deepInclude((yield* (yield* LinkNode).counters).events, { StoreTrouble: 1, StoreWorks: 1 })
    }).pipe(Effect.scoped, Effect.provide(hub({ beforeCommit: Effect.suspend(() => full ? Effect.fail(error) : Effect.void) }))))
  })

  it("group what came from many senders into few transactions", () => {
    const backing = new InboxMemory.Backing()
    const sources = numbers(30).map((index) => `device-${index}`)
    play(Effect.gen(function*() {
      const receiving = yield* Effect.forkChild(take(blobs, 30))
      yield* Effect.forEach(sources, (source) =>
        Effect.gen(function*() {
          const output = yield* Output.open(blobs, { source, peer: hubPeer })
          yield* output.append(Uint8Array.of(1))
          yield* output.drained
        }).pipe(Effect.scoped, Effect.provide(outbox(blobs, { source }))), { concurrency: "unbounded", discard: true }).pipe(
          Effect.provide(deviceNode())
        )
      const records = yield* Fiber.join(receiving)
      assert.deepStrictEqual(records.map(({ source }) => source).toSorted(), sources.toSorted())
      assert.isAtMost(backing.transactions, 10)
    }).pipe(Effect.scoped, Effect.provide(hub({ backing, beforeCommit: Effect.sleep(20) }))))
  })
})

describe("one socket", () => {
  it("serves both roles at once, in both directions", () => {
    const there = StreamType.bytes("there", "raw")
    const back = StreamType.bytes("back", "raw")
    const sent = manySizes(new Dice(3), 100)
    const side = (send: StreamType<Uint8Array>, receive: StreamType<Uint8Array>, to: { host: string; publicKey: Uint8Array }) =>
      Effect.gen(function*() {
        const receiving = yield* Effect.forkChild(take(receive, sent.length))
        const peer = { publicKey: to.publicKey, address: { host: to.host, port: 4600 } }
        const output = yield* Output.open(send, { source: "both", peer })
        yield* output.appendAll(sent)
        yield* output.drained
        sameRecords(yield* Fiber.join(receiving), sent)
        const { driver } = yield* (yield* LinkNode).counters
        yield* Effect.sleep(3_000)
        assert.strictEqual(driver.answersUnclaimed + driver.dataUnclaimed, 0)
      })
    const layers = (host: string, identity: typeof identities.hub, from: Uint8Array, type: StreamType<Uint8Array>) =>
      Layer.mergeAll(inputs({ peers: [{ publicKey: from, sources: ["both"] }] }), outbox(type, { source: "both" })).pipe(
        Layer.provideMerge(node(host, identity, { listen: { host, port: 4600 } }))
      )
    const { device, hub } = identities
    play(
      Effect.all([
        side(there, back, { host: "hub", publicKey: hub.publicKey }).pipe(
          Effect.scoped, Effect.provide(layers("device", device, hub.publicKey, there))
        ),
        side(back, there, { host: "device", publicKey: device.publicKey }).pipe(
          Effect.scoped, Effect.provide(layers("hub", hub, device.publicKey, back))
        )
      ], { concurrency: 2 }),
      { link: { ...badLink, duplicate: 0 } }
    )
  })

  it("meets a peer that is not allowed with silence, and with answers once it is", () => {
    play(Effect.gen(function*() {
      yield* Input.open(blobs)
      const { allow, revoke } = yield* Inputs
      yield* Effect.gen(function*() {
        const output = yield* Output.open(blobs, { source: "stranger", peer: hubPeer })
        const receipt = yield* output.append(Uint8Array.of(1))
        yield* Effect.sleep(11_000)
        assert.strictEqual((yield* output.state)._tag, "Silent")
        yield* allow({ publicKey: identities.stranger.publicKey, sources: "any" })
        yield* receipt.stored
        yield* revoke(identities.stranger.publicKey)
        yield* output.append(Uint8Array.of(2))
        yield* Effect.sleep(11_000)
        assert.strictEqual((yield* output.state)._tag, "Silent")
        assert.strictEqual((yield* (yield* LinkNode).counters).outputs.length, 1)
      }).pipe(Effect.scoped, Effect.provide([node("stranger", identities.stranger), outbox(blobs, { source: "stranger" })]))
    }).pipe(Effect.scoped, Effect.provide(hub())))
  })

  it("of a hub lets no sender starve another", () => {
    play(Effect.gen(function*() {
      yield* Input.open(blobs)
      yield* Effect.gen(function*() {
        const open = (source: string) =>
          Effect.flatMap(Layer.build(outbox(blobs, { source })), (built) =>
            Effect.provide(Output.open(blobs, { source, peer: hubPeer }), built))
        const bulk = yield* open("bulk")
        yield* bulk.appendAll(numbers(40).map(() => new Uint8Array(100_000)))
        const small = yield* open("small")
        const receipt = yield* small.append(Uint8Array.of(1))
        yield* receipt.stored
        assert.isBelow(yield* bulk.storedThrough, 40)
      }).pipe(Effect.scoped, Effect.provide(deviceNode()))
    }).pipe(Effect.scoped, Effect.provide(hub())), { link: { delayMicros: 20_000 } })
  })
})

describe("scopes", () => {
  it.for([31, 32, 33])("of appends may be interrupted anywhere: each is durable as a whole or did nothing (seed %i)", (seed) => {
    const dice = new Dice(seed)
    const done = new Set<number>()
    const sizes = new Map<number, number>()
    play(Effect.gen(function*() {
      const input = yield* Input.open(blobs)
      yield* Effect.gen(function*() {
        const output = yield* Output.open(blobs, device)
        const label = (index: number, count: number) => joinRecords(numbers(count).map(() => Uint8Array.of(index >> 8, index)))
        const one = (index: number) =>
          Effect.gen(function*() {
            const count = 1 + dice.below(5)
            sizes.set(index, count)
            yield* output.appendBatch(label(index, count))
            done.add(index)
          })
        for (let index = 0; index < 300; index++) {
          const appending = yield* Effect.forkChild(one(index), { startImmediately: true })
          for (let pause = dice.below(6); pause > 0; pause--) yield* Effect.yieldNow
          if (dice.below(3) === 0) yield* Effect.sleep(dice.below(3))
          if (dice.below(2) === 0) yield* Effect.forkChild(Fiber.interrupt(appending), { startImmediately: true })
        }
        yield* Effect.sleep(1_000)
        const { through } = yield* output.drained
        const chunks = yield* input.from(0).pipe(
          Stream.flatMap((chunk) => Stream.fromIterable(chunk.records)), Stream.take(through), Stream.runCollect
        )
        const counts = new Map<number, number>()
        for (const { value } of chunks) counts.set(value[0]! << 8 | value[1]!, (counts.get(value[0]! << 8 | value[1]!) ?? 0) + 1)
        for (const [index, count] of counts) assert.strictEqual(count, sizes.get(index), `append ${index}`)
        for (const index of done) assert.isTrue(counts.has(index), `append ${index}`)
        assert.isAbove(counts.size, 100)
        assert.isBelow(counts.size, 300)
      }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs, { beforeCommit: Effect.sleep(0.3) })]))
    }).pipe(Effect.scoped, Effect.provide(hub())), { seed, link: badLink })
  })

  it("of an output, when they close, end its receipts with an error that says the records are safe", () => {
    const backing = new OutboxMemory.Backing()
    play(Effect.gen(function*() {
      const output = yield* Effect.gen(function*() {
        const output = yield* Output.open(blobs, device)
        const receipt = yield* output.append(Uint8Array.of(1))
        yield* Effect.forkDetach(Effect.map(Effect.exit(receipt.stored), (exit) => {
          assert.isTrue(Exit.isFailure(exit) && String(exit.cause).includes("safe in the outbox"), String(exit))
        }), { startImmediately: true })
        return { output, receipt }
      }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs, { backing })]))
      assert.instanceOf(yield* Effect.flip(output.receipt.stored), OutputClosed)
      assert.instanceOf(yield* Effect.flip(output.output.append(Uint8Array.of(2))), OutputClosed)
      yield* Input.open(blobs)
      const stored = yield* Effect.flatMap(Output.open(blobs, device), (again) => again.drained).pipe(
        Effect.scoped, Effect.provide([deviceNode(), outbox(blobs, { backing })])
      )
      assert.strictEqual(stored.through, 1)
    }).pipe(Effect.scoped, Effect.provide(hub())))
  })

  it("of a node, when they close, leave the port free and nothing running", () => {
    play(Effect.gen(function*() {
      const network = yield* VirtualNetwork
      for (let life = 0; life < 3; life++) {
        yield* Effect.provide(Effect.andThen(Effect.scoped(Input.open(blobs)), Effect.sleep(1)), hub())
      }
      const { sent } = network.counters("hub", "device")
      yield* Effect.sleep(10_000)
      assert.strictEqual(network.counters("hub", "device").sent, sent)
    }))
  })
})

describe("a consumer", () => {
  const fill = (count: number) =>
    Effect.gen(function*() {
      const output = yield* Output.open(blobs, device)
      yield* output.appendAll(numbers(count).map((index) => Uint8Array.of(index)))
      yield* output.drained
    }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))

  it("sees records again that it did not acknowledge, and no others", () => {
    play(Effect.gen(function*() {
      const input = yield* Input.open(blobs)
      yield* fill(50)
      const read = (chunks: number) =>
        input.chunks({ consumer: "c", maximumRecords: 10 }).pipe(Stream.take(chunks), Stream.runCollect)
      const first = yield* read(2)
      assert.deepStrictEqual(first.map(({ end }) => end), [10, 20])
      yield* first[0]!.acknowledge
      const failing = input.chunks({ consumer: "c", maximumRecords: 10 }).pipe(
        Stream.runForEach((chunk): Effect.Effect<void, StoreError | "broken"> => chunk.end === 30 ? Effect.fail("broken") : chunk.acknowledge)
      )
      assert.strictEqual(yield* Effect.flip(failing), "broken")
      assert.strictEqual(yield* input.position("c"), 20)
      assert.deepStrictEqual((yield* read(1))[0]!.records.map(({ position }) => position), numbers(10).map((n) => n + 20))
    }).pipe(Effect.scoped, Effect.provide(hub())))
  })

  it("waits for records that come later, and leaves its cursor when interrupted", () => {
    play(Effect.gen(function*() {
      const input = yield* Input.open(blobs)
      const seen: Array<number> = []
      const consuming = yield* Effect.forkChild(input.chunks({ consumer: "c" }).pipe(
        Stream.runForEach((chunk) => {
          seen.push(...chunk.records.map(({ position }) => position))
          return Effect.never
        })
      ))
      yield* Effect.sleep(100)
      yield* fill(3)
      yield* Effect.sleep(100)
      assert.isAbove(seen.length, 0)
      yield* Fiber.interrupt(consuming)
      assert.strictEqual(yield* input.position("c"), 0)
      assert.strictEqual(yield* input.lastPosition, 3)
    }).pipe(Effect.scoped, Effect.provide(hub())))
  })

  it("shares its name with nobody while it reads", () => {
    play(Effect.gen(function*() {
      const input = yield* Input.open(blobs)
      yield* fill(1)
      const reading = Stream.runDrain(input.chunks({ consumer: "c" }))
      const first = yield* Effect.forkChild(reading, { startImmediately: true })
      assert.strictEqual((yield* Effect.flip(reading))._tag, "ConsumerBusy")
      yield* Fiber.interrupt(first)
      yield* Effect.raceFirst(reading, Effect.sleep(10))
    }).pipe(Effect.scoped, Effect.provide(hub())))
  })

  it("stops before a record that is no value, tells which, and may step over it", () => {
    const texts = StreamType.make("blobs", Schema.String)
    play(Effect.gen(function*() {
      const input = yield* Input.open(texts)
      yield* Effect.gen(function*() {
        const output = yield* Output.open(texts, device)
        yield* output.append("one")
        yield* output.appendBatch(joinRecords([Uint8Array.of(0xff)]))
        yield* output.append("three")
        yield* output.drained
      }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(texts)]))
      const seen: Array<string> = []
      const reading = input.chunks({ consumer: "c" }).pipe(Stream.runForEach((chunk) => {
        seen.push(...chunk.records.map(({ value }) => value))
        return chunk.acknowledge
      }))
      const error = yield* Effect.flip(reading)
      assert.strictEqual(error._tag, "UndecodableRecord")
      if (error._tag === "UndecodableRecord") assert.strictEqual(error.position, 2)
      yield* input.acknowledge("c", 2)
      yield* Effect.raceFirst(reading, Effect.sleep(10))
      assert.deepStrictEqual(seen, ["one", "three"])
    }).pipe(Effect.scoped, Effect.provide(hub())))
  })

  it("may have the log pruned behind it, and senders notice nothing", () => {
    play(Effect.gen(function*() {
      const input = yield* Input.open(blobs)
      yield* fill(20)
      assert.strictEqual(yield* input.prune(15), 15)
      const rest = yield* input.from(0).pipe(Stream.take(1), Stream.runCollect)
      assert.deepStrictEqual(rest[0]!.records.map(({ number }) => number), [16, 17, 18, 19, 20])
      const { summaries } = yield* Inputs
      assert.deepInclude((yield* summaries)[0], { input: "blobs", records: 5, firstPosition: 16, lastPosition: 20 })
    }).pipe(Effect.scoped, Effect.provide(hub())))
  })

  it("cannot open an input name under two stream types at once, but may share one", () => {
    play(Effect.gen(function*() {
      const other = StreamType.bytes("blobs", "other")
      yield* Effect.scoped(Effect.gen(function*() {
        yield* Input.open(blobs)
        yield* Effect.scoped(Input.open(blobs))
        assert.strictEqual((yield* Effect.flip(Input.open(other)))._tag, "InputConflict")
        yield* fill(1)
      }))
      yield* Effect.scoped(Input.open(other))
    }).pipe(Effect.scoped, Effect.provide(hub())))
  })
})

describe("TestClock", () => {
  it.effect("drives the same nodes as the simulator", () =>
    Effect.gen(function*() {
      const sent = manySizes(new Dice(9), 50)
      const receiving = yield* Effect.forkChild(take(blobs, sent.length))
      const sending = yield* Effect.forkChild(Effect.gen(function*() {
        const output = yield* Output.open(blobs, device)
        yield* output.appendAll(sent)
        return (yield* output.drained).through
      }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)])))
      // In steps: time must not run away before the first fiber sleeps.
      for (let step = 0; step < 300; step++) yield* TestClock.adjust("100 millis")
      assert.strictEqual(yield* Fiber.join(sending), sent.length)
      sameRecords(yield* Fiber.join(receiving), sent)
    }).pipe(
      Effect.provide(hub()),
      Effect.provide(VirtualNetwork.layer({ seed: 4, link: badLink })),
      Effect.provideService(References.MinimumLogLevel, "None")
    ))
})

describe("a node without a receiver", () => {
  it("counts data packets that come to it and answers none", () => {
    play(Effect.gen(function*() {
      const { counters } = yield* LinkNode
      yield* Effect.gen(function*() {
        const output = yield* Output.open(blobs, device)
        yield* output.append(Uint8Array.of(1))
        yield* Effect.sleep(1_000)
      }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
      const { driver } = yield* counters
      assert.isAbove(driver.dataUnclaimed, 0)
      assert.strictEqual(driver.datagramsSent, 0)
    }).pipe(Effect.provide(hubNode())))
  })
})

/**
 * What an application does with nodes, outputs and inputs: both roles, scopes that close anywhere, consumers.
 */
import { assert, describe, it } from "@effect/vitest"
import { Inputs, joinRecords, LinkNode, Output, OutputClosed } from "@pure-link/link"
import { Input, StreamType } from "@pure-link/link"
import { StoreError } from "@pure-link/ports"
import { OutboxMemory } from "@pure-link/store"
import { VirtualNetwork } from "@pure-link/virtual-net"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import {
  badLink,
  blobs,
  device,
  deviceNode,
  Dice,
  hub,
  hubNode,
  hubPeer,
  identities,
  inputs,
  manySizes,
  node,
  numbers,
  outbox,
  play,
  sameRecords,
  take
} from "./world.ts"

describe("one socket", () => {
  it("serves both roles at once, in both directions", () => {
    const there = StreamType.bytes("there", "raw")
    const back = StreamType.bytes("back", "raw")
    const sent = manySizes(new Dice(3), 100)
    const side = (
      send: StreamType<Uint8Array>,
      receive: StreamType<Uint8Array>,
      to: { host: string; publicKey: Uint8Array }
    ) =>
      Effect.gen(function* () {
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
      Layer.mergeAll(
        inputs({ peers: [{ publicKey: from, sources: ["both"] }] }),
        outbox(type, { source: "both" })
      ).pipe(Layer.provideMerge(node(host, identity, { listen: { host, port: 4600 } })))
    const { device, hub } = identities
    play(
      Effect.all(
        [
          side(there, back, { host: "hub", publicKey: hub.publicKey }).pipe(
            Effect.scoped,
            Effect.provide(layers("device", device, hub.publicKey, there))
          ),
          side(back, there, { host: "device", publicKey: device.publicKey }).pipe(
            Effect.scoped,
            Effect.provide(layers("hub", hub, device.publicKey, back))
          )
        ],
        { concurrency: 2 }
      ),
      { link: { ...badLink, duplicate: 0 } }
    )
  })

  it("meets a peer that is not allowed with silence, and with answers once it is", () => {
    play(
      Effect.gen(function* () {
        yield* Input.open(blobs)
        const { allow, revoke } = yield* Inputs
        yield* Effect.gen(function* () {
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
        }).pipe(
          Effect.scoped,
          Effect.provide([node("stranger", identities.stranger), outbox(blobs, { source: "stranger" })])
        )
      }).pipe(Effect.scoped, Effect.provide(hub()))
    )
  })

  it("of a hub lets no sender starve another", () => {
    play(
      Effect.gen(function* () {
        yield* Input.open(blobs)
        yield* Effect.gen(function* () {
          const open = (source: string) =>
            Effect.flatMap(Layer.build(outbox(blobs, { source })), (built) =>
              Effect.provide(Output.open(blobs, { source, peer: hubPeer }), built)
            )
          const bulk = yield* open("bulk")
          yield* bulk.appendAll(numbers(40).map(() => new Uint8Array(100_000)))
          const small = yield* open("small")
          const receipt = yield* small.append(Uint8Array.of(1))
          yield* receipt.stored
          assert.isBelow(yield* bulk.storedThrough, 40)
        }).pipe(Effect.scoped, Effect.provide(deviceNode()))
      }).pipe(Effect.scoped, Effect.provide(hub())),
      { link: { delayMicros: 20_000 } }
    )
  })
})

describe("scopes", () => {
  it.for([31, 32, 33])(
    "of appends may be interrupted anywhere: each is durable as a whole or did nothing (seed %i)",
    (seed) => {
      const dice = new Dice(seed)
      const done = new Set<number>()
      const sizes = new Map<number, number>()
      play(
        Effect.gen(function* () {
          const input = yield* Input.open(blobs)
          yield* Effect.gen(function* () {
            const output = yield* Output.open(blobs, device)
            const label = (index: number, count: number) =>
              joinRecords(numbers(count).map(() => Uint8Array.of(index >> 8, index)))
            const one = (index: number) =>
              Effect.gen(function* () {
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
              Stream.flatMap((chunk) => Stream.fromIterable(chunk.records)),
              Stream.take(through),
              Stream.runCollect
            )
            const counts = new Map<number, number>()
            for (const { value } of chunks) {
              const index = (value[0]! << 8) | value[1]!
              counts.set(index, (counts.get(index) ?? 0) + 1)
            }
            for (const [index, count] of counts) assert.strictEqual(count, sizes.get(index), `append ${index}`)
            for (const index of done) assert.isTrue(counts.has(index), `append ${index}`)
            assert.isAbove(counts.size, 100)
            assert.isBelow(counts.size, 300)
          }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs, { beforeCommit: Effect.sleep(0.3) })]))
        }).pipe(Effect.scoped, Effect.provide(hub())),
        { seed, link: badLink }
      )
    }
  )

  it("of an output, when they close, end its receipts with an error that says the records are safe", () => {
    const backing = new OutboxMemory.Backing()
    play(
      Effect.gen(function* () {
        const output = yield* Effect.gen(function* () {
          const output = yield* Output.open(blobs, device)
          const receipt = yield* output.append(Uint8Array.of(1))
          yield* Effect.forkDetach(
            Effect.map(Effect.exit(receipt.stored), (exit) => {
              assert.isTrue(Exit.isFailure(exit) && String(exit.cause).includes("safe in the outbox"), String(exit))
            }),
            { startImmediately: true }
          )
          return { output, receipt }
        }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs, { backing })]))
        assert.instanceOf(yield* Effect.flip(output.receipt.stored), OutputClosed)
        assert.instanceOf(yield* Effect.flip(output.output.append(Uint8Array.of(2))), OutputClosed)
        yield* Input.open(blobs)
        const stored = yield* Effect.flatMap(Output.open(blobs, device), (again) => again.drained).pipe(
          Effect.scoped,
          Effect.provide([deviceNode(), outbox(blobs, { backing })])
        )
        assert.strictEqual(stored.through, 1)
      }).pipe(Effect.scoped, Effect.provide(hub()))
    )
  })

  it("of a node, when they close, leave the port free and nothing running", () => {
    play(
      Effect.gen(function* () {
        const network = yield* VirtualNetwork
        for (let life = 0; life < 3; life++) {
          yield* Effect.provide(Effect.andThen(Effect.scoped(Input.open(blobs)), Effect.sleep(1)), hub())
        }
        const { sent } = network.counters("hub", "device")
        yield* Effect.sleep(10_000)
        assert.strictEqual(network.counters("hub", "device").sent, sent)
      })
    )
  })
})

describe("a consumer", () => {
  const fill = (count: number) =>
    Effect.gen(function* () {
      const output = yield* Output.open(blobs, device)
      yield* output.appendAll(numbers(count).map((index) => Uint8Array.of(index)))
      yield* output.drained
    }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))

  it("sees records again that it did not acknowledge, and no others", () => {
    play(
      Effect.gen(function* () {
        const input = yield* Input.open(blobs)
        yield* fill(50)
        const read = (chunks: number) =>
          input.chunks({ consumer: "c", maximumRecords: 10 }).pipe(Stream.take(chunks), Stream.runCollect)
        const first = yield* read(2)
        assert.deepStrictEqual(
          first.map(({ end }) => end),
          [10, 20]
        )
        yield* first[0]!.acknowledge
        const failing = input
          .chunks({ consumer: "c", maximumRecords: 10 })
          .pipe(
            Stream.runForEach((chunk): Effect.Effect<void, StoreError | "broken"> =>
              chunk.end === 30 ? Effect.fail("broken") : chunk.acknowledge
            )
          )
        assert.strictEqual(yield* Effect.flip(failing), "broken")
        assert.strictEqual(yield* input.position("c"), 20)
        assert.deepStrictEqual(
          (yield* read(1))[0]!.records.map(({ position }) => position),
          numbers(10).map((n) => n + 20)
        )
      }).pipe(Effect.scoped, Effect.provide(hub()))
    )
  })

  it("waits for records that come later, and leaves its cursor when interrupted", () => {
    play(
      Effect.gen(function* () {
        const input = yield* Input.open(blobs)
        const seen: Array<number> = []
        const consuming = yield* Effect.forkChild(
          input.chunks({ consumer: "c" }).pipe(
            Stream.runForEach((chunk) => {
              seen.push(...chunk.records.map(({ position }) => position))
              return Effect.never
            })
          )
        )
        yield* Effect.sleep(100)
        yield* fill(3)
        yield* Effect.sleep(100)
        assert.isAbove(seen.length, 0)
        yield* Fiber.interrupt(consuming)
        assert.strictEqual(yield* input.position("c"), 0)
        assert.strictEqual(yield* input.lastPosition, 3)
      }).pipe(Effect.scoped, Effect.provide(hub()))
    )
  })

  it("shares its name with nobody while it reads", () => {
    play(
      Effect.gen(function* () {
        const input = yield* Input.open(blobs)
        yield* fill(1)
        const reading = Stream.runDrain(input.chunks({ consumer: "c" }))
        const first = yield* Effect.forkChild(reading, { startImmediately: true })
        assert.strictEqual((yield* Effect.flip(reading))._tag, "ConsumerBusy")
        yield* Fiber.interrupt(first)
        yield* Effect.raceFirst(reading, Effect.sleep(10))
      }).pipe(Effect.scoped, Effect.provide(hub()))
    )
  })

  it("stops before a record that is no value, tells which, and may step over it", () => {
    const texts = StreamType.make("blobs", Schema.String)
    play(
      Effect.gen(function* () {
        const input = yield* Input.open(texts)
        yield* Effect.gen(function* () {
          const output = yield* Output.open(texts, device)
          yield* output.append("one")
          yield* output.appendBatch(joinRecords([Uint8Array.of(0xff)]))
          yield* output.append("three")
          yield* output.drained
        }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(texts)]))
        const seen: Array<string> = []
        const reading = input.chunks({ consumer: "c" }).pipe(
          Stream.runForEach((chunk) => {
            seen.push(...chunk.records.map(({ value }) => value))
            return chunk.acknowledge
          })
        )
        const error = yield* Effect.flip(reading)
        assert.strictEqual(error._tag, "UndecodableRecord")
        if (error._tag === "UndecodableRecord") assert.strictEqual(error.position, 2)
        yield* input.acknowledge("c", 2)
        yield* Effect.raceFirst(reading, Effect.sleep(10))
        assert.deepStrictEqual(seen, ["one", "three"])
      }).pipe(Effect.scoped, Effect.provide(hub()))
    )
  })

  it("may have the log pruned behind it, and senders notice nothing", () => {
    play(
      Effect.gen(function* () {
        const input = yield* Input.open(blobs)
        yield* fill(20)
        assert.strictEqual(yield* input.prune(15), 15)
        const rest = yield* input.from(0).pipe(Stream.take(1), Stream.runCollect)
        assert.deepStrictEqual(
          rest[0]!.records.map(({ number }) => number),
          [16, 17, 18, 19, 20]
        )
        const { summaries } = yield* Inputs
        assert.deepInclude((yield* summaries)[0], { input: "blobs", records: 5, firstPosition: 16, lastPosition: 20 })
      }).pipe(Effect.scoped, Effect.provide(hub()))
    )
  })

  it("cannot open an input name under two stream types at once, but may share one", () => {
    play(
      Effect.gen(function* () {
        const other = StreamType.bytes("blobs", "other")
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* Input.open(blobs)
            yield* Effect.scoped(Input.open(blobs))
            assert.strictEqual((yield* Effect.flip(Input.open(other)))._tag, "InputConflict")
            yield* fill(1)
          })
        )
        yield* Effect.scoped(Input.open(other))
      }).pipe(Effect.scoped, Effect.provide(hub()))
    )
  })
})

describe("a node without a receiver", () => {
  it("counts data packets that come to it and answers none", () => {
    play(
      Effect.gen(function* () {
        const { counters } = yield* LinkNode
        yield* Effect.gen(function* () {
          const output = yield* Output.open(blobs, device)
          yield* output.append(Uint8Array.of(1))
          yield* Effect.sleep(1_000)
        }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
        const { driver } = yield* counters
        assert.isAbove(driver.dataUnclaimed, 0)
        assert.strictEqual(driver.datagramsSent, 0)
      }).pipe(Effect.provide(hubNode()))
    )
  })
})

/**
 * Sender and receiver over the network and back, in simulated time: exactly once and in order, whatever the network
 * does and whoever is restarted.
 */
import { assert, describe, it } from "@effect/vitest"
import { LinkNode, Output } from "@pure-link/link"
import { Input } from "@pure-link/link"
import { OutboxMemory } from "@pure-link/store"
import { VirtualNetwork } from "@pure-link/virtual-net"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as References from "effect/References"
import { TestClock } from "effect/testing"
import {
  badLink,
  blobs,
  device,
  deviceNode,
  Dice,
  hub,
  manySizes,
  numbers,
  outbox,
  play,
  sameRecords,
  take
} from "./world.ts"

describe("a stream", () => {
  it.for([1, 2, 3, 4])("arrives exactly once and in order through loss, copies and overtaking (seed %i)", (seed) => {
    const sent = manySizes(new Dice(seed), 300)
    const records = play(
      Effect.gen(function* () {
        const receiving = yield* Effect.forkScoped(take(blobs, sent.length))
        yield* Effect.gen(function* () {
          const output = yield* Output.open(blobs, device)
          for (let i = 0; i < sent.length; i += 10) yield* output.appendAll(sent.slice(i, i + 10))
          assert.strictEqual((yield* output.drained).through, sent.length)
          assert.deepStrictEqual(yield* output.state, { _tag: "Idle" })
        }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
        return yield* Fiber.join(receiving)
      }).pipe(Effect.provide(hub())),
      { seed, link: badLink }
    )
    sameRecords(records, sent)
  })

  it("carries the longest record and the empty one", () => {
    const sent = [new Uint8Array(0), new Uint8Array(16_777_216).fill(7), new Uint8Array(0), Uint8Array.of(1)]
    const records = play(
      Effect.gen(function* () {
        const receiving = yield* Effect.forkScoped(take(blobs, sent.length))
        yield* Effect.gen(function* () {
          const output = yield* Output.open(blobs, device)
          yield* output.appendAll(sent)
          yield* output.drained
        }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
        return yield* Fiber.join(receiving)
      }).pipe(Effect.provide(hub()))
    )
    sameRecords(records, sent)
  })

  it("leaves the outbox once it is STORED, and not before", () => {
    const backing = new OutboxMemory.Backing()
    play(
      Effect.gen(function* () {
        yield* Effect.gen(function* () {
          const output = yield* Output.open(blobs, device)
          yield* output.append(Uint8Array.of(1))
          yield* Effect.sleep(5_000)
          assert.strictEqual(backing.records.size, 1)
          yield* Effect.forkScoped(Effect.provide(Effect.scoped(take(blobs, 2)), hub()))
          yield* output.drained
          yield* Effect.sleep(1_000)
          assert.strictEqual(backing.records.size, 0)
        }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs, { backing })]))
      })
    )
  })

  it("tells with each receipt when it was stored, however late it is asked", () => {
    play(
      Effect.gen(function* () {
        yield* Input.open(blobs)
        yield* Effect.gen(function* () {
          const output = yield* Output.open(blobs, device)
          const first = yield* output.append(Uint8Array.of(1))
          const second = yield* Effect.andThen(
            Effect.sleep(3_000),
            output.appendAll([Uint8Array.of(2), Uint8Array.of(3)])
          )
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
      }).pipe(Effect.provide(hub()))
    )
  })

  it("goes out as full packets when many append at once", () => {
    play(
      Effect.gen(function* () {
        yield* Input.open(blobs)
        yield* Effect.gen(function* () {
          const output = yield* Output.open(blobs, device)
          yield* Effect.all(
            numbers(200).map(() => output.append(new Uint8Array(50))),
            { concurrency: "unbounded" }
          )
          yield* output.drained
          const { outputs } = yield* (yield* LinkNode).counters
          assert.isAtMost(outputs[0]!.counters["packetsSent"]!, 40)
        }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
      }).pipe(Effect.provide(hub()))
    )
  })
})

describe("restarts", () => {
  it.for([11, 12, 13])("of a sender, killed at any moment, lose and repeat nothing (seed %i)", (seed) => {
    const dice = new Dice(seed)
    const backing = new OutboxMemory.Backing()
    const sent = manySizes(dice, 200)
    const records = play(
      Effect.gen(function* () {
        const receiving = yield* Effect.forkScoped(take(blobs, sent.length))
        let finished = false
        while (!finished) {
          const life = yield* Effect.gen(function* () {
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
      }).pipe(Effect.provide(hub())),
      { seed, link: badLink }
    )
    sameRecords(records, sent)
  })
})

describe("TestClock", () => {
  it.effect("drives the same nodes as the simulator", () =>
    Effect.gen(function* () {
      const sent = manySizes(new Dice(9), 50)
      const receiving = yield* Effect.forkChild(take(blobs, sent.length))
      const sending = yield* Effect.forkChild(
        Effect.gen(function* () {
          const output = yield* Output.open(blobs, device)
          yield* output.appendAll(sent)
          return (yield* output.drained).through
        }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
      )
      // In steps: time must not run away before the first fiber sleeps.
      for (let step = 0; step < 300; step++) yield* TestClock.adjust("100 millis")
      assert.strictEqual(yield* Fiber.join(sending), sent.length)
      sameRecords(yield* Fiber.join(receiving), sent)
    }).pipe(
      Effect.provide(hub()),
      Effect.provide(VirtualNetwork.layer({ seed: 4, link: badLink })),
      Effect.provideService(References.MinimumLogLevel, "None")
    )
  )
})

/**
 * What stands in a stream's way, as the application is told it: refusals, silence, forks, stores that are slow or full.
 */
import { assert, describe, it } from "@effect/vitest"
import { LinkNode, Output } from "@pure-link/link"
import { ForkedOutbox, Input, InvalidPeerKey, StreamType, WrongOutbox } from "@pure-link/link"
import { recordOverhead, StoreError } from "@pure-link/ports"
import { InboxMemory, OutboxMemory } from "@pure-link/store"
import { RefusalReason } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import {
  blobs,
  device,
  deviceNode,
  Dice,
  hub,
  hubAddress,
  hubPeer,
  identities,
  manySizes,
  numbers,
  outbox,
  play,
  sameRecords,
  take
} from "./world.ts"

describe("what stands in the way", () => {
  const Number_ = StreamType.make("blobs", Schema.Struct({ n: Schema.Finite }))

  it("is told as Refused while the input is missing, and ends by itself when it appears", () => {
    play(
      Effect.gen(function* () {
        const receiving = yield* Effect.forkChild(
          Effect.gen(function* () {
            yield* Effect.sleep(5_000)
            yield* Input.open(blobs)
            yield* Effect.sleep(10_000)
            return yield* (yield* LinkNode).counters
          }).pipe(Effect.scoped, Effect.provide(hub()))
        )
        yield* Effect.gen(function* () {
          const output = yield* Output.open(blobs, device)
          const states: Array<string> = []
          yield* Effect.forkScoped(
            Stream.runForEach(output.changes, (state) => Effect.sync(() => states.push(state._tag)))
          )
          yield* Effect.yieldNow // the first state is taken before it changes
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
      })
    )
  })

  it("is told as Refused for another shape, and for a source that the key may not use", () => {
    const peers = [{ publicKey: identities.device.publicKey, sources: ["device"] }]
    play(
      Effect.gen(function* () {
        yield* Input.open(blobs)
        const refusalOf = <A>(type: StreamType<A>, source: string, value: A) =>
          Effect.gen(function* () {
            const output = yield* Output.open(type, { source, peer: hubPeer })
            yield* output.append(value)
            return yield* output.changes.pipe(
              Stream.filter((state) => state._tag === "Refused"),
              Stream.map(({ reason }) => reason),
              Stream.take(1),
              Stream.runCollect
            )
          }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(type, { source })]))
        assert.deepStrictEqual(yield* refusalOf(Number_, "device", { n: 1 }), [RefusalReason.otherShape])
        assert.deepStrictEqual(yield* refusalOf(blobs, "other", Uint8Array.of(1)), [RefusalReason.sourceNotAllowed])
      }).pipe(Effect.scoped, Effect.provide(hub({ peers })))
    )
  })

  it("is told as Silent, with what to check, when nobody answers for 10 s, and ends when somebody does", () => {
    play(
      Effect.gen(function* () {
        const output = yield* Output.open(blobs, device)
        const receipt = yield* output.append(Uint8Array.of(1))
        yield* Effect.sleep(9_000)
        assert.strictEqual((yield* output.state)._tag, "Sending")
        yield* Effect.sleep(2_000)
        const state = yield* output.state
        assert.strictEqual(state._tag, "Silent")
        if (state._tag === "Silent") {
          const keys = [identities.hub, identities.device].map(({ publicKey }) =>
            Buffer.from(publicKey).toString("base64url")
          )
          for (const text of ["hub:4600", ...keys]) assert.include(state.remedy, text)
        }
        yield* Effect.forkScoped(Effect.provide(Effect.scoped(take(blobs, 2)), hub()))
        yield* receipt.stored
        yield* Effect.sleep(1)
        assert.strictEqual((yield* output.state)._tag, "Idle")
        assert.deepInclude((yield* (yield* LinkNode).counters).events, { OutputSilent: 1, OutputAnswered: 1 })
      }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
    )
  })

  it("may be an address that is found later, and another one after silence", () => {
    play(
      Effect.gen(function* () {
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
      }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
    )
  })

  it("may be a copied outbox, which stops for good with a typed error and keeps what it holds", () => {
    const original = new OutboxMemory.Backing()
    const send = <A, E>(backing: OutboxMemory.Backing, body: (output: Output<Uint8Array>) => Effect.Effect<A, E>) =>
      Effect.flatMap(Output.open(blobs, device), body).pipe(
        Effect.scoped,
        Effect.provide([deviceNode(), outbox(blobs, { backing })])
      )
    play(
      Effect.gen(function* () {
        yield* Input.open(blobs)
        yield* send(original, (output) => Effect.andThen(output.append(Uint8Array.of(1)), output.drained))
        const copy = original.copy()
        yield* send(original, (output) =>
          Effect.andThen(output.appendAll([Uint8Array.of(2), Uint8Array.of(3)]), output.drained)
        )
        yield* send(copy, (output) =>
          Effect.gen(function* () {
            const receipt = yield* output.append(Uint8Array.of(9))
            const error = yield* Effect.flip(receipt.stored)
            assert.instanceOf(error, ForkedOutbox)
            assert.match(error.message, /make a new outbox/)
            assert.instanceOf(yield* Effect.flip(output.append(Uint8Array.of(10))), ForkedOutbox)
            assert.strictEqual((yield* output.state)._tag, "Forked")
            assert.instanceOf(yield* Effect.flip(output.drained), ForkedOutbox)
          })
        )
        assert.deepStrictEqual(
          copy.records.held().map(({ bytes }) => bytes),
          [Uint8Array.of(9)]
        )
      }).pipe(Effect.scoped, Effect.provide(hub()))
    )
  })

  it("may be a mistake that is told when the output is opened", () => {
    play(
      Effect.gen(function* () {
        const open = (options: Parameters<typeof Output.open>[1]) => Effect.flip(Output.open(blobs, options))
        assert.instanceOf(yield* open({ source: "other", peer: hubPeer }), WrongOutbox)
        assert.instanceOf(
          yield* open({ source: "device", peer: { ...hubPeer, publicKey: new Uint8Array(31) } }),
          InvalidPeerKey
        )
        assert.instanceOf(
          yield* open({ source: "device", peer: { ...hubPeer, publicKey: new Uint8Array(32) } }),
          InvalidPeerKey
        )
        assert.strictEqual((yield* open({ source: "", peer: hubPeer }))._tag, "InvalidName")
        assert.deepStrictEqual((yield* (yield* LinkNode).counters).outputs, [])
      }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
    )
  })
})

describe("stores", () => {
  it("that are full hold back those who append until records were STORED", () => {
    play(
      Effect.gen(function* () {
        const output = yield* Output.open(blobs, device)
        let appended = 0
        const appending = yield* Effect.forkChild(
          Effect.forEach(numbers(100), () => Effect.map(output.append(new Uint8Array(1_000)), () => void appended++), {
            discard: true
          })
        )
        yield* Effect.sleep(1_000)
        assert.strictEqual(appended, 10)
        yield* Effect.forkScoped(Effect.provide(Effect.scoped(take(blobs, 1_000)), hub()))
        yield* Fiber.join(appending)
        assert.strictEqual((yield* output.drained).through, 100)
      }).pipe(
        Effect.scoped,
        Effect.provide([deviceNode(), outbox(blobs, { limitBytes: 10 * (1_000 + recordOverhead) })])
      )
    )
  })

  it("that are slow delay STORED and no acknowledgement: nothing is sent twice", () => {
    play(
      Effect.gen(function* () {
        yield* Input.open(blobs)
        yield* Effect.gen(function* () {
          const output = yield* Output.open(blobs, device)
          for (let i = 0; i < 20; i++) {
            yield* output.appendAll(numbers(10).map(() => new Uint8Array(500)))
            yield* Effect.sleep(20)
          }
          yield* output.drained
          const { counters } = (yield* (yield* LinkNode).counters).outputs[0]!
          assert.strictEqual(counters["recordBytesSent"], 200 * 500)
        }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
      }).pipe(Effect.scoped, Effect.provide(hub({ beforeCommit: Effect.sleep(700) })))
    )
  })

  it("that fail for a while lose nothing, and are told of once", () => {
    let full = true
    const error = new StoreError({ reason: "full", file: "inbox", detail: "no space left", remedy: "make room" })
    const sent = manySizes(new Dice(5), 100)
    play(
      Effect.gen(function* () {
        const receiving = yield* Effect.forkChild(take(blobs, sent.length))
        yield* Effect.gen(function* () {
          const output = yield* Output.open(blobs, device)
          yield* output.appendAll(sent)
          yield* Effect.sleep(20_000)
          assert.strictEqual(yield* output.storedThrough, 0)
          full = false
          yield* output.drained
        }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
        sameRecords(yield* Fiber.join(receiving), sent)
        assert.deepInclude((yield* (yield* LinkNode).counters).events, { StoreTrouble: 1, StoreWorks: 1 })
      }).pipe(
        Effect.scoped,
        Effect.provide(hub({ beforeCommit: Effect.suspend(() => (full ? Effect.fail(error) : Effect.void)) }))
      )
    )
  })

  it("are confirmed too early when that fault is switched on, which these tests would notice", () => {
    const faulty = hub({ beforeCommit: Effect.sleep(60_000), node: { faults: { storedBeforeCommit: true } } })
    play(
      Effect.gen(function* () {
        const input = yield* Input.open(blobs)
        yield* Effect.gen(function* () {
          const output = yield* Output.open(blobs, device)
          yield* Effect.timeout((yield* output.append(Uint8Array.of(1))).stored, "5 seconds")
          assert.strictEqual(yield* input.lastPosition, 0)
        }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
      }).pipe(Effect.scoped, Effect.provide(faulty))
    )
  })

  it("group what came from many senders into few transactions", () => {
    const backing = new InboxMemory.Backing()
    const sources = numbers(30).map((index) => `device-${index}`)
    play(
      Effect.gen(function* () {
        const receiving = yield* Effect.forkChild(take(blobs, 30))
        yield* Effect.forEach(
          sources,
          (source) =>
            Effect.gen(function* () {
              const output = yield* Output.open(blobs, { source, peer: hubPeer })
              yield* output.append(Uint8Array.of(1))
              yield* output.drained
            }).pipe(Effect.scoped, Effect.provide(outbox(blobs, { source }))),
          { concurrency: "unbounded", discard: true }
        ).pipe(Effect.provide(deviceNode()))
        const records = yield* Fiber.join(receiving)
        assert.deepStrictEqual(records.map(({ source }) => source).toSorted(), sources.toSorted())
        assert.isAtMost(backing.transactions, 10)
      }).pipe(Effect.scoped, Effect.provide(hub({ backing, beforeCommit: Effect.sleep(20) })))
    )
  })
})

/**
 * What a receiver's restart and a peer's move cost a stream, with a memo and without: over the network, in simulated time
 * (spec §12, §13).
 */
import { assert, describe, it } from "@effect/vitest"
import { Input, Inputs, LinkNode, Output } from "@pure-link/link"
import type { Memo } from "@pure-link/ports"
import { InboxMemory, makeMemoMemory } from "@pure-link/store"
import { VirtualNetwork } from "@pure-link/virtual-net"
import { type Address, RefusalReason } from "@pure-link/wire"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import {
  badLink,
  blobs,
  device,
  deviceNode,
  Dice,
  hub,
  hubAddress,
  hubPeer,
  identities,
  inputs,
  manySizes,
  node,
  outbox,
  play,
  sameRecords,
  take
} from "./world.ts"

type HubOptions = NonNullable<Parameters<typeof hub>[0]>

/** A hub that declares the input, until it is interrupted; gives its counters when it is asked. */
const up = (options: HubOptions) =>
  Effect.forkScoped(Effect.andThen(Input.open(blobs), Effect.never).pipe(Effect.scoped, Effect.provide(hub(options))))

const oneWay = 10_000
const roundTrip = 2 * oneWay

/** Sends one record to a hub, restarts the hub, sends another, and tells what that cost. */
const acrossRestart = (first: HubOptions, second: HubOptions) =>
  play(
    Effect.gen(function* () {
      const output = yield* Output.open(blobs, device)
      const former = yield* up(first)
      yield* (yield* output.append(Uint8Array.of(1))).stored
      // Long enough that the next packet carries STREAM again (spec §3.7): else the restarted hub has to ask for it.
      yield* Effect.sleep(4_000)
      yield* Fiber.interrupt(former)
      const before = yield* (yield* LinkNode).counters
      const nanos = Effect.map(Clock.Clock, (clock) => clock.monotonicTimeNanosUnsafe())
      return yield* Effect.gen(function* () {
        yield* Input.open(blobs)
        const hubNode = yield* LinkNode
        const begun = yield* nanos
        yield* (yield* output.append(Uint8Array.of(2))).stored
        const micros = Number((yield* nanos) - begun) / 1_000
        yield* Effect.sleep(2_000)
        const { receiver } = yield* hubNode.counters
        return { micros, receiver: receiver!, before: before.outputs[0]!.counters }
      }).pipe(
        Effect.scoped,
        Effect.provide(hub(second)),
        Effect.flatMap((cost) =>
          Effect.map(
            Effect.flatMap(LinkNode, ({ counters }) => counters),
            ({ events, outputs }) => ({
              ...cost,
              events,
              agreements: outputs[0]!.counters["keyAgreements"]! - cost.before["keyAgreements"]!
            })
          )
        )
      )
    }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)])),
    { link: { delayMicros: oneWay } }
  )

describe("a receiver's restart", () => {
  it("with its memo costs one round trip: no LOST, no key agreement, no fresh run", () => {
    const [backing, memo] = [new InboxMemory.Backing(), makeMemoMemory()]
    const { agreements, events, micros, receiver } = acrossRestart({ backing, memo }, { backing, memo })
    assert.isBelow(micros, roundTrip + 5_000)
    assert.deepInclude(receiver, { lostSent: 0, keyAgreements: 0, runsRestored: 1, recordsStored: 1 })
    assert.strictEqual(agreements, 0)
    assert.notProperty(events, "RunLost")
    assert.notProperty(events, "SilentRecovery")
  })

  it("without a memo costs a LOST and a fresh run, and no waiting", () => {
    const backing = new InboxMemory.Backing()
    const { events, micros, receiver } = acrossRestart({ backing }, { backing })
    assert.isAbove(micros, 2 * roundTrip - 1)
    assert.isBelow(micros, 2 * roundTrip + 10_000)
    assert.deepInclude(receiver, { lostSent: 1, runsRestored: 0, recordsStored: 1 })
    assert.isAbove(receiver["keyAgreements"]!, 0)
    assert.deepInclude(events, { RunLost: 1 })
    assert.notProperty(events, "SilentRecovery")
  })

  it("with a memo from before the run costs the same", () => {
    const [backing, memo] = [new InboxMemory.Backing(), makeMemoMemory()]
    const old = memo.copy()
    const { events, receiver } = acrossRestart({ backing, memo }, { backing, memo: old })
    assert.deepInclude(receiver, { lostSent: 1, runsRestored: 0 })
    assert.deepInclude(events, { RunLost: 1 })
  })

  const memos: ReadonlyArray<readonly [name: string, seed: number, of: () => Memo["Service"] | undefined]> = [
    ["without a memo", 21, () => undefined],
    ["with a memo", 22, keeping()],
    ["with a memo that is an old copy every other time", 23, keeping(true)]
  ]
  it.for(memos)("at any moment loses and repeats nothing, %s", ([, seed, memoOf]) => {
    const dice = new Dice(seed)
    const backing = new InboxMemory.Backing()
    const sent = manySizes(dice, 200)
    play(
      Effect.gen(function* () {
        const sending = yield* Effect.gen(function* () {
          const output = yield* Output.open(blobs, device)
          for (let i = 0; i < sent.length; i += 5) {
            yield* output.appendAll(sent.slice(i, i + 5))
            yield* Effect.sleep(100)
          }
          yield* output.drained
        }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]), Effect.forkChild)
        while (sending.pollUnsafe() === undefined) {
          const life = yield* up({ backing, memo: memoOf() })
          yield* Effect.raceFirst(Fiber.await(sending), Effect.sleep(500 + dice.below(3_000)))
          yield* Fiber.interrupt(life)
        }
        yield* Fiber.join(sending)
        sameRecords(yield* Effect.provide(Effect.scoped(take(blobs, sent.length)), hub({ backing })), sent)
      }),
      { seed, link: badLink }
    )
  })
})

/** One memo for all lives of a hub; or now and then what a backup of it gives. */
const keeping = (withBackups = false) => {
  let memo = makeMemoMemory()
  let backup = memo
  let life = 0
  return () => {
    if (!withBackups) return memo
    if (life++ % 2 === 1) memo = backup.copy()
    else backup = memo.copy()
    return memo
  }
}

describe("a memo", () => {
  const eventsOf = (memo: Memo["Service"]) =>
    play(
      Effect.gen(function* () {
        yield* Input.open(blobs)
        const told: Array<string> = []
        const { counters, events } = yield* LinkNode
        yield* Effect.forkScoped(Stream.runForEach(events, ({ message }) => Effect.sync(() => told.push(message))))
        yield* Effect.gen(function* () {
          const output = yield* Output.open(blobs, device)
          yield* output.append(Uint8Array.of(1))
          yield* output.drained
          yield* Effect.sleep(1_000)
          full = false
          yield* output.append(Uint8Array.of(2))
          yield* output.drained
          yield* Effect.sleep(1_000)
        }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
        return { told, counts: (yield* counters).events }
      }).pipe(Effect.scoped, Effect.provide(hub({ memo, node: { epochLimits: { lifetimeMicros: 500_000 } } })))
    )
  let full = false

  it("that could not be used is told of in one line, with what it means", () => {
    const rebuilt = "hub.memo: the memo was made anew: its header is damaged"
    const { counts } = eventsOf({ ...makeMemoMemory(), rebuilt })
    assert.deepInclude(counts, { MemoRebuilt: 1 })
    assert.notProperty(eventsOf(makeMemoMemory()).counts, "MemoRebuilt")
  })

  it("that cannot be written is told of once, and stops no stream", () => {
    full = true
    const { memo } = makeMemoMemory()
    const failing = {
      recall: (key: Uint8Array) => memo.recall(key),
      keepPeer: (key: Uint8Array, secret: Uint8Array) => !full && memo.keepPeer(key, secret),
      keepRun: (...args: Parameters<typeof memo.keepRun>) => !full && memo.keepRun(...args),
      forgetRun: () => {},
      forgetPeer: () => {}
    }
    const { counts, told } = eventsOf({ ...makeMemoMemory(), memo: failing })
    assert.deepInclude(counts, { MemoTrouble: 1 })
    assert.isTrue(told.some((message) => /takes no more secrets.*nothing is lost.*raise its capacity/.test(message)))
  })
})

describe("an epoch", () => {
  it("ends when the node's limits say so, and the stream goes on", () => {
    const epochLimits = { packets: 50, mostPackets: 400 }
    const sent = manySizes(new Dice(3), 600)
    play(
      Effect.gen(function* () {
        const receiving = yield* Effect.forkScoped(take(blobs, sent.length))
        yield* Effect.gen(function* () {
          const output = yield* Output.open(blobs, device)
          for (let i = 0; i < sent.length; i += 20) {
            yield* output.appendAll(sent.slice(i, i + 20))
            yield* Effect.sleep(100)
          }
          yield* output.drained
          const { events } = yield* (yield* LinkNode).counters
          assert.isAbove(events["EpochAdvanced"]!, 5)
        }).pipe(Effect.scoped, Effect.provide([deviceNode({ epochLimits }), outbox(blobs)]))
        sameRecords(yield* Fiber.join(receiving), sent)
      }).pipe(Effect.scoped, Effect.provide(hub({ node: { epochLimits } }))),
      { link: { delayMicros: 5_000 } }
    )
  })

  it("that no node may have keeps it from opening", () => {
    const open = Effect.exit(Effect.provide(Effect.void, deviceNode({ epochLimits: { packets: 0 } })))
    assert.match(String(play(open)), /offered after 1 packet at least/)
  })
})

describe("a peer that moved", () => {
  const elsewhere = { host: "elsewhere", port: 4600 }
  /** The same hub, on another host. */
  const upElsewhere = (options: HubOptions) =>
    Effect.forkScoped(
      Effect.andThen(Input.open(blobs), Effect.never).pipe(
        Effect.scoped,
        Effect.provide(
          inputs(options).pipe(Layer.provideMerge(node("elsewhere", identities.hub, { listen: elsewhere })))
        )
      )
    )
  /** An output whose hub moves after its first record; `found` is where its name leads. */
  const moving = (found: { address: Address }) =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const { events } = yield* LinkNode
      yield* Effect.forkScoped(Stream.runForEach(events, ({ message }) => Effect.sync(() => lines.push(message))))
      const stores = { backing: new InboxMemory.Backing(), memo: makeMemoMemory() }
      const former = yield* up(stores)
      const address = Effect.sync(() => found.address)
      const output = yield* Output.open(blobs, { source: "device", peer: { ...hubPeer, address } })
      yield* (yield* output.append(Uint8Array.of(1))).stored
      yield* Fiber.interrupt(former)
      yield* upElsewhere(stores)
      return { output, lines, stores }
    })

  it.effect("is followed when its name leads elsewhere after silence", () =>
    Effect.gen(function* () {
      const found = { address: hubAddress }
      const playing = yield* Effect.forkChild(
        Effect.gen(function* () {
          const { lines, output } = yield* moving(found)
          const receipt = yield* output.append(Uint8Array.of(2))
          yield* Effect.sleep(20_000)
          assert.strictEqual((yield* output.state)._tag, "Silent")
          found.address = elsewhere
          const begun = yield* Clock.currentTimeMillis
          yield* receipt.stored
          assert.isBelow((yield* Clock.currentTimeMillis) - begun, 31_000)
          yield* Effect.sleep(100)
          assert.strictEqual((yield* output.state)._tag, "Idle")
          const { events } = yield* (yield* LinkNode).counters
          assert.deepInclude(events, { AddressFound: 2, PathChanged: 1, OutputSilent: 1, OutputAnswered: 1 })
          assert.include(lines, `"device" → "blobs" goes to elsewhere:4600, no longer to hub:4600`)
        }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
      )
      // In steps: time must not run away before the first fiber sleeps.
      for (let step = 0; step < 700; step++) yield* TestClock.adjust("100 millis")
      yield* Fiber.join(playing)
    }).pipe(
      Effect.provide(VirtualNetwork.layer({ seed: 4, link: { delayMicros: oneWay } })),
      Effect.provideService(References.MinimumLogLevel, "None")
    )
  )

  it("is followed at once when the application says where to", () => {
    play(
      Effect.gen(function* () {
        const { lines, output, stores } = yield* moving({ address: hubAddress })
        const receipt = yield* output.append(Uint8Array.of(2))
        yield* Effect.sleep(3_000)
        assert.strictEqual(yield* output.storedThrough, 1)
        yield* output.redirect(elsewhere)
        yield* output.redirect({ ...elsewhere })
        const begun = yield* Clock.currentTimeMillis
        yield* receipt.stored
        assert.isBelow((yield* Clock.currentTimeMillis) - begun, 100)
        yield* output.append(Uint8Array.of(3))
        yield* output.drained
        yield* Effect.sleep(100)
        const { events } = yield* (yield* LinkNode).counters
        assert.deepInclude(events, { OutputRedirected: 1, PathChanged: 1, AddressFound: 1 })
        assert.include(lines, `"device" → "blobs" goes to elsewhere:4600, no longer to hub:4600`)
        assert.deepStrictEqual(stores.backing.logs.get("blobs")?.lastPosition, 3)
      }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)])),
      { link: { delayMicros: oneWay } }
    )
  })

  it("is found when the application knows where before any look-up did", () => {
    play(
      Effect.gen(function* () {
        yield* upElsewhere({})
        // No host at first; later the old one, which the application knows better than.
        let lookUps = 0
        const address = Effect.suspend(() =>
          ++lookUps < 3 ? Effect.fail(new Error("no such host")) : Effect.succeed(hubAddress)
        )
        const output = yield* Output.open(blobs, { source: "device", peer: { ...hubPeer, address } })
        const receipt = yield* output.append(Uint8Array.of(1))
        yield* Effect.sleep(100)
        assert.strictEqual((yield* output.state)._tag, "Resolving")
        yield* output.redirect(elsewhere)
        yield* receipt.stored
        yield* Effect.sleep(10_000)
        assert.isAtLeast(lookUps, 3)
        yield* output.append(Uint8Array.of(2))
        yield* output.drained
        const { events } = yield* (yield* LinkNode).counters
        assert.deepStrictEqual([events["OutputRedirected"], events["AddressFound"]], [1, undefined])
      }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
    )
  })
})

describe("a stream whose outboxes were replaced 64 times", () => {
  it("takes no new one until an operator lets the old ones be forgotten, and then without a restart", () => {
    const send = Effect.gen(function* () {
      const output = yield* Output.open(blobs, device)
      const receipt = yield* output.append(Uint8Array.of(1))
      yield* Effect.raceFirst(receipt.stored, Effect.sleep(15_000))
      return yield* output.state
    }).pipe(Effect.scoped, Effect.provide([deviceNode(), outbox(blobs)]))
    const backing = new InboxMemory.Backing()
    const replace = (times: number) =>
      Effect.gen(function* () {
        yield* Input.open(blobs)
        for (let outbox = 0; outbox < times; outbox++) assert.strictEqual((yield* send)._tag, "Idle")
      })
    play(
      Effect.gen(function* () {
        // In two lives of the hub, for it has room for 64 live runs of a key, whatever became of their outboxes.
        yield* Effect.provide(Effect.scoped(replace(40)), hub({ backing }))
        yield* Effect.gen(function* () {
          yield* replace(25)
          const { forgetRetired } = yield* Inputs
          const refused = yield* send
          assert.strictEqual(refused._tag === "Refused" && refused.reason, RefusalReason.retiredGeneration)
          const waiting = yield* Effect.forkScoped(send)
          yield* Effect.sleep(5_000)
          assert.strictEqual(yield* forgetRetired({ source: "device", input: "blobs" }), 64)
          assert.strictEqual((yield* Fiber.join(waiting))._tag, "Idle")
          assert.strictEqual(yield* forgetRetired({ source: "device", input: "other" }), 0)
        }).pipe(Effect.scoped, Effect.provide(hub({ backing })))
      }),
      { link: { delayMicros: 5_000 } }
    )
  })
})

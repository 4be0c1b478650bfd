/**
 * A receiver that moves with its files to another address: its senders are told, or find out by looking its name up
 * again (spec §13).
 */
import { assert, describe, it } from "@effect/vitest"
import { Input, Output } from "@pure-link/link"
import { InboxMemory, makeMemoMemory } from "@pure-link/store"
import { VirtualNetwork } from "@pure-link/virtual-net"
import type { Address, Micros } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { appendSizes, device, hub, hubAddress, hubKeys, millisecond, outbox, play, readings, second } from "./nodes.ts"
import { alike, checkRecord } from "../world/record.ts"

const records = 1_500
const link = { delayMicros: 50 * millisecond }
const elsewhere: Address = { host: "elsewhere", port: 4_700 }

/** The hub is stopped in mid-transfer and started elsewhere, with its inbox and, if it has one, its memo. */
const move = (seed: number, how: "told" | "looked up", withMemo: boolean) =>
  Effect.gen(function* () {
    const network = yield* VirtualNetwork
    network.bottleneck("line", { rateBitsPerSecond: 3e6, queueBytes: 64_000 })
    network.configure("device", "hub", { bottleneck: "line" })
    network.configure("device", elsewhere.host, { bottleneck: "line" })
    const backing = new InboxMemory.Backing()
    const memo = makeMemoMemory()
    let address = hubAddress
    let lookUps = 0
    const lookUp = Effect.sync(() => {
      lookUps++
      return address
    })
    const first = yield* Effect.forkChild(
      Effect.andThen(Input.open(readings), Effect.never).pipe(
        Effect.scoped,
        Effect.provide(hub(seed, { backing }, { memo: memo }))
      )
    )
    return yield* Effect.gen(function* () {
      const peer = { publicKey: hubKeys.publicKey, address: how === "told" ? hubAddress : lookUp }
      const output = yield* Output.open(readings, { source: "device", peer })
      yield* appendSizes(output, 1, alike(records, 700))
      yield* Effect.sleep(2_000)
      yield* Fiber.interrupt(first)
      const stored = backing.streams[0]!.n
      assert.isAbove(stored, 0)
      assert.isBelow(stored, records)
      address = elsewhere
      const movedAt = network.now()
      const second = yield* Effect.forkChild(
        Effect.gen(function* () {
          const input = yield* Input.open(readings)
          const all = input.from(0).pipe(Stream.flatMap(({ records }) => Stream.fromIterable(records)))
          return yield* Effect.tap(Stream.runCollect(Stream.take(all, records)), Effect.sleep(1_000))
        }).pipe(
          Effect.scoped,
          Effect.provide(
            hub(seed + 1_000, { backing }, { address: elsewhere, memo: withMemo ? memo.copy() : makeMemoMemory() })
          )
        )
      )
      yield* Effect.sleep(1_000)
      if (how === "told") yield* output.redirect(elsewhere)
      const toldAt = network.now()
      while ((yield* output.storedThrough) <= stored) {
        const ended = second.pollUnsafe()
        if (ended !== undefined) yield* ended
        assert.isBelow(network.now(), movedAt + 120_000 * millisecond, `${how}: no STORED`)
        yield* Effect.sleep(1)
      }
      const resumed = network.now() - (how === "told" ? toldAt : movedAt)
      yield* output.drained
      const received = yield* Fiber.join(second)
      received.forEach(({ number, value }, i) => {
        assert.strictEqual(number, i + 1)
        checkRecord(number, value, 0, 700)
      })
      return { resumed, lookUps, received: received.length }
    }).pipe(Effect.scoped, Effect.provide([device(seed), outbox(seed, "device")]))
  })

describe("a receiver that moved", () => {
  const bars: Record<string, Micros> = { told: second, "looked up": 41 * second }
  for (const how of ["told", "looked up"] as const) {
    for (const withMemo of [true, false]) {
      it(`is found by a sender that ${how === "told" ? "was told" : "looks its name up"}, ${withMemo ? "with" : "without"} its memo`, () => {
        const all = [1, 2].map((seed) => play({ seed, link }, move(seed, how, withMemo)))
        const most = Math.max(...all.map(({ resumed }) => resumed))
        const told =
          `moved receiver, address ${how}, ${withMemo ? "with" : "without"} memo: STORED again after at most ` +
          `${(most / second).toFixed(3)} s, ${Math.max(...all.map(({ lookUps }) => lookUps))} look-ups, ` +
          `${all[0]!.received} records without a gap or a duplicate`
        console.log(told)
        assert.isAtMost(most, bars[how]!, told)
      })
    }
  }
})

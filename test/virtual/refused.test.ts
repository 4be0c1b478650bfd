/**
 * A refused stream is quiet (spec §9.10): what leaves its node is counted datagram by datagram, in virtual time.
 */
import { assert, describe, it } from "@effect/vitest"
import { Input, LinkNode, Output, StreamType } from "@pure-link/link"
import { OutboxMemory } from "@pure-link/store"
import { VirtualNetwork } from "@pure-link/virtual-net"
import { initialWindow } from "@pure-link/recovery"
import { type Bytes, type Micros, RefusalReason, smallestDatagram } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import {
  appendSizes,
  device,
  deviceKeys,
  hub,
  millisecond,
  node,
  outbox,
  play,
  readings,
  second,
  SentPackets,
  toHub,
  watchLeaving
} from "./nodes.ts"
import { alike, checkRecord } from "../world/record.ts"

const roundTrip: Micros = 100 * millisecond
const link = { delayMicros: roundTrip / 2 }
/** When tries are due after the refusal began (spec §9.10). */
const tries = [1, 3, 7, 15, 31, 63].map((at) => at * second)
const sizes = alike(200, 61)

interface Leaving {
  readonly at: Micros
  readonly bytes: Bytes
  readonly recordBytes: Bytes
}

/** What left from the moment of the first packet, packet by packet: every datagram on the wire is one of them. */
const leavingOf = (
  trace: SentPackets,
  wire: ReadonlyArray<{ readonly at: Micros; readonly bytes: Bytes }>,
  from: Micros
) => {
  assert.deepStrictEqual(
    wire.map(({ at, bytes }) => ({ at, bytes })),
    trace.events.map(({ at, bytes }) => ({ at, bytes })),
    "every datagram that leaves is a packet of the trace"
  )
  return trace.events.filter(({ at }) => at >= from).map(({ at, ...rest }): Leaving => ({ ...rest, at: at - from }))
}

/**
 * The bar of the issue; returns the figures. `tellable`: the first packet that can be refused, after the first of all;
 * only a run that goes live can be one too many, which is a round trip later (spec §12.4).
 */
const judge = (leaving: ReadonlyArray<Leaving>, tellable: Micros = 0): string => {
  const known = tellable + roundTrip
  const atOnce = leaving.filter(({ at }) => at < roundTrip).reduce((sum, { bytes }) => sum + bytes, 0)
  const later = leaving.filter(({ at }) => at >= known && at < tellable + 90 * second)
  const withRecords = later.filter(({ recordBytes }) => recordBytes > 0)
  const others = later.length - withRecords.length
  const times = withRecords.map(({ at }) => ((at - tellable) / second).toFixed(3)).join(", ")
  const figures = `${atOnce} B at 0 s; a packet with records at ${times} s; ${others} others`
  assert.isAtMost(atOnce, initialWindow(smallestDatagram), figures)
  assert.strictEqual(withRecords.length, tries.length, figures)
  for (const [i, due] of tries.entries()) {
    assert.isAtLeast(withRecords[i]!.at, tellable + due, figures)
    assert.isAtMost(withRecords[i]!.at, known + due, figures)
  }
  assert.isAtMost(others, 2, figures)
  return figures
}

/** Opens an output, appends 200 records and watches for 90 s; `alter` may change the world while it lasts. */
const watchRefused = (seed: number, options: Parameters<typeof outbox>[2] & { readonly source?: string } = {}) =>
  Effect.gen(function* () {
    const { source = "device", type = readings } = options
    const network = yield* VirtualNetwork
    const trace = new SentPackets()
    const wire = watchLeaving(network, "device")
    return yield* Effect.gen(function* () {
      const output = yield* Output.open(type, { source, peer: toHub })
      const start = network.now()
      yield* appendSizes(output, 1, sizes)
      yield* Effect.sleep(91_000)
      const state = yield* output.state
      assert.strictEqual(state._tag, "Refused")
      return { leaving: leavingOf(trace, wire, start), reason: state._tag === "Refused" ? state.reason : undefined }
    }).pipe(Effect.scoped, Effect.provide([device(seed, { trace }), outbox(seed, source, options)]))
  })

type Refused = Effect.Success<ReturnType<typeof watchRefused>>

/** Two outboxes of one stream: the second one's records retire the first, which goes on sending. */
const retireFirst = (seed: number) =>
  Effect.gen(function* () {
    yield* Input.open(readings)
    const backing = new OutboxMemory.Backing()
    const send = (seed: number, backing: OutboxMemory.Backing) =>
      Effect.gen(function* () {
        const output = yield* Output.open(readings, { source: "device", peer: toHub })
        yield* appendSizes(output, 1, [10])
        yield* output.drained
      }).pipe(Effect.scoped, Effect.provide([device(seed), outbox(seed, "device", { backing })]))
    yield* send(seed + 1_000, backing)
    yield* Effect.sleep(20_000)
    yield* send(seed + 2_000, new OutboxMemory.Backing())
    return yield* watchRefused(seed, { backing })
  })

/** A peer's 64 live runs are taken; the next output is one too many. */
const crowd = (seed: number) =>
  Effect.gen(function* () {
    yield* Input.open(readings)
    const taken = Effect.forEach(
      Array.from({ length: 64 }, (_, i) => `source-${i}`),
      (source, i) =>
        Effect.gen(function* () {
          const output = yield* Output.open(readings, { source, peer: toHub })
          yield* appendSizes(output, 1, [10])
          yield* output.drained
        }).pipe(Effect.provide(outbox(seed + 3_000 + i, source))),
      { discard: true }
    ).pipe(Effect.provide(node(deviceKeys, { host: "crowd", port: 4_000 }, seed + 3_000)))
    yield* taken
    return yield* watchRefused(seed)
  })

const others: ReadonlyArray<readonly [RefusalReason, string, (seed: number) => Effect.Effect<Refused, unknown, any>]> =
  [
    [
      RefusalReason.otherShape,
      "the input has another shape",
      (seed) => Effect.andThen(Input.open(StreamType.bytes("readings", "another")), watchRefused(seed))
    ],
    [
      RefusalReason.sourceNotAllowed,
      "its key may not send as that source",
      (seed) => Effect.andThen(Input.open(readings), watchRefused(seed, { source: "somebody" }))
    ],
    [RefusalReason.retiredGeneration, "its outbox was replaced", retireFirst],
    [RefusalReason.tooManyRuns, "its peer has 64 live runs", crowd]
  ]

describe("a refused stream", () => {
  it.for([1, 2, 3])("is quiet when its input does not exist (seed %i)", (seed) => {
    const { leaving, reason } = play({ seed, link }, watchRefused(seed).pipe(Effect.provide(hub(seed))))
    assert.strictEqual(reason, RefusalReason.noSuchInput)
    console.log(`refused, reason 1, seed ${seed}: ${judge(leaving)}`)
  })

  it.for(others)("is quiet for reason %i: %s", ([reason, , program]) => {
    const peers = [{ publicKey: deviceKeys.publicKey, sources: reason === 3 ? ["device"] : ("any" as const) }]
    const seed = reason
    const refused = play({ seed, link }, program(seed).pipe(Effect.scoped, Effect.provide(hub(seed, {}, { peers }))))
    assert.strictEqual(refused.reason, reason)
    console.log(`refused, reason ${reason}: ${judge(refused.leaving, reason === 7 ? roundTrip : 0)}`)
  })

  it.for([
    ["200 records of 61 B", sizes],
    ["a first record of 1 MiB", [1_048_576, ...sizes.slice(1)]]
  ] as const)("finds an input that appears at 10 s by its try at 15 s: %s", ([name, sizes]) => {
    const seed = 11
    const { found, drained, tries } = play(
      { seed, link },
      Effect.gen(function* () {
        const network = yield* VirtualNetwork
        const opening = yield* Effect.forkChild(
          Effect.gen(function* () {
            yield* Effect.sleep(10_000)
            const input = yield* Input.open(readings)
            const chunks = input.from(0).pipe(Stream.flatMap(({ records }) => Stream.fromIterable(records)))
            return yield* Stream.runCollect(Stream.take(chunks, sizes.length))
          })
        )
        return yield* Effect.gen(function* () {
          const output = yield* Output.open(readings, { source: "device", peer: toHub })
          const start = network.now()
          yield* appendSizes(output, 1, sizes)
          yield* output.changes.pipe(
            Stream.filter((state) => state._tag === "Refused"),
            Stream.take(1),
            Stream.runDrain
          )
          yield* output.changes.pipe(
            Stream.filter((state) => state._tag !== "Refused"),
            Stream.take(1),
            Stream.runDrain
          )
          const found = network.now() - start
          yield* output.drained
          const records = yield* Fiber.join(opening)
          for (const [i, { number, value }] of records.entries()) {
            assert.strictEqual(number, i + 1)
            assert.strictEqual(value.length, sizes[i])
            checkRecord(number, value, 0, value.length)
          }
          const { counters } = (yield* (yield* LinkNode).counters).outputs[0]!
          return { found, drained: network.now() - start, tries: counters["triesSent"]! }
        }).pipe(Effect.scoped, Effect.provide([device(seed), outbox(seed, "device")]))
      }).pipe(Effect.scoped, Effect.provide(hub(seed)))
    )
    const figures =
      `refused until 10 s, ${name}: accepted at ${(found / second).toFixed(3)} s by try ${tries}, ` +
      `all stored at ${(drained / second).toFixed(3)} s`
    console.log(figures)
    assert.strictEqual(tries, 4, figures)
    assert.isAtLeast(found, 15 * second, figures)
    assert.isAtMost(found, 15 * second + 2 * roundTrip, figures)
    assert.isAtMost(drained, 17 * second, figures)
  })
})

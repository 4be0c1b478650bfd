/**
 * A laptop whose lid is closed for ten minutes, on either side, and clocks that are set: in virtual time, with the
 * production node in processes that can be suspended.
 */
import { assert, describe, it } from "@effect/vitest"
import { Input, Output } from "@pure-link/link"
import { type Network, VirtualNetwork } from "@pure-link/virtual-net"
import { type Bytes, largestDatagram, type Micros, smallestDatagram } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import { createHash } from "node:crypto"
import { appendSizes, device, hub, millisecond, outbox, play, readings, second, toHub, Windows } from "./nodes.ts"
import { Process } from "./process.ts"
import { alike } from "../world/record.ts"

const link = { delayMicros: 50 * millisecond }
const roundTrip = 2 * link.delayMicros
const suspension: Micros = 600 * second
/** Records of a drain that the line carries in a second. */
const lineRecords = 1_170
const line = { rateBitsPerSecond: 10e6, queueBytes: 64_000 }

/** What an application appends. */
const feeds = {
  "a drain": (output: Output<Uint8Array>) => Effect.asVoid(appendSizes(output, 1, alike(6_500, 1_013))),
  "a record every 50 ms": (output: Output<Uint8Array>) =>
    Effect.forEach(
      Array.from({ length: 20_000 }, (_, i) => i + 1),
      (number) => Effect.andThen(appendSizes(output, number, [61]), Effect.sleep(50)),
      { discard: true }
    )
} as const

/** Two nodes in processes of their own, and a program beside them that is given the output. */
const twoProcesses = <A, E>(
  seed: number,
  traffic: keyof typeof feeds,
  watch: (world: {
    readonly network: Network
    readonly sending: Process
    readonly receiving: Process
    readonly windows: Windows
    readonly output: Output<Uint8Array>
  }) => Effect.Effect<A, E>
) =>
  Effect.gen(function* () {
    const network = yield* VirtualNetwork
    network.bottleneck("line", line)
    network.configure("device", "hub", { bottleneck: "line" })
    const sending = yield* Process.make
    const receiving = yield* Process.make
    const windows = new Windows()
    const sender = Effect.gen(function* () {
      const output = yield* Output.open(readings, { source: "device", peer: toHub })
      yield* Effect.forkScoped(feeds[traffic](output))
      return yield* sending.beside(watch({ network, sending, receiving, windows, output }))
    }).pipe(
      Effect.scoped,
      Effect.provide([device(seed, { process: sending, trace: windows }), outbox(seed, "device")]),
      sending.run
    )
    return yield* Effect.andThen(Input.open(readings), sender).pipe(
      Effect.scoped,
      Effect.provide(hub(seed, {}, { node: { process: receiving } })),
      receiving.run
    )
  })

interface Figures {
  /** From waking to the first STORED beyond what the sender knew. */
  readonly firstStored: Micros
  /** … and to the first STORED that can be of what was sent since. */
  readonly freshStored: Micros
  /** Records STORED in the second after that. */
  readonly stored: number
  /** What the woken side, and the sender, sent in the first 100 ms. */
  readonly datagrams: number
  readonly senderBytes: Bytes
  readonly window: Bytes
}

/** A process sleeps for ten minutes in the middle of its traffic. */
const suspended = (seed: number, side: "device" | "hub", traffic: keyof typeof feeds) =>
  twoProcesses(seed, traffic, ({ network, output, receiving, sending, windows }) =>
    Effect.gen(function* (): Effect.fn.Return<Figures> {
      yield* Effect.sleep(3_000 + 137 * seed)
      const process = side === "device" ? sending : receiving
      process.suspend()
      yield* Effect.sleep(suspension / 1_000)
      const wokenAt = network.now()
      const known = yield* output.storedThrough
      const before = windows.latest
      const burst = { device: 0, hub: 0, senderBytes: 0 }
      network.tap(({ at, bytes, fate, from }) => {
        if (fate !== "sent" || at > wokenAt + 100 * millisecond) return
        if (from.host === "device") burst.senderBytes += bytes.length
        burst[from.host as "device" | "hub"]++
      })
      process.resume()
      while ((yield* output.storedThrough) === known) {
        assert.isBelow(network.now(), wokenAt + 60 * second, "STORED within a minute of waking")
        yield* Effect.sleep(1)
      }
      const firstStored = network.now() - wokenAt
      yield* Effect.sleep(roundTrip / millisecond - 1)
      const answered = yield* output.storedThrough
      while ((yield* output.storedThrough) === answered) {
        assert.isBelow(network.now(), wokenAt + 60 * second, "STORED within a minute of waking")
        yield* Effect.sleep(1)
      }
      const freshStored = network.now() - wokenAt
      const half = yield* output.storedThrough
      yield* Effect.sleep(1_000)
      const stored = (yield* output.storedThrough) - half
      const window = Math.max(before, windows.largestBetween(wokenAt, wokenAt + 100 * millisecond))
      return { firstStored, freshStored, stored, datagrams: burst[side], senderBytes: burst.senderBytes, window }
    })
  )

const inSeconds = (micros: Micros): string => (micros / second).toFixed(3)

describe("ten minutes of suspend", () => {
  for (const side of ["device", "hub"] as const) {
    for (const traffic of ["a drain", "a record every 50 ms"] as const) {
      it(`of the ${side} end in STORED within 2 s of waking, without a burst: ${traffic}`, () => {
        for (const seed of [1, 2]) {
          const figures = play({ seed, link }, suspended(seed, side, traffic))
          const { firstStored, freshStored, stored, datagrams, senderBytes, window } = figures
          const told =
            `suspend of the ${side}, ${traffic}, seed ${seed}: STORED ${inSeconds(firstStored)} s and anew ` +
            `${inSeconds(freshStored)} s after waking, then ${stored} records in a second; in the first 100 ms ` +
            `${datagrams} datagrams of the woken side, of the sender's ${senderBytes} B of a window of ${window} B`
          console.log(told)
          assert.isAtMost(firstStored, 2 * second, told)
          assert.isAtMost(freshStored, 2 * second, told)
          assert.isAtMost(senderBytes, window + 2 * largestDatagram, told)
          assert.isAtMost(datagrams, window / smallestDatagram + 2, told)
          assert.isAtLeast(stored, traffic === "a drain" ? lineRecords / 2 : 19, told)
        }
      })
    }
  }
})

describe("a wall clock that is set", () => {
  const day = 24 * 3_600_000
  const steps = { "30 days back": -30 * day, "80 years ahead": 80 * 365.25 * day }

  /** All that travels, to the byte and the microsecond, while clocks are set or not; and what the application is told. */
  const course = (step: number) => {
    const hash = createHash("sha256")
    let datagrams = 0
    const watched = twoProcesses(5, "a record every 50 ms", ({ network, output, receiving, sending }) =>
      Effect.gen(function* () {
        network.tap(({ at, bytes, fate, from }) => {
          datagrams++
          hash.update(`${at} ${fate} ${from.host}`).update(bytes)
        })
        yield* Effect.sleep(2_000)
        sending.wallOffsetMillis += step
        yield* Effect.sleep(2_000)
        receiving.wallOffsetMillis += step
        yield* Effect.sleep(30_000)
        sending.wallOffsetMillis = receiving.wallOffsetMillis = 0
        yield* Effect.sleep(5_000)
        return yield* output.storedThrough
      })
    )
    const stored = play({ seed: 5, link: { ...link, loss: 0.05, jitterMicros: 10 * millisecond } }, watched)
    return { datagrams, stored, digest: hash.digest("hex") }
  }

  it("changes nothing that travels", () => {
    const unchanged = course(0)
    assert.isAbove(unchanged.stored, 700)
    for (const [name, step] of Object.entries(steps)) {
      assert.deepStrictEqual(course(step), unchanged, `seed 5, ${name}`)
    }
    console.log(
      `wall clock of both sides set ${Object.keys(steps).join(", ")}: ${unchanged.datagrams} passages of ` +
        `${unchanged.stored} records the same to the byte`
    )
  })
})

import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { FlightRing } from "./flightRing.ts"

/** The readable twin: one Map entry per number that the ring is about. */
class MapOfFlights {
  next = 0
  readonly flights = new Map<number, { bytes: number; state: "in flight" | "lost" | "given up" | "settled" }>()
  readonly size: number

  constructor(size: number) {
    this.size = size
  }

  add(bytes: number): void {
    this.flights.delete(this.next - this.size)
    this.flights.set(this.next++, { bytes, state: "in flight" })
  }

  in(...states: ReadonlyArray<string>): Array<number> {
    return [...this.flights].filter(([, flight]) => states.includes(flight.state)).map(([number]) => number)
  }

  bytes(): number {
    return this.in("in flight").reduce((sum, number) => sum + this.flights.get(number)!.bytes, 0)
  }
}

const listed = (ring: FlightRing, from: number, end: number): Array<number> => {
  const numbers: Array<number> = []
  for (let n = ring.nextOpen(from, end); n < end; n = ring.nextOpen(n + 1, end)) numbers.push(n)
  return numbers
}

const Step = Schema.Struct({
  kind: Schema.Literals([
    "add",
    "add",
    "add",
    "train",
    "settle run",
    "lose",
    "give up",
    "settle",
    "leave window",
    "restart"
  ]),
  pick: Schema.Natural.check(Schema.isLessThan(1_000)),
  length: Schema.Natural.check(Schema.isLessThan(70))
})

/** What a flight must be for a step. */
const states = {
  add: [],
  lose: ["in flight"],
  "give up": ["lost"],
  train: [],
  "settle run": ["in flight"],
  settle: ["in flight", "lost", "given up"],
  "leave window": ["in flight"],
  restart: []
} as const

/** As many flights at once as there is room for. */
const addTrain = (ring: FlightRing, twin: MapOfFlights, length: number, pick: number): void => {
  let count = Math.min(length, ring.room)
  while (count > 0 && twin.in("lost").some((number) => number < ring.next + count - ring.size)) count--
  const lengths = Uint32Array.from({ length: count + 2 }, (_, i) => 1_000 + ((pick + i) % 400))
  ring.addTrain(0, lengths, 1, count + 1)
  for (let i = 1; i <= count; i++) twin.add(lengths[i]!)
}

/** All that follow one another in flight, from one of them on, or the first few. */
const settleRun = (ring: FlightRing, twin: MapOfFlights, pick: number): void => {
  const inFlight = twin.in("in flight")
  const from = inFlight[pick % inFlight.length]
  if (from === undefined) return
  let end = from
  while (end < ring.next && twin.flights.get(end)?.state === "in flight") end++
  assert.strictEqual(ring.endOfRun(from, ring.next), end)
  const bound = from + 1 + (pick % (end - from))
  assert.strictEqual(ring.endOfRun(from, bound), bound)
  ring.settleRun(from, bound)
  for (let number = from; number < bound; number++) twin.flights.get(number)!.state = "settled"
}

/** Takes the step in both; `length` repeats it, so that the ring wraps often. */
const take = (ring: FlightRing, twin: MapOfFlights, step: typeof Step.Type): void => {
  if (step.kind === "restart") {
    // Rarely, or the ring would never wrap.
    if (step.pick % 8 !== 0) return
    ring.restart()
    twin.next = 0
    twin.flights.clear()
    return
  }
  if (step.kind === "leave window") {
    ring.leaveWindow()
    for (const number of twin.in("in flight")) twin.flights.get(number)!.bytes = 0
    return
  }
  if (step.kind === "train") return addTrain(ring, twin, step.length, step.pick)
  if (step.kind === "settle run") return settleRun(ring, twin, step.pick)
  for (let i = 0; i < step.length; i++) {
    const open = twin.in(...states[step.kind])
    const number = open[(step.pick + i) % open.length]
    if (step.kind === "add") {
      if (ring.isFull || ring.isDeclaredLost(ring.next - ring.size)) continue
      ring.add(ring.next * 10, 1_000 + step.pick)
      twin.add(1_000 + step.pick)
    } else if (number !== undefined && step.kind === "lose") {
      ring.declareLost(number, 0)
      twin.flights.get(number)!.state = "lost"
    } else if (number !== undefined && step.kind === "give up") {
      ring.giveUp(number)
      twin.flights.get(number)!.state = "given up"
    } else if (number !== undefined) {
      ring.settle(number)
      twin.flights.get(number)!.state = "settled"
    }
  }
}

describe("FlightRing", () => {
  it.prop(
    "agrees with a map of flights through any steps, wrapping around",
    [Schema.Array(Step)],
    ([steps]) => {
      const ring = new FlightRing(64)
      const twin = new MapOfFlights(64)
      for (const step of steps) {
        take(ring, twin, step)
        const inFlight = twin.in("in flight")
        const open = twin.in("in flight", "lost", "given up")
        assert.deepStrictEqual(listed(ring, 0, ring.next), open)
        assert.strictEqual(ring.oldestOpen(), open[0] ?? ring.next)
        assert.strictEqual(ring.oldestDeclaredLost(), twin.in("lost")[0] ?? ring.next)
        assert.strictEqual(ring.oldest(), inFlight[0] ?? ring.next)
        assert.deepStrictEqual([ring.count, ring.bytes], [inFlight.length, twin.bytes()])
        const known = [...twin.flights.keys()]
        assert.deepStrictEqual(
          known.filter((n) => ring.isInFlight(n)),
          inFlight
        )
        assert.deepStrictEqual(
          known.filter((n) => ring.isDeclaredLost(n)),
          twin.in("lost")
        )
        assert.deepStrictEqual(
          known.filter((n) => ring.isGivenUp(n)),
          twin.in("given up")
        )
        assert.strictEqual(ring.room, (inFlight[0] ?? ring.next) + 64 - ring.next)
        assert.strictEqual(ring.isFull, twin.flights.get(ring.next - 64)?.state === "in flight")
      }
    },
    { arbitrary: { runs: 200, seed: 14, size: 40 } }
  )

  it("wraps around many times in order, one word after the other", () => {
    const ring = new FlightRing(64)
    for (let number = 0; number < 1_000; number++) {
      assert.strictEqual(ring.add(number, 1_200), number)
      if (number >= 40) ring.settle(number - 40)
      assert.strictEqual(ring.oldest(), Math.max(0, number - 39))
    }
    assert.deepStrictEqual(
      listed(ring, 970, 990),
      Array.from({ length: 20 }, (_, i) => 970 + i)
    )
  })

  it("refuses to overwrite a flight in flight or declared lost, until it is given up or settled", () => {
    const ring = new FlightRing(64)
    for (let i = 0; i < 64; i++) ring.add(i, 1_200)
    assert.isTrue(ring.isFull)
    assert.throws(() => ring.add(64, 1_200))
    ring.declareLost(0, 5)
    assert.strictEqual(ring.declaredAt(0), 5)
    assert.throws(() => ring.add(64, 1_200))
    ring.giveUp(0)
    assert.isTrue(ring.isGivenUp(0))
    assert.strictEqual(ring.add(64, 1_200), 64)
    assert.deepStrictEqual([ring.isInFlight(64), ring.isGivenUp(0), ring.isGivenUp(64)], [true, false, false])
  })
})

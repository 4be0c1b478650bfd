import { assert, describe, it } from "@effect/vitest"
import type { Micros, PacketNumber } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import { datagram, ms, numbers } from "../../test/fixture.ts"
import { between } from "../../test/random.ts"
import { FlightRing } from "../flightRing.ts"
import { NumberList } from "../numberList.ts"
import { RoundTripTime } from "../roundTripTime.ts"
import { LossDetection } from "./LossDetection.ts"
import type { LossDetector } from "./LossDetector.ts"

const detectors = [LossDetection.layerAdaptive, LossDetection.layerFixed].map((layer) => {
  const { make } = Effect.runSync(Effect.provide(LossDetection, layer))
  return [make().name, make] as const
})
const adaptive = (): LossDetector => detectors[0]![1]()

const roundTrip = (micros: Micros): RoundTripTime => {
  const rtt = new RoundTripTime()
  for (let i = 0; i < 100; i++) rtt.update(micros, 0)
  return rtt
}

interface Flight {
  readonly number: PacketNumber
  readonly sentAt: Micros
}

/** The slow twin: spec §14.2 flight by flight, with what it has learnt in plain numbers. */
class DetectorByTheText {
  packets = 3
  wider: Micros = 0
  events = 0
  readonly learns: boolean

  constructor(learns: boolean) {
    this.learns = learns
  }

  time(rtt: RoundTripTime): Micros {
    return Math.ceil((9 / 8) * Math.max(rtt.smoothed, rtt.latest)) + Math.ceil(Math.min(this.wider, 2 * rtt.smoothed))
  }

  lostAt({ number, sentAt }: Flight, rtt: RoundTripTime, largest: PacketNumber): Micros {
    if (number >= largest) return Infinity
    return largest - number >= this.packets ? -Infinity : sentAt + this.time(rtt)
  }

  late(depth: number, age: Micros, rtt: RoundTripTime): void {
    if (!this.learns) return
    this.events = 0
    const lateness = age + 1 - ((9 / 8) * rtt.smoothed + this.wider)
    this.packets = Math.max(this.packets, depth + 1)
    if (lateness <= 0) return
    this.wider = Math.min(this.wider + Math.max(lateness, rtt.minimum / 4), 2 * rtt.smoothed)
  }

  congestion(): void {
    this.events++
    if (this.events < 16) return
    this.events = 0
    this.packets = 3 + Math.floor((this.packets - 3) / 2)
    this.wider = Math.floor(this.wider / 2)
  }
}

/** A ring with a random history, and the same flights in a list. */
class History {
  readonly ring = new FlightRing(256)
  readonly rtt = new RoundTripTime()
  readonly detector: LossDetector
  readonly twin: DetectorByTheText
  open: Array<Flight> = []
  readonly declared: Array<Flight> = []
  largest: PacketNumber = -1
  now: Micros = 0
  readonly #any: (low: number, high: number) => number

  constructor(detector: LossDetector, seed: number) {
    this.detector = detector
    this.twin = new DetectorByTheText(detector.name === "adaptive")
    this.#any = between(seed)
    this.rtt.update(this.#any(5, 50) * ms, 0)
  }

  step(): void {
    this.now += this.#any(0, 3) === 0 ? 0 : this.#any(1, 8 * ms)
    const what = this.#any(0, 9)
    if (what < 5) this.#send(this.#any(1, 4))
    else if (what < 8) this.#acknowledge()
    else if (what === 8) this.#late()
    else {
      this.detector.handleCongestion()
      this.twin.congestion()
    }
  }

  /** Judges, holds the verdict against the twin's, and applies it. */
  judge(why: string): void {
    const list = new NumberList()
    const next = this.detector.judge(this.ring, this.rtt, this.largest, this.now, list)
    const isLost = (flight: Flight): boolean => this.twin.lostAt(flight, this.rtt, this.largest) <= this.now
    const lost = this.open.filter(isLost)
    this.open = this.open.filter((flight) => !lost.includes(flight))
    assert.deepStrictEqual(
      [...list.values.subarray(0, list.length)],
      lost.map((flight) => flight.number),
      why
    )
    const soonest = Math.min(...this.open.map((flight) => this.twin.lostAt(flight, this.rtt, this.largest)))
    assert.strictEqual(next, soonest, why)
    for (const { number } of lost) {
      assert.isBelow(number, this.largest, why)
      this.ring.declareLost(number, this.now)
    }
    this.declared.push(...lost)
  }

  #send(count: number): void {
    for (let i = 0; i < count && this.open.length < 100; i++) {
      const overwritten = this.ring.next - this.ring.size
      if (this.ring.isDeclaredLost(overwritten)) this.#forget(overwritten)
      if (this.ring.isFull) return
      this.open.push({ number: this.ring.add(this.now, datagram), sentAt: this.now })
    }
  }

  #acknowledge(): void {
    if (this.open.length === 0) return
    const [{ number, sentAt }] = this.open.splice(this.#any(0, this.open.length - 1), 1) as [Flight]
    this.ring.settle(number)
    this.largest = Math.max(this.largest, number)
    this.rtt.update(Math.max(1, this.now - sentAt), 0)
  }

  #late(): void {
    if (this.declared.length === 0) return
    const { number, sentAt } = this.declared[this.#any(0, this.declared.length - 1)]!
    this.#forget(number)
    this.detector.handleLate(this.largest - number, this.now - sentAt, this.rtt)
    this.twin.late(this.largest - number, this.now - sentAt, this.rtt)
  }

  #forget(number: PacketNumber): void {
    this.ring.settle(number)
    this.declared.splice(
      this.declared.findIndex((flight) => flight.number === number),
      1
    )
  }
}

for (const [name, make] of detectors) {
  describe(`${name} loss detection: what every detector keeps (spec §14.2)`, () => {
    it("judges as the text has it, flight by flight, whatever happened before", () => {
      for (let seed = 1; seed <= 60; seed++) {
        const history = new History(make(), seed)
        for (let step = 0; step < 250; step++) {
          history.step()
          history.judge(`seed ${seed}, step ${step}`)
        }
      }
    })

    it("declares at the time it named, and not before", () => {
      const ring = new FlightRing(64)
      const rtt = roundTrip(100 * ms)
      const detector = make()
      for (let i = 0; i < 3; i++) ring.add(i * ms, datagram)
      const list = new NumberList()
      assert.strictEqual(detector.judge(ring, rtt, 2, 50 * ms, list), 112_500)
      assert.strictEqual(detector.judge(ring, rtt, 2, 112_499, list), 112_500)
      assert.strictEqual(list.length, 0)
      assert.strictEqual(detector.judge(ring, rtt, 2, 112_500, list), 113_500)
      assert.deepStrictEqual(numbers(list), [0])
    })

    it("says nothing of flights from the largest acknowledged number on, however old", () => {
      const ring = new FlightRing(64)
      for (let i = 0; i < 40; i++) ring.add(0, datagram)
      const list = new NumberList()
      for (const largest of [-1, 0]) {
        assert.strictEqual(make().judge(ring, roundTrip(20 * ms), largest, 3_600_000_000, list), Infinity)
        assert.strictEqual(list.length, 0)
      }
      make().judge(ring, roundTrip(20 * ms), 7, 3_600_000_000, list)
      assert.deepStrictEqual(numbers(list), [0, 1, 2, 3, 4, 5, 6])
    })
  })
}

/** How many numbers below the largest acknowledged a flight must be for a detector to declare it lost at once. */
const packetThresholdOf = (detector: LossDetector, rtt: RoundTripTime): number => {
  const ring = new FlightRing(4_096)
  for (let i = 0; i < 4_000; i++) ring.add(0, datagram)
  const list = new NumberList()
  detector.judge(ring, rtt, 3_999, 1, list)
  return 4_000 - list.length
}

/** How long after it was sent a detector declares a flight lost that is one number behind. */
const timeThresholdOf = (detector: LossDetector, rtt: RoundTripTime): Micros => {
  const ring = new FlightRing(64)
  ring.add(0, datagram)
  ring.add(0, datagram)
  return detector.judge(ring, rtt, 1, 0, new NumberList())
}

describe("adaptive loss detection", () => {
  const rtt = roundTrip(100 * ms)
  const base = 112_500
  const thresholds = (detector: LossDetector): readonly [number, number] => [
    packetThresholdOf(detector, rtt),
    timeThresholdOf(detector, rtt) - base
  ]

  it("starts at three packets and 9/8 of the larger of smoothed and latest RTT", () => {
    assert.deepStrictEqual(thresholds(adaptive()), [3, 0])
    const spiked = roundTrip(100 * ms)
    spiked.update(400 * ms, 0)
    assert.strictEqual(timeThresholdOf(adaptive(), spiked), 450 * ms)
  })

  it("widens the packet threshold to the depth seen, so that the same flight would not be lost again", () => {
    const detector = adaptive()
    detector.handleLate(7, 10 * ms, rtt)
    assert.deepStrictEqual(thresholds(detector), [8, 0])
    detector.handleLate(5, 10 * ms, rtt)
    assert.deepStrictEqual(thresholds(detector), [8, 0])
    detector.handleLate(1_500, 10 * ms, rtt)
    assert.deepStrictEqual(thresholds(detector), [1_501, 0])
  })

  it("widens the time threshold by the lateness, at least a quarter of the minimum RTT", () => {
    const detector = adaptive()
    detector.handleLate(1, base + 60 * ms, rtt)
    assert.deepStrictEqual(thresholds(detector), [3, 60 * ms + 1])
    detector.handleLate(1, base + 60 * ms + 1, rtt)
    assert.deepStrictEqual(thresholds(detector), [3, 85 * ms + 1], "late by 1 µs: by the least step")
    detector.handleLate(1, base + 85 * ms, rtt)
    assert.deepStrictEqual(thresholds(detector), [3, 85 * ms + 1], "not late by time")
  })

  it("widens so far that a flight of that very age is not lost again, and no further for a second one", () => {
    const any = between(23)
    for (let i = 0; i < 200; i++) {
      const detector = adaptive()
      const [depth, age] = [any(1, 50), any(1, base + 200 * ms - 1)]
      detector.handleLate(depth, age, rtt)
      const ring = new FlightRing(64)
      for (let number = 0; number <= depth; number++) ring.add(0, datagram)
      const list = new NumberList()
      detector.judge(ring, rtt, depth, age, list)
      assert.strictEqual(list.length, 0, `${depth} numbers below, ${age} µs old`)
      const before = thresholds(detector)
      detector.handleLate(depth, age, rtt)
      assert.deepStrictEqual(thresholds(detector), before)
    }
  })

  it("is not fooled by a latest sample that is as large as the lateness: it may be that of the late flight", () => {
    const detector = adaptive()
    const spiked = roundTrip(100 * ms)
    spiked.update(180 * ms, 0)
    assert.strictEqual(spiked.smoothed, 110 * ms)
    detector.handleLate(1, 180 * ms, spiked)
    assert.strictEqual(timeThresholdOf(detector, rtt) - base, 180 * ms + 1 - (9 / 8) * 110 * ms)
  })

  it("widens the time threshold by two smoothed RTTs altogether, not more", () => {
    const detector = adaptive()
    detector.handleLate(1, base + 5_000 * ms, rtt)
    assert.deepStrictEqual(thresholds(detector), [3, 200 * ms])
    detector.handleLate(1, base + 5_000 * ms, rtt)
    assert.deepStrictEqual(thresholds(detector), [3, 200 * ms])
  })

  it("forgets what a delay step had widened beyond two smoothed RTTs of now", () => {
    const detector = adaptive()
    const slow = roundTrip(400 * ms)
    detector.handleLate(1, 5_000 * ms, slow)
    assert.strictEqual(timeThresholdOf(detector, slow), 450 * ms + 800 * ms)
    assert.strictEqual(timeThresholdOf(detector, rtt), 112_500 + 200 * ms)
  })

  it("halves both after 16 congestion events in a row without a late flight, and again after 16 more", () => {
    const detector = adaptive()
    detector.handleLate(42, base + 80 * ms - 1, rtt)
    const seen: Array<readonly [number, number]> = []
    for (let event = 1; event <= 32; event++) {
      detector.handleCongestion()
      if ([15, 16, 31, 32].includes(event)) seen.push(thresholds(detector))
    }
    assert.deepStrictEqual(seen, [
      [43, 80 * ms],
      [23, 40 * ms],
      [23, 40 * ms],
      [13, 20 * ms]
    ])
  })

  it("counts the events anew from a late flight, even one that widens nothing", () => {
    const detector = adaptive()
    detector.handleLate(42, base + 80 * ms - 1, rtt)
    for (let event = 0; event < 15; event++) detector.handleCongestion()
    detector.handleLate(1, 10 * ms, rtt)
    for (let event = 0; event < 15; event++) detector.handleCongestion()
    assert.deepStrictEqual(thresholds(detector), [43, 80 * ms])
    detector.handleCongestion()
    assert.deepStrictEqual(thresholds(detector), [23, 40 * ms])
  })

  it("returns to the thresholds of RFC 9002 when nothing is late for long, and never below", () => {
    const detector = adaptive()
    detector.handleLate(1_000, base + 200 * ms, rtt)
    for (let event = 0; event < 16 * 40; event++) detector.handleCongestion()
    assert.deepStrictEqual(thresholds(detector), [3, 0])
  })
})

describe("fixed loss detection", () => {
  it("learns nothing from late flights", () => {
    const detector = detectors[1]![1]()
    const rtt = roundTrip(100 * ms)
    detector.handleLate(1_000, 10_000 * ms, rtt)
    assert.deepStrictEqual([packetThresholdOf(detector, rtt), timeThresholdOf(detector, rtt)], [3, 112_500])
  })
})

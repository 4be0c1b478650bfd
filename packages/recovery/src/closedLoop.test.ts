import { assert, describe, it } from "@effect/vitest"
import { never } from "@pure-link/wire"
import { type CongestionController, type ControllerOptions } from "./congestion/CongestionController.ts"
import { Cubic } from "./congestion/cubic.ts"
import { NewReno } from "./congestion/newReno.ts"
import { FixedSize } from "./pathMtu/fixedSize.ts"
import { Policies } from "./policies.ts"
import { Recovery } from "./recovery.ts"

/**
 * A recovery against a toy path: one bottleneck with a drop-tail queue and a fixed delay, and a receiver that answers
 * every packet, or pairs. Pure arithmetic in virtual time.
 */

const datagram = 1_200
const fixedSize = { make: () => new FixedSize(datagram) }
const second = 1_000_000

interface Path {
  readonly bitsPerSecond: number
  readonly rtt: number
  /** Datagrams that wait at most at the bottleneck. */
  readonly queue: number
  /** Whether a packet sent now is lost before the queue. */
  readonly drops: (now: number) => boolean
  /** Every timer of the sender is this late. */
  readonly timerLate: number
  /** One answer for two packets that arrive within 1 ms; a lone one is answered after that. */
  readonly inPairs: boolean
}

const cleanPath: Path = {
  bitsPerSecond: 50_000_000,
  rtt: 20_000,
  queue: 104,
  drops: () => false,
  timerLate: 0,
  inPairs: false
}

interface Answer {
  at: number
  readonly numbers: Array<number>
}

class ToyLink {
  now = 0
  delivered = 0
  readonly recovery: Recovery
  readonly #path: Path
  #unsent = 0
  #departure = 0
  readonly #answers: Array<Answer> = []
  #nextAnswer = 0

  constructor(controller: CongestionController, path: Path) {
    this.recovery = new Recovery({
      policies: { ...Policies.defaults, congestionControl: { make: () => controller }, pathMtu: fixedSize },
      datagramSize: datagram,
      largestWindow: 10_000 * datagram
    })
    this.#path = path
  }

  offer(datagrams: number): void {
    this.#unsent += datagrams
  }

  /** Runs until `end`, or until so many datagrams are delivered in all. */
  run(end: number, delivered = Infinity): void {
    while (this.now < end && this.delivered < delivered) {
      const paced = this.#transmit()
      const answerAt = this.#answers[this.#nextAnswer]?.at ?? never
      const timer = Math.min(paced, this.recovery.deadline()) + this.#path.timerLate
      this.now = Math.max(this.now, Math.min(answerAt, timer, end))
      if (this.now >= answerAt) this.#answer()
      else if (this.recovery.handleTimeout(this.now) === "probe") this.#send(true)
      this.#unsent += this.recovery.outcome.lost.length
      this.recovery.outcome.lost.clear()
    }
  }

  /** Sends what may go; returns when pacing lets more go. */
  #transmit(): number {
    const { recovery } = this
    while (this.#unsent > 0 && recovery.windowAllows(datagram) && !recovery.ringIsFull()) {
      const at = recovery.paceAt(this.now)
      if (at > this.now) {
        recovery.setLimited(this.now, false)
        return at
      }
      this.#unsent--
      this.#send(false)
    }
    recovery.setLimited(this.now, this.#unsent === 0)
    return never
  }

  #send(probe: boolean): void {
    const number = this.recovery.handleSent(this.now, datagram, probe)
    const serialization = (datagram * 8 * second) / this.#path.bitsPerSecond
    const waiting = Math.max(0, this.#departure - this.now) / serialization
    if (this.#path.drops(this.now) || waiting > this.#path.queue) return
    this.#departure = Math.max(this.now, this.#departure) + serialization
    this.#answerLater(number, Math.ceil(this.#departure + this.#path.rtt))
  }

  #answerLater(number: number, at: number): void {
    const last = this.#answers.at(-1)
    if (!this.#path.inPairs) this.#answers.push({ at, numbers: [number] })
    else if (last !== undefined && last.numbers.length === 1 && last.at > this.now && at <= last.at) {
      last.numbers.push(number)
      last.at = at
    } else this.#answers.push({ at: at + 1_000, numbers: [number] })
  }

  #answer(): void {
    const { recovery } = this
    const { numbers } = this.#answers[this.#nextAnswer++]!
    recovery.beginAnswer(this.now)
    for (const number of numbers) recovery.acknowledge(number, number, false)
    recovery.endAnswer(this.now, numbers.at(-1)!, 0)
    this.delivered += recovery.outcome.acked.length + recovery.outcome.late.length
  }
}

const makers: ReadonlyArray<readonly [string, (options: ControllerOptions) => CongestionController]> = [
  ["CUBIC", (o) => new Cubic(o)],
  ["NewReno", (o) => new NewReno(o)]
]
const options: ControllerOptions = { datagramSize: datagram, largestWindow: 10_000 * datagram }

/** The share of the bottleneck that a sender with endless data takes from the second to the tenth second. */
const share = (controller: CongestionController, path: Path): number => {
  const link = new ToyLink(controller, path)
  link.offer(1e9)
  link.run(2 * second)
  const before = link.delivered
  link.run(10 * second)
  return ((link.delivered - before) * datagram * 8) / (8 * path.bitsPerSecond)
}

/** A seeded coin for `drops` (mulberry32). */
const random = (seed: number): (() => number) => {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

for (const [name, make] of makers) {
  describe(`${name} on a bottleneck of 50 Mbit/s`, () => {
    it("fills it at an RTT of 20 ms and a queue of one round trip", () => {
      assert.isAbove(share(make(options), cleanPath), 0.98)
    })

    it("fills it behind timers that are 1.5 ms late", () => {
      assert.isAbove(share(make(options), { ...cleanPath, timerLate: 1_500 }), 0.98)
    })

    it("carries 10 MB at an RTT of 10 ms within 10 s, though 30 % are lost for the first 2 s", () => {
      for (let seed = 1; seed <= 20; seed++) {
        const coin = random(seed)
        const drops = (now: number): boolean => now < 2 * second && coin() < 0.3
        const link = new ToyLink(make(options), { ...cleanPath, rtt: 10_000, inPairs: true, drops })
        const datagrams = Math.ceil(10e6 / datagram)
        link.offer(datagrams)
        link.run(60 * second, datagrams)
        assert.isBelow(link.now, 10 * second, `seed ${seed}`)
      }
    })

    for (const [portion, period] of [
      [3, 1_000],
      [30, 10_000],
      [60, 20_000],
      [100, 100_000]
    ] as const) {
      it(`stops growing when the application sends ${portion} datagrams every ${period / 1_000} ms`, () => {
        const link = new ToyLink(make(options), cleanPath)
        let mostInFlight = 0
        for (let now = 0; now < 20 * second; now += period / 10) {
          if (now % period === 0) link.offer(portion)
          link.run(now + period / 10)
          mostInFlight = Math.max(mostInFlight, link.recovery.inFlightBytes)
        }
        assert.isAbove(link.delivered, (0.99 * portion * 20 * second) / period)
        assert.strictEqual(link.recovery.counters.lost, 0)
        assert.isAtMost(link.recovery.controller.window, 2.2 * mostInFlight)
      })
    }

    it("sends few probes into an outage of a minute, and is back within seconds after it", () => {
      const link = new ToyLink(make(options), { ...cleanPath, drops: (now) => now > second && now < 61 * second })
      link.offer(1e9)
      link.run(61 * second)
      const { delivered } = link
      assert.isBelow(link.recovery.counters.probes, 30)
      link.run(65 * second)
      assert.isAbove((link.delivered - delivered) * datagram * 8, 10e6)
      assert.strictEqual(link.recovery.counters.persistentCongestions, 1)
      link.run(70 * second)
      const soFar = link.delivered
      link.run(72 * second)
      assert.isAbove(((link.delivered - soFar) * datagram * 8) / 2, 0.9 * 50e6)
    })
  })
}

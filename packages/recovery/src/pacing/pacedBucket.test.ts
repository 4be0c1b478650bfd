import { assert, describe, it } from "@effect/vitest"
import { between } from "../../test/random.ts"
import { RoundTripTime } from "../roundTripTime.ts"
import { PacedBucket } from "./pacedBucket.ts"

const datagram = 1_200

/** A pacer of a fixed window at a fixed RTT, with a sender that always has data. */
class Fixture {
  readonly rtt = new RoundTripTime()
  readonly window = { bytes: 0, inSlowStart: false }
  readonly pacer: PacedBucket
  sent = 0

  constructor(windowBytes: number, rttMicros: number, inSlowStart = false) {
    this.window = { bytes: windowBytes, inSlowStart }
    this.rtt.update(rttMicros, 0)
    const { window } = this
    this.pacer = new PacedBucket({
      controller: {
        get window() {
          return window.bytes
        },
        get inSlowStart() {
          return window.inSlowStart
        }
      },
      rtt: this.rtt,
      datagramSize: datagram
    })
  }

  /** Sends all that may go at once; returns how many datagrams that was. */
  burst(now: number): number {
    let count = 0
    while (this.pacer.paceAt(now) <= now) {
      this.pacer.handleSent(now, datagram)
      count++
    }
    this.sent += count
    return count
  }

  /** Runs until `end`, waking `late` µs after each time the pacer asked for; returns the bursts. */
  run(from: number, end: number, late: number): Array<number> {
    const bursts: Array<number> = []
    for (let now = from; now < end; now = this.pacer.paceAt(now) + late) bursts.push(this.burst(now))
    return bursts
  }
}

describe("Pacer (spec §14.7)", () => {
  it("lets ten datagrams go at once at the start", () => {
    assert.strictEqual(new Fixture(100 * datagram, 20_000).burst(1), 10)
  })

  for (const [name, slowStart, gain] of [
    ["avoidance", false, 1.25],
    ["slow start", true, 2]
  ] as const) {
    it(`in ${name} sends ${gain} windows per smoothed RTT`, () => {
      const fixture = new Fixture(100 * datagram, 20_000, slowStart)
      fixture.run(0, 1_000_000, 0)
      assert.closeTo(fixture.sent, 50 * 100 * gain, 15)
    })
  }

  it("keeps every burst within 2 ms' worth when the timer is punctual", () => {
    const fixture = new Fixture(1_000 * datagram, 20_000)
    const bursts = fixture.run(0, 200_000, 0)
    assert.isAtMost(Math.max(...bursts.slice(1)), (2 * 1.25 * 1_000) / 20)
    assert.isAtLeast(bursts.length, 100)
  })

  it("wakes a paused sender for 1 ms' worth or a whole burst, however short the round trip", () => {
    for (const [datagrams, rtt, perWake] of [
      [500, 30, 256],
      [64, 100, 256],
      [64, 400, 200],
      [10, 1_000, 10],
      [100, 20_000, 6]
    ] as const) {
      const fixture = new Fixture(datagrams * datagram, rtt)
      const [, ...bursts] = fixture.run(0, 200_000, 0)
      assert.isAtLeast(Math.min(...bursts), perWake, `${datagrams} datagrams per ${rtt} µs`)
    }
  })

  it("after a rest lets 2 ms' worth go, not all that time would have allowed", () => {
    const fixture = new Fixture(1_000 * datagram, 20_000)
    fixture.burst(0)
    fixture.pacer.rest(0)
    assert.strictEqual(fixture.burst(5_000_000), 125)
  })

  it("forgets what a timer missed when the sender rests", () => {
    const fixture = new Fixture(1_000 * datagram, 20_000)
    fixture.burst(0)
    const promised = fixture.pacer.paceAt(0)
    fixture.pacer.rest(promised + 3_000)
    assert.strictEqual(fixture.burst(promised + 3_000), 125)
  })

  it("loses no rate to a timer that is 1.5 ms late", () => {
    const fixture = new Fixture(500 * datagram, 20_000)
    fixture.run(0, 1_000_000, 1_500)
    assert.closeTo(fixture.sent, 50 * 500 * 1.25, 150)
  })

  it("gives at most 256 datagrams however late the timer", () => {
    const fixture = new Fixture(10_000 * datagram, 20_000)
    fixture.burst(0)
    assert.isAtMost(fixture.burst(fixture.pacer.paceAt(0) + 10_000_000), 256)
  })

  it("gives at least ten datagrams after a pause, however small the window", () => {
    const fixture = new Fixture(2 * datagram, 100_000)
    fixture.burst(0)
    fixture.pacer.rest(0)
    assert.strictEqual(fixture.burst(10_000_000), 10)
  })

  it("spreads a small window, a datagram at a time", () => {
    const fixture = new Fixture(10 * datagram, 100_000)
    assert.deepStrictEqual(
      fixture.run(0, 100_000, 0).slice(1),
      Array.from({ length: 12 }, () => 1)
    )
  })

  it("makes packets that did not ask wait to be paid for", () => {
    const fixture = new Fixture(10 * datagram, 100_000)
    fixture.burst(0)
    const before = fixture.pacer.paceAt(0)
    fixture.pacer.handleSent(0, datagram)
    assert.closeTo(fixture.pacer.paceAt(0) - before, 8_000, 1)
  })

  it("lets a first burst go on another path, and no more", () => {
    const fixture = new Fixture(10 * datagram, 100_000)
    fixture.burst(0)
    for (let i = 0; i < 30; i++) fixture.pacer.handleSent(0, datagram)
    fixture.pacer.restart(1_000)
    assert.deepStrictEqual([fixture.burst(1_000), fixture.burst(1_000)], [10, 0])
  })

  it("never lets more go in a round trip than the windows of that time and a burst", () => {
    const path = { window: 100 * 1_200, inSlowStart: false }
    const rtt = new RoundTripTime()
    rtt.update(20_000, 0)
    for (let seed = 1; seed <= 20; seed++) {
      const any = between(seed)
      const pacer = new PacedBucket({ controller: path, rtt, datagramSize: 1_200 })
      const sent: Array<number> = []
      for (let now = 0; now < 200_000; now += any(0, 1) === 0 ? any(1, 100) : any(1, 4_000)) {
        while (pacer.paceAt(now) <= now) {
          pacer.handleSent(now, 1_200)
          sent.push(now)
        }
      }
      for (const from of sent) {
        const inRoundTrip = sent.filter((at) => at >= from && at < from + 20_000).length
        // 1.25 windows, a burst of 2 ms' worth, and what a timer 4 ms late had missed.
        assert.isAtMost(inRoundTrip, 125 + 13 + 26, `seed ${seed}`)
      }
    }
  })
})

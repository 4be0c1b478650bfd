import { assert, describe, it } from "@effect/vitest"
import { datagram, options, reducedAt, roundTrip, roundTrips, second } from "../../test/controllerDrives.ts"
import type { RoundTripTime } from "../roundTripTime.ts"
import { Cubic } from "./cubic.ts"

/** RFC 9438 §4.1 has 0.4; ours is less steep (spec §14.4). */
const C = 0.3

/**
 * The slow twin: CUBIC of RFC 9438 in datagrams and seconds, as the text has it, for a sender that is always limited by
 * its window. W_est moves by both clocks of the brief.
 */
class CubicByTheText {
  cwnd = 10
  ssthresh = Infinity
  wMax = 0
  epoch: { start: number; wMax: number; cwnd: number; wEstAcks: number; wEstTime: number; at: number } | undefined

  acknowledge(seconds: number, rttSeconds: number): void {
    if (this.cwnd < this.ssthresh) {
      this.cwnd += 1
      return
    }
    this.epoch ??= {
      start: seconds,
      wMax: Math.max(this.wMax, this.cwnd),
      cwnd: this.cwnd,
      wEstAcks: this.cwnd,
      wEstTime: this.cwnd,
      at: seconds
    }
    const { epoch } = this
    const K = Math.cbrt((epoch.wMax - epoch.cwnd) / C)
    const wCubic = (t: number): number => C * (t - K) ** 3 + epoch.wMax
    epoch.wEstAcks += (9 / 17) * (1 / this.cwnd)
    epoch.wEstTime += (9 / 17) * ((seconds - epoch.at) / rttSeconds)
    epoch.at = seconds
    const wEst = Math.max(epoch.wEstAcks, epoch.wEstTime)
    const t = seconds - epoch.start
    if (wCubic(t) < wEst) {
      this.cwnd = Math.max(this.cwnd, wEst)
      return
    }
    const ahead = wCubic(t + rttSeconds)
    const target = ahead < this.cwnd ? this.cwnd : ahead > 1.5 * this.cwnd ? 1.5 * this.cwnd : ahead
    this.cwnd += (target - this.cwnd) / this.cwnd
  }

  congestion(): void {
    this.wMax = this.cwnd < this.wMax ? (this.cwnd * (1 + 0.7)) / 2 : this.cwnd
    this.cwnd = Math.max(2, this.cwnd * 0.7)
    this.ssthresh = this.cwnd
    this.epoch = undefined
  }
}

describe("CUBIC (RFC 9438)", () => {
  for (const rttMillis of [5, 20, 100, 300]) {
    it(`agrees with the text, taken packet by packet, at an RTT of ${rttMillis} ms`, () => {
      const cubic = new Cubic(options)
      const twin = new CubicByTheText()
      const rtt = roundTrip(rttMillis * 1_000)
      let now = 0
      for (let round = 1; round < 200; round++) {
        const packets = Math.floor(cubic.window / datagram)
        for (let i = 0; i < packets; i++) {
          const at = now + rtt.latest + Math.floor((i * rtt.latest) / packets)
          cubic.handleSent(now + 1, datagram, datagram)
          cubic.handleAcknowledged(at, datagram, now + 1, rtt, true)
          twin.acknowledge(at / second, rtt.smoothed / second)
        }
        assert.closeTo(cubic.window / datagram, twin.cwnd, 1e-3 * twin.cwnd, `round ${round}`)
        now += rtt.latest
        if (round % 61 !== 6) continue
        cubic.handleCongestion(now, now, 1)
        twin.congestion()
      }
    })
  }

  it("keeps 0.7 of the window at a congestion event", () => {
    const cubic = new Cubic(options)
    reducedAt(cubic, 1_000, second, roundTrip(100_000))
    assert.strictEqual(cubic.window, 700 * datagram)
  })

  it("is back at the former maximum after K seconds: concave before, flat there, convex after", () => {
    // W_max 1000, window 700: K = cbrt(300 / 0.3) = 10 s.
    const cubic = new Cubic(options)
    const rtt = roundTrip(100_000)
    reducedAt(cubic, 1_000, second, rtt)
    const windows = roundTrips(cubic, second, 180, rtt)
    const at = (seconds: number): number => windows[Math.round(seconds * 10)]!
    assert.closeTo(at(10), 1_000, 1)
    const growth = (from: number): number => at(from + 1) - at(from)
    assert.isAbove(growth(1), growth(4))
    assert.isAbove(growth(4), growth(7))
    assert.isBelow(growth(8.6), 1)
    assert.isAbove(growth(14), growth(11))
    assert.closeTo(at(15), C * (15 - 10) ** 3 + 1_000, 15)
  })

  it("gives room to others: below the former maximum it aims for 0.85 of the window (fast convergence)", () => {
    const cubic = new Cubic(options)
    const rtt = roundTrip(100_000)
    reducedAt(cubic, 1_000, second, rtt)
    cubic.handleCongestion(2 * second, 2 * second - 1, 1)
    assert.strictEqual(cubic.window, 490 * datagram)
    // W_max = 700 · 0.85 = 595, K = cbrt(105 / 0.3) = 7.05 s: flat at 595 there.
    const windows = roundTrips(cubic, 2 * second, 80, rtt)
    assert.closeTo(windows[70]!, 595, 1)
  })

  it("follows Reno at 0.53 datagrams per round trip on short paths, before and after the former maximum", () => {
    const cubic = new Cubic(options)
    const rtt = roundTrip(5_000)
    reducedAt(cubic, 20, second, rtt)
    const windows = roundTrips(cubic, second, 42, rtt)
    // From 14 to the former maximum of 20 takes 12 rounds. By acknowledgements the first round counts too, hence the
    // tolerance.
    assert.closeTo(windows[21]! - windows[1]!, (20 * 9) / 17, 0.53)
    assert.closeTo(windows[41]! - windows[21]!, (20 * 9) / 17, 0.3)
    assert.isAbove(windows[41]!, 30)
  })

  it("adds the estimate up by time when acknowledgements are few, each piece at its own RTT", () => {
    const fast = roundTrip(10_000)
    const slow = roundTrip(100_000)
    const cubic = new Cubic(options)
    reducedAt(cubic, 10, second, fast)
    const ask = (now: number, rtt: RoundTripTime): number => {
      cubic.handleSent(now - 1, datagram, datagram)
      cubic.handleAcknowledged(now, datagram, now - 1, rtt, true)
      return cubic.window / datagram
    }
    ask(second + 10_000, fast)
    assert.closeTo(ask(second + 110_000, fast), 7 + (10 * 9) / 17, 0.01)
    // A delay step: the ten round trips so far stand; the next 100 ms are worth one.
    assert.closeTo(ask(second + 210_000, slow), 7 + (11 * 9) / 17, 0.01)
  })

  const idleFor = (idle: number): ReadonlyArray<number> => {
    const cubic = new Cubic(options)
    const rtt = roundTrip(100_000)
    reducedAt(cubic, 1_000, second, rtt)
    const before = roundTrips(cubic, second, 30, rtt)
    return [...before, ...roundTrips(cubic, second + 30 * 100_000 + idle, 100, rtt)]
  }

  it("takes an idle time out of the curve, as if it had not been", () => {
    const steady = idleFor(0)
    const rested = idleFor(3_600 * second)
    for (const [i, window] of steady.entries()) assert.closeTo(rested[i]!, window, 0.01, `round ${i}`)
  })

  it("counts an idle time from the last acknowledgement when that came after the last send", () => {
    // Each round trip is sent at once and acknowledged 100 ms later: counted from the send, all of it would look idle.
    const cubic = new Cubic(options)
    const rtt = roundTrip(100_000)
    reducedAt(cubic, 1_000, second, rtt)
    assert.closeTo(roundTrips(cubic, second, 92, rtt)[91]!, 1_000, 1)
  })

  it("never moves the curve into the future, though an idle time and an undone episode overlap", () => {
    const cubic = new Cubic(options)
    const rtt = roundTrip(100_000)
    reducedAt(cubic, 1_000, second, rtt)
    roundTrips(cubic, second, 30, rtt)
    const before = cubic.handleCongestion(4 * second, 4 * second, 1)!
    cubic.undo(14 * second, before)
    // K = 9.086 s: if the curve begins anew, it is there after 91 round trips.
    assert.isAtLeast(roundTrips(cubic, 14 * second, 95, rtt)[94]!, 999)
  })

  it("takes time short of data out of the curve", () => {
    const cubic = new Cubic(options)
    const rtt = roundTrip(100_000)
    reducedAt(cubic, 1_000, second, rtt)
    const before = roundTrips(cubic, second, 20, rtt)[19]!
    for (let i = 1; i <= 600; i++) {
      const now = 3 * second + i * 100_000
      cubic.handleSent(now - 50_000, datagram, datagram)
      cubic.handleAcknowledged(now, datagram, now - 50_000, rtt, false)
    }
    assert.closeTo(cubic.window / datagram, before, 0.001)
    // The curve would be at 1,000 + 0.3 · 54³ by now; the estimate of Reno went on, up to the former maximum.
    const after = roundTrips(cubic, 63 * second, 1, rtt)[0]!
    assert.closeTo(after, 1_000, 1)
    const later = roundTrips(cubic, 63 * second + 100_000, 20, rtt)[19]!
    assert.isBelow(later - after, 12, "twenty round trips of Reno's growth")
  })

  it("regains the window, and no more, on a link of a few records a second, whose window is hardly ever used", () => {
    for (const seconds of [2, 60, 3_600]) {
      const cubic = new Cubic(options)
      const rtt = roundTrip(100_000)
      reducedAt(cubic, 20, second, rtt)
      assert.strictEqual(cubic.window, 14 * datagram)
      for (let now = second + 50_000; now <= (1 + seconds) * second; now += 50_000) {
        cubic.handleSent(now - 40_000, datagram, datagram)
        cubic.handleAcknowledged(now, datagram, now - 40_000, rtt, false)
      }
      cubic.handleSent((1 + seconds) * second + 1, datagram, datagram)
      cubic.handleAcknowledged((1 + seconds) * second + 2, datagram, (1 + seconds) * second + 1, rtt, true)
      assert.isAtLeast(cubic.window, 20 * datagram - 1, `${seconds} s`)
      assert.isAtMost(cubic.window, 20.1 * datagram, `${seconds} s`)
    }
  })

  it("regains it by the estimate of Reno, not at once", () => {
    const cubic = new Cubic(options)
    const rtt = roundTrip(100_000)
    reducedAt(cubic, 20, second, rtt)
    for (let i = 1; i <= 6; i++) cubic.handleAcknowledged((1 + i / 10) * second, datagram, second + 1, rtt, false)
    cubic.handleAcknowledged(1.6 * second + 1, datagram, second + 1, rtt, true)
    // The first of the six begins the curve.
    assert.closeTo(cubic.window / datagram, 14 + (5 * 9) / 17, 0.01)
  })

  it("grows on after an undo that finds the window above the former one", () => {
    const cubic = new Cubic(options)
    const rtt = roundTrip(100_000)
    reducedAt(cubic, 1_000, second, rtt)
    roundTrips(cubic, second, 20, rtt)
    const before = cubic.handleCongestion(3 * second, 3 * second, 1)!
    roundTrips(cubic, 3 * second, 200, rtt)
    const { window } = cubic
    cubic.undo(23 * second, before)
    assert.strictEqual(cubic.window, window)
    const windows = roundTrips(cubic, 23 * second, 20, rtt)
    assert.isAbove(windows[9]! - window / datagram, 3, "Reno's growth of ten round trips")
    assert.isAbove(windows[19]!, windows[9]! + 3)
  })

  it("aims for 1.5 windows at most, however far the curve is ahead (RFC 9438 §4.2)", () => {
    const cubic = new Cubic(options)
    const rtt = roundTrip(100_000)
    reducedAt(cubic, 1_000, second, rtt)
    // One packet per round trip is acknowledged, for a minute: the curve is at 50,000 by then.
    for (let i = 1; i <= 600; i++) {
      const { window } = cubic
      cubic.handleAcknowledged(second + i * 100_000, datagram, second + 1, rtt, true)
      assert.isAtMost(cubic.window - window, datagram / 2 + 1, `${i}`)
    }
    assert.isAbove(cubic.window, 750 * datagram)
  })

  it("counts an idle time from a late answer, too", () => {
    const [told, untold] = [true, false].map((isTold) => {
      const cubic = new Cubic(options)
      const rtt = roundTrip(100_000)
      reducedAt(cubic, 1_000, second, rtt)
      roundTrips(cubic, second, 30, rtt)
      if (isTold) cubic.handleLate(6 * second)
      return roundTrips(cubic, 6 * second, 2, rtt)[1]!
    })
    assert.isAbove(told!, untold! + 30)
  })

  it("never lets an idle time move the recovery start", () => {
    const cubic = new Cubic(options)
    const rtt = roundTrip(100_000)
    reducedAt(cubic, 100, second, rtt)
    cubic.handleSent(60 * second, datagram, 0)
    assert.isDefined(cubic.handleCongestion(60 * second + 1, second + 1, 1), "a packet sent after the reduction")
    assert.isUndefined(cubic.handleCongestion(60 * second + 2, 60 * second + 1, 1))
  })

  it("slow start grows half as fast after an idle longer than a PTO, until the next congestion", () => {
    const cubic = new Cubic(options)
    const rtt = roundTrip(20_000)
    assert.deepStrictEqual(roundTrips(cubic, 0, 1, rtt), [20])
    assert.deepStrictEqual(roundTrips(cubic, 20_000 + rtt.probeTimeout() - 1, 1, rtt), [40])
    assert.deepStrictEqual(roundTrips(cubic, second, 2, rtt), [60, 90])
    const end = second + 40_000
    cubic.handleCongestion(end, end - 1, 1)
    cubic.handlePersistentCongestion(end)
    assert.deepStrictEqual(roundTrips(cubic, end, 1, rtt), [4])
  })
})

import { assert, describe, it } from "@effect/vitest"
import type { Micros } from "@pure-link/wire"
import { FixedSize } from "../pathMtu/fixedSize.ts"
import { Policies } from "../policies.ts"
import { Recovery } from "../recovery.ts"
import type { CongestionController } from "../congestion/CongestionController.ts"

/**
 * A sender whose process is busy elsewhere (spec §14.7): its timers, and in the worse case the answers too, are served up
 * to 20 ms late. Pacing must not cost what the window allows, and no burst may exceed 2 ms' worth and what was missed.
 */

const datagram = 1_200
const ms = 1_000

/** How the process is served: `timers` late by so much, or `turns` only so often, answers included. */
interface Lateness {
  readonly timers: Micros
  readonly turns: Micros
}

/** A sender without end to its data, a window that stays, and a path that answers every packet after a round trip. */
class BusySender {
  readonly recovery: Recovery
  readonly bursts: Array<{ readonly at: Micros; readonly count: number }> = []
  sent = 0
  wakes = 0
  readonly #lateness: Lateness
  readonly #rtt: Micros
  readonly #answers: Array<{ readonly at: Micros; readonly number: number }> = []

  constructor(datagrams: number, rtt: Micros, lateness: Lateness) {
    this.#rtt = rtt
    this.#lateness = lateness
    const controller = {
      name: "fixed",
      window: datagrams * datagram,
      inSlowStart: false
    } as unknown as CongestionController
    for (const call of ["handleSent", "handleAcknowledged", "handleLate", "handleCongestion", "setDatagramSize"]) {
      Object.assign(controller, { [call]: () => undefined })
    }
    this.recovery = new Recovery({
      policies: {
        ...Policies.defaults,
        congestionControl: { make: () => controller },
        pathMtu: { make: () => new FixedSize(datagram) }
      },
      datagramSize: datagram,
      largestWindow: 10_000 * datagram
    })
  }

  run(time: Micros): void {
    let now = 0
    while (now < time) {
      const wakeAt = this.#turn(now)
      const answerAt = this.#answers[0]?.at ?? Infinity
      const { timers, turns } = this.#lateness
      if (wakeAt + timers < answerAt) this.wakes++
      now = Math.max(now + 1, Math.min(wakeAt + timers, answerAt))
      if (turns > 0) now = Math.ceil(now / turns) * turns
    }
  }

  /** Takes the answers that came and sends what may go; returns when to come back. */
  #turn(now: Micros): Micros {
    const { recovery } = this
    let arrived = 0
    while (arrived < this.#answers.length && this.#answers[arrived]!.at <= now) arrived++
    if (arrived > 0) {
      const last = this.#answers[arrived - 1]!.number
      this.#answers.splice(0, arrived)
      recovery.beginAnswer(now)
      recovery.acknowledge(0, last, false)
      recovery.endAnswer(now, last, 0)
    }
    return this.#send(now)
  }

  #send(now: Micros): Micros {
    const { recovery } = this
    let count = 0
    let wakeAt = now
    for (; ; count++) {
      recovery.setLimited(now, false)
      if (!recovery.hasRoom(datagram)) {
        wakeAt = recovery.waitForRoom(now)
        break
      }
      wakeAt = recovery.paceAt(now)
      if (wakeAt > now) break
      this.#answers.push({ at: now + this.#rtt, number: recovery.handleSent(now, datagram, false) })
    }
    this.sent += count
    if (count > 0) this.bursts.push({ at: now, count })
    return wakeAt
  }
}

describe("pacing in a busy process (spec §14.7)", () => {
  for (const [name, lateness] of [
    ["timers come 20 ms late, answers in time", { timers: 20 * ms, turns: 0 }],
    ["nothing is served but every 20 ms", { timers: 0, turns: 20 * ms }]
  ] as const) {
    for (const [datagrams, rtt] of [
      [20, 20],
      [50, 10],
      [100, 20],
      [200, 20],
      [200, 40],
      [900, 100]
    ] as const) {
      it(`yields 80 % of ${datagrams} datagrams per ${rtt} ms while ${name}`, () => {
        const sender = new BusySender(datagrams, rtt * ms, lateness)
        sender.run(4_000 * ms)
        // What is answered between two turns is known at the second.
        const roundTrip = lateness.turns > 0 ? Math.ceil(rtt / 20) * 20 : rtt
        assert.isAbove(sender.sent, (0.8 * datagrams * 4_000) / roundTrip)
      })

      it(`sends no more than 2 ms' worth and what was missed of ${datagrams} per ${rtt} ms while ${name}`, () => {
        const sender = new BusySender(datagrams, rtt * ms, lateness)
        sender.run(4_000 * ms)
        const perMicro = (1.25 * datagrams) / (rtt * ms)
        for (const [i, { at, count }] of sender.bursts.entries()) {
          const since = i === 0 ? 0 : at - sender.bursts[i - 1]!.at
          assert.isAtMost(count, Math.min(256, Math.max(10, perMicro * 2 * ms) + perMicro * since + 1))
        }
      })
    }
  }

  it("wakes a sender once more after a full window, and not again and again", () => {
    const sender = new BusySender(10, 1_000 * ms, { timers: 1 * ms, turns: 0 })
    sender.run(20_000 * ms)
    assert.isAtMost(sender.wakes, 20 * 12)
    assert.isAtLeast(sender.sent, 170)
  })
})

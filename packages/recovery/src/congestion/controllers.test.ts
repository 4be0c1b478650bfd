import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { datagram, options, reducedAt, roundTrip, roundTrips, second } from "../../test/controllerDrives.ts"
import { between } from "../../test/random.ts"
import { RoundTripTime } from "../roundTripTime.ts"
import { CongestionControl } from "./CongestionControl.ts"
import {
  type CongestionController,
  type CongestionState,
  type ControllerOptions,
  initialWindow
} from "./CongestionController.ts"

const makers = [CongestionControl.layerCubic, CongestionControl.layerNewReno].map((layer) => {
  const { make } = Effect.runSync(Effect.provide(CongestionControl, layer))
  return [make(options).name, make] as const
})

for (const [name, make] of makers) {
  describe(`${name}: what every controller keeps (spec §14.4)`, () => {
    it("starts at ten datagrams of 1,200 B, and within 14,720 B at 1,452 B", () => {
      assert.strictEqual(make(options).window, 12_000)
      assert.strictEqual(make({ ...options, datagramSize: 1_452 }).window, 14_520)
      assert.strictEqual(initialWindow(9_000), 18_000)
    })

    it("doubles per round trip in slow start", () => {
      assert.deepStrictEqual(roundTrips(make(options), 0, 3, roundTrip(20_000)), [20, 40, 80])
    })

    it("reduces once for all packets sent before the reduction", () => {
      const controller = make(options)
      const reductions = [
        [100, 50],
        [110, 60],
        [150, 100],
        [160, 101],
        [170, 160]
      ] as const
      assert.deepStrictEqual(
        reductions.map(([now, sentAt]) => controller.handleCongestion(now, sentAt, 1) !== undefined),
        [true, false, false, true, false]
      )
    })

    it("grows nothing for packets sent before the reduction", () => {
      const controller = make(options)
      const rtt = roundTrip(20_000)
      reducedAt(controller, 100, second, rtt)
      const { window } = controller
      for (let i = 0; i < 50; i++) controller.handleAcknowledged(second + 10_000, datagram, second, rtt, true)
      assert.strictEqual(controller.window, window)
    })

    it("grows nothing while the window is not the limit, in slow start and after", () => {
      const controller = make(options)
      const rtt = roundTrip(20_000)
      controller.handleAcknowledged(10, datagram, 5, rtt, false)
      assert.strictEqual(controller.window, 12_000)
      reducedAt(controller, 100, second, rtt)
      const { window } = controller
      for (let now = 2 * second; now < 60 * second; now += 20_000) {
        controller.handleAcknowledged(now, datagram, now - 20_000, rtt, false)
      }
      assert.strictEqual(controller.window, window)
    })

    it("falls to two datagrams on persistent congestion and returns by slow start", () => {
      const controller = make(options)
      const rtt = roundTrip(20_000)
      reducedAt(controller, 100, second, rtt)
      const threshold = controller.window / datagram
      controller.handlePersistentCongestion(second)
      assert.strictEqual(controller.window, 2 * datagram)
      assert.isTrue(controller.inSlowStart)
      const windows = roundTrips(controller, second, 4, rtt)
      assert.deepStrictEqual(windows, [4, 8, 16, 32])
      assert.isAbove(threshold, 32)
    })

    it("regrows from two datagrams when every acknowledgement empties the window", () => {
      // Cloudflare's trap: the next send always finds nothing in flight, as the receiver acknowledges every second
      // packet, and the first goes in the very microsecond of the reduction.
      const controller = make(options)
      const rtt = roundTrip(10_000)
      for (let i = 1; i <= 20; i++) controller.handleCongestion(i * second, i * second - 1, 1)
      assert.isAtMost(controller.window, 2 * datagram + datagram - 1)
      let now = 20 * second
      for (let round = 0; round < 200; round++) {
        controller.handleSent(now, datagram, 0)
        controller.handleSent(now, datagram, datagram)
        controller.handleAcknowledged(now + 10_000, datagram, now, rtt, true)
        controller.handleAcknowledged(now + 10_000, datagram, now, rtt, true)
        now += 10_000
      }
      assert.isAbove(controller.window, 20 * datagram)
    })

    it("takes the part of a reduction that it is told", () => {
      const reduced = [1, 0.5, 0.01].map((part) => {
        const controller = make({ ...options, datagramSize: 100 })
        const { window } = controller
        controller.handleCongestion(second, second - 1, part)
        return (window - controller.window) / window
      })
      assert.closeTo(reduced[1]!, reduced[0]! / 2, 0.002)
      assert.closeTo(reduced[2]!, reduced[0]! / 100, 0.002)
    })

    it("goes on after an undo like one that never reduced, apart from the time that passed", () => {
      for (let seed = 1; seed <= 60; seed++) {
        const [disturbed, calm] = [make(options), make(options)]
        const away = between(seed)(1, 5 * second)
        for (const controller of [disturbed, calm]) wander(controller, seed, 0)
        const now = disturbedAt
        const before = disturbed.handleCongestion(now, now, 1)!
        // The episode goes on: further reductions, and answers that grow nothing much.
        disturbed.handleCongestion(now + Math.floor(away / 3), now + Math.floor(away / 3), 1)
        disturbed.handleCongestion(now + Math.floor(away / 2), now + Math.floor(away / 2), 1)
        disturbed.undo(now + away, before)
        assert.strictEqual(disturbed.window, calm.window, `seed ${seed}`)
        assert.strictEqual(disturbed.inSlowStart, calm.inSlowStart, `seed ${seed}`)
        const [after, asIf] = [wander(disturbed, seed + 1_000, now + away), wander(calm, seed + 1_000, now)]
        for (const [i, window] of after.entries()) assert.closeTo(window, asIf[i]!, 1, `seed ${seed}, step ${i}`)
      }
    })

    it("never lowers the window by an undo, and never exceeds the largest", () => {
      const rtt = roundTrip(20_000)
      const controller = make({ ...options, largestWindow: 50 * datagram })
      const before = controller.handleCongestion(second, second, 1)!
      for (let i = 0; i < 30_000; i++) controller.handleAcknowledged(2 * second + i, datagram, 2 * second, rtt, true)
      assert.isAbove(controller.window, 12_000)
      const { window } = controller
      controller.undo(3 * second, before)
      assert.strictEqual(controller.window, window)
      const atTheTop = make({ ...options, largestWindow: 11_000 })
      const top = atTheTop.handleCongestion(second, second, 1)!
      atTheTop.setDatagramSize(1_452)
      atTheTop.undo(2 * second, top)
      assert.strictEqual(atTheTop.window, 11_000)
    })

    it("is on another path as at first, for datagrams of the present size, whatever it went through", () => {
      for (let seed = 1; seed <= 20; seed++) {
        const used = make(options)
        wander(used, seed, 0)
        used.handleCongestion(disturbedAt, disturbedAt, 1)
        if (seed % 2 === 0) used.handlePersistentCongestion(disturbedAt)
        used.setDatagramSize(1_452)
        used.restart()
        const fresh = make({ ...options, datagramSize: 1_452 })
        const from = 3_600 * second
        for (const controller of [used, fresh]) {
          assert.deepStrictEqual([controller.window, controller.inSlowStart], [14_520, true], `seed ${seed}`)
          controller.handleSent(from, datagram, 0)
        }
        assert.deepStrictEqual(wander(used, seed + 1_000, from), wander(fresh, seed + 1_000, from), `seed ${seed}`)
      }
    })

    it("is never NaN, below two datagrams, or above the largest window, and an undo never lowers it", () => {
      for (let seed = 1; seed <= 250; seed++) new Fuzz(make, seed).run(120)
    })
  })
}

/** When the disturbance comes. */
const disturbedAt = 100 * second

/** Fifty steps of sending, acknowledging and resting from `from` on, seeded; returns the window after each. */
const wander = (controller: CongestionController, seed: number, from: number): Array<number> => {
  const any = between(seed)
  const rtt = roundTrip(any(5, 200) * 1_000)
  const windows: Array<number> = []
  let now = from
  controller.handleSent(now, datagram, datagram)
  for (let step = 0; step < 50; step++) {
    now += any(0, 9) === 0 ? any(1, second) : any(0, 50_000)
    controller.handleSent(now, datagram, any(0, 3) * datagram)
    const acknowledgedAt = now + rtt.latest
    for (let i = any(0, 30); i > 0; i--)
      controller.handleAcknowledged(acknowledgedAt, datagram, now, rtt, any(0, 9) > 0)
    if (from === 0 && any(0, 15) === 0) controller.handleCongestion(acknowledgedAt, now, 1)
    now = acknowledgedAt
    windows.push(controller.window)
  }
  assert.isBelow(now - from, disturbedAt)
  // Both are left at rest, with nothing in flight, at the same moment.
  if (from === 0) {
    controller.handleSent(disturbedAt, datagram, 0)
    controller.handleAcknowledged(disturbedAt, datagram, disturbedAt, rtt, false)
  }
  return windows
}

/** Calls in any order, at any times, with every state that was ever returned kept for an undo. */
class Fuzz {
  readonly #controller: CongestionController
  readonly #largestWindow: number
  readonly #any: (low: number, high: number) => number
  readonly #states: Array<CongestionState> = []
  readonly #rtt = new RoundTripTime()
  readonly #seed: number
  #datagramSize = datagram
  #now = 0

  constructor(make: (options: ControllerOptions) => CongestionController, seed: number) {
    this.#any = between(seed)
    this.#seed = seed
    this.#largestWindow = [2 * 1_452, 50_000, 500 * datagram, 2 ** 40][this.#any(0, 3)]!
    this.#controller = make({ datagramSize: datagram, largestWindow: this.#largestWindow })
  }

  run(steps: number): void {
    for (let step = 0; step < steps; step++) {
      this.#now += [0, 1, this.#any(0, 10_000), this.#any(0, second), 3_600 * second][this.#any(0, 4)]!
      const call = calls[this.#any(0, calls.length - 1)]!
      const { window } = this.#controller
      for (let i = call === "acknowledged" ? this.#any(1, 200) : 1; i > 0; i--) this.#apply(call)
      this.#check(`seed ${this.#seed}, step ${step}, ${call}`)
      if (call === "undo") assert.isAtLeast(this.#controller.window, window, `seed ${this.#seed}, step ${step}`)
    }
  }

  #check(why: string): void {
    const { window } = this.#controller
    assert.isTrue(Number.isInteger(window), `${window}, ${why}`)
    assert.isAtLeast(window, 2 * this.#datagramSize, why)
    assert.isAtMost(window, this.#largestWindow, why)
  }

  #apply(call: (typeof calls)[number]): void {
    const [controller, now, any] = [this.#controller, this.#now, this.#any]
    const sentAt = now - [0, any(0, 100_000), any(0, 7_200 * second)][any(0, 2)]!
    switch (call) {
      case "sent":
        return controller.handleSent(now, this.#datagramSize, any(0, 2) === 0 ? 0 : any(0, 10_000_000))
      case "acknowledged":
      case "limited":
        this.#rtt.update([1, any(1, 400_000), any(1, 7_200 * second)][any(0, 2)]!, any(0, 30_000))
        return controller.handleAcknowledged(now, any(1, 1_452), sentAt, this.#rtt, call === "acknowledged")
      case "congestion": {
        const before = controller.handleCongestion(now, sentAt, [1, 0.5, 0.001][any(0, 2)]!)
        return void (before !== undefined && this.#states.push(before))
      }
      case "undo":
        return void (this.#states.length > 0 && controller.undo(now, this.#states[any(0, this.#states.length - 1)]!))
      case "late":
        return controller.handleLate(now)
      case "persistent":
        return controller.handlePersistentCongestion(now)
      case "restart":
        return controller.restart()
      case "size":
        this.#datagramSize = [1_200, 1_300, 1_452][any(0, 2)]!
        return controller.setDatagramSize(this.#datagramSize)
    }
  }
}

const calls = [
  "sent",
  "acknowledged",
  "acknowledged",
  "limited",
  "late",
  "congestion",
  "undo",
  "persistent",
  "restart",
  "size"
] as const

describe("CongestionControl", () => {
  it.effect("yields the maker that the Layer chose", () =>
    Effect.gen(function* () {
      const name = Effect.map(CongestionControl, (service) => service.make(options).name)
      assert.strictEqual(yield* name.pipe(Effect.provide(CongestionControl.layerCubic)), "CUBIC")
      assert.strictEqual(yield* name.pipe(Effect.provide(CongestionControl.layerNewReno)), "NewReno")
    })
  )
})

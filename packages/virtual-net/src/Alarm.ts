import { type Micros, never } from "@pure-link/wire"
import type * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import { Sim, type SimTimer } from "./Sim.ts"

/**
 * The network's one pump: rings at the earliest time it was set to. On a `Sim` it is a plain timer; on any other Effect
 * clock (TestClock, the live one) a fiber that sleeps, exchanged for a new one when an earlier time is set.
 */
export interface Alarm {
  now(): Micros
  /** Makes it ring at `at` or earlier. It never rings in the caller's stack if `at` lies ahead. */
  set(at: Micros): void
  stop(): void
}

export const makeAlarm = (clock: Clock.Clock, context: Context.Context<never>, ring: () => void): Alarm =>
  clock instanceof Sim ? new SimAlarm(clock, ring) : new FiberAlarm(clock, context, ring)

class SimAlarm implements Alarm {
  readonly #sim: Sim
  readonly #ring: () => void
  #timer: SimTimer | undefined

  constructor(sim: Sim, ring: () => void) {
    this.#sim = sim
    this.#ring = ring
  }

  now(): Micros {
    return this.#sim.now
  }

  set(at: Micros): void {
    if (this.#timer !== undefined && this.#timer.at <= at) return
    this.stop()
    this.#timer = this.#sim.at(at, () => {
      this.#timer = undefined
      this.#ring()
    })
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }
}

class FiberAlarm implements Alarm {
  readonly #clock: Clock.Clock
  readonly #run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  readonly #ringNow: Effect.Effect<void>
  #sleeper: Fiber.Fiber<void> | undefined
  #at: Micros = never

  constructor(clock: Clock.Clock, context: Context.Context<never>, ring: () => void) {
    this.#clock = clock
    this.#run = Effect.runForkWith(context)
    this.#ringNow = Effect.sync(() => {
      this.#sleeper = undefined
      this.#at = never
      ring()
    })
  }

  now(): Micros {
    return Number(this.#clock.monotonicTimeNanosUnsafe() / 1_000n)
  }

  set(at: Micros): void {
    if (this.#at <= at) return
    this.stop()
    this.#at = at
    const sleep = this.#clock.sleep(Duration.millis((at - this.now()) / 1_000))
    this.#sleeper = this.#run(Effect.andThen(sleep, this.#ringNow))
  }

  stop(): void {
    this.#sleeper?.interruptUnsafe()
    this.#sleeper = undefined
    this.#at = never
  }
}

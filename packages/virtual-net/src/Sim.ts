import { type Micros, never } from "@pure-link/wire"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scheduler from "effect/Scheduler"
import { Agenda, type Entry } from "./Agenda.ts"

/**
 * A simulated clock and scheduler: runs an Effect program synchronously, in virtual time, without touching the event
 * loop. Equal programs run equally: tasks go first in, first out, timers by time and then by order of setting. A
 * program in which everybody waits for what never comes ends with a defect instead of hanging, and so does one that
 * exceeds its limits. What is really asynchronous (a promise, a socket, a file) does not work here: it shows up as a
 * deadlock.
 */

/** A timer that was set; `cancel` it to have it forgotten. */
export class SimTimer implements Entry {
  readonly at: Micros
  readonly order: number
  #fire: (() => void) | undefined

  constructor(at: Micros, order: number, fire: () => void) {
    this.at = at
    this.order = order
    this.#fire = fire
  }

  get isCancelled(): boolean {
    return this.#fire === undefined
  }

  cancel(): void {
    this.#fire = undefined
  }

  fire(): void {
    const fire = this.#fire
    this.#fire = undefined
    fire?.()
  }
}

export interface SimLimits {
  /** Virtual time that the run may take; a day if not given. */
  readonly micros?: Micros
  /** Tasks that may run without time moving, before it counts as a livelock; a million if not given. */
  readonly tasksAtOnce?: number
}

/** The defect of a run that did not end. */
export class SimStopped extends Error {
  readonly reason: "deadlock" | "limit" | "livelock"
  readonly at: Micros

  constructor(reason: "deadlock" | "limit" | "livelock", at: Micros) {
    super(`simulation stopped at ${at} µs: ${explanations[reason]}`)
    this.name = "SimStopped"
    this.reason = reason
    this.at = at
  }
}

const explanations = {
  deadlock: "deadlock, every fiber waits and no timer is set (does one wait for real I/O or a promise?)",
  limit: "limit of virtual time reached (raise `micros` if the program takes that long)",
  livelock: "livelock, fibers keep running without time moving"
}

export class Sim implements Clock.Clock, Scheduler.Scheduler {
  readonly executionMode = "async" as const
  readonly currentTimeMillis = Effect.sync(() => this.currentTimeMillisUnsafe())
  readonly currentTimeNanos = Effect.sync(() => this.currentTimeNanosUnsafe())
  readonly monotonicTimeNanos = Effect.sync(() => this.monotonicTimeNanosUnsafe())
  /** Puts a program on this clock and scheduler; `run` does it by itself. */
  readonly layer: Layer.Layer<never> = Layer.succeedContext(
    Context.make(Clock.Clock, this as Clock.Clock).pipe(Context.add(Scheduler.Scheduler, this as Scheduler.Scheduler))
  ) as Layer.Layer<never>

  readonly #timers = new Agenda<SimTimer>()
  readonly #tasks: Array<() => void> = []
  #nextTask = 0
  #now: Micros = 0

  /** Virtual time since this clock was made. It keeps counting from one run to the next. */
  get now(): Micros {
    return this.#now
  }

  /**
   * Runs a program to its end. When it does not end, it is interrupted, its finalizers run as far as they need no time,
   * and the exit is a defect, `SimStopped`. What a plain timer throws, `run` throws.
   */
  run<A, E>(program: Effect.Effect<A, E>, limits: SimLimits = {}): Exit.Exit<A, E> {
    const end = this.#now + (limits.micros ?? day)
    const tasksAtOnce = limits.tasksAtOnce ?? 1_000_000
    const fiber = Effect.runFork(Effect.provide(program, this.layer), { scheduler: this })
    let tasksLeft = tasksAtOnce
    for (;;) {
      tasksLeft = this.#runTasks(tasksLeft)
      const exit = fiber.pollUnsafe()
      if (exit !== undefined) return exit
      if (tasksLeft === 0) return this.#stop(fiber, "livelock")
      const timer = this.#timers.takeFirst()
      if (timer === undefined) return this.#stop(fiber, "deadlock")
      if (timer.isCancelled) continue
      if (timer.at > end) {
        this.#timers.add(timer)
        return this.#stop(fiber, "limit")
      }
      if (timer.at > this.#now) tasksLeft = tasksAtOnce
      else if (--tasksLeft === 0) return this.#stop(fiber, "livelock")
      this.#now = timer.at
      timer.fire()
    }
  }

  /**
   * Sets a plain timer, which costs far less than a fiber that sleeps. A time gone by counts as now; never in the
   * caller's stack.
   */
  at(at: Micros, fire: () => void): SimTimer {
    const timer = new SimTimer(Math.max(at, this.#now), this.#timers.nextOrder(), fire)
    if (at !== never) this.#timers.add(timer)
    return timer
  }

  sleep(duration: Duration.Duration): Effect.Effect<void> {
    const micros = microsOf(duration)
    if (micros <= 0) return Effect.yieldNow
    if (micros === never) return Effect.never
    return Effect.callback((resume) => {
      const timer = this.at(this.#now + micros, () => resume(Effect.void))
      return Effect.sync(() => timer.cancel())
    })
  }

  currentTimeMillisUnsafe(): number {
    return this.#now / 1_000
  }

  currentTimeNanosUnsafe(): bigint {
    return BigInt(this.#now) * 1_000n
  }

  monotonicTimeNanosUnsafe(): bigint {
    return this.currentTimeNanosUnsafe()
  }

  shouldYield(fiber: Fiber.Fiber<unknown, unknown>): boolean {
    return fiber.currentOpCount >= 2_048
  }

  makeDispatcher(): Scheduler.SchedulerDispatcher {
    return {
      scheduleTask: (task) => {
        this.#tasks.push(task)
      },
      flush: () => {
        this.#runTasks(never)
      }
    }
  }

  /** Runs the tasks that are due, and those that they add; returns how many more there might have been. */
  #runTasks(most: number): number {
    const tasks = this.#tasks
    let left = most
    for (; this.#nextTask < tasks.length && left > 0; left--) {
      tasks[this.#nextTask++]!()
      if (this.#nextTask < 4_096 && this.#nextTask < tasks.length) continue
      tasks.splice(0, this.#nextTask)
      this.#nextTask = 0
    }
    return left
  }

  #stop(fiber: Fiber.Fiber<unknown, unknown>, reason: "deadlock" | "limit" | "livelock"): Exit.Exit<never> {
    const stopped = new SimStopped(reason, this.#now)
    fiber.interruptUnsafe()
    this.#runTasks(100_000)
    return Exit.die(stopped)
  }
}

const day: Micros = 24 * 3_600_000_000

/** Whole microseconds, upwards, as a sleep must not end early. Rounded to nanoseconds first: 16.1 ms is 16,100 µs. */
const microsOf = (duration: Duration.Duration): Micros =>
  Math.ceil(Math.round(Duration.toMillis(duration) * 1e6) / 1_000)

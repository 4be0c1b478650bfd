import { DatagramSocket, type OpenSocket } from "@pure-link/ports"
import { VirtualNetwork } from "@pure-link/virtual-net"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"

/**
 * A process whose machine can be suspended and whose wall clock can be set. While it is suspended the monotonic clock
 * runs on, timers that come due wait, and datagrams queue in its sockets, up to their bound. Whoever runs in it is given
 * this clock and its sockets.
 */
export class Process implements Clock.Clock {
  readonly currentTimeMillis = Effect.sync(() => this.currentTimeMillisUnsafe())
  readonly currentTimeNanos = Effect.sync(() => this.currentTimeNanosUnsafe())
  readonly monotonicTimeNanos = Effect.sync(() => this.monotonicTimeNanosUnsafe())
  /** Timers that are set, those that came due while suspended among them. */
  timers = 0
  mostTimers = 0
  /** What the wall clock was set ahead by; the monotonic clock knows nothing of it. */
  wallOffsetMillis = 0
  readonly #clock: Clock.Clock
  readonly #isAwake = Latch.makeUnsafe(true)
  readonly #sockets: Array<OpenSocket> = []
  #asleep: Array<readonly [OpenSocket, (() => void) | undefined]> = []

  constructor(clock: Clock.Clock) {
    this.#clock = clock
  }

  static readonly make = Effect.map(Clock.Clock, (clock) => new Process(clock))

  suspend(): void {
    this.#isAwake.closeUnsafe()
    this.#asleep = this.#sockets.map((socket) => [socket, socket.onReadable])
    for (const socket of this.#sockets) socket.onReadable = undefined
  }

  resume(): void {
    this.#isAwake.openUnsafe()
    for (const [socket, call] of this.#asleep.splice(0)) socket.onReadable = call
  }

  /** Runs a program, and all that it starts, in this process. */
  readonly run = <A, E, R>(program: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.provideService(program, Clock.Clock, this)

  /** Runs a program beside it, as somebody who watches: it is not suspended. */
  readonly beside = <A, E, R>(program: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.provideService(program, Clock.Clock, this.#clock)

  readonly sockets = (host: string): Layer.Layer<DatagramSocket, never, VirtualNetwork> =>
    Layer.effect(
      DatagramSocket,
      Effect.map(VirtualNetwork, (network) => ({
        open: (at) =>
          Effect.tap(network.socketsOf(host).open(at), (socket) => Effect.sync(() => this.#sockets.push(socket)))
      }))
    )

  sleep(duration: Duration.Duration): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.mostTimers = Math.max(this.mostTimers, ++this.timers)
      return Effect.andThen(this.#clock.sleep(duration), this.#isAwake.await)
    }).pipe(Effect.ensuring(Effect.sync(() => void this.timers--)))
  }

  currentTimeMillisUnsafe(): number {
    return this.#clock.currentTimeMillisUnsafe() + this.wallOffsetMillis
  }

  currentTimeNanosUnsafe(): bigint {
    return this.#clock.currentTimeNanosUnsafe() + BigInt(this.wallOffsetMillis) * 1_000_000n
  }

  monotonicTimeNanosUnsafe(): bigint {
    return this.#clock.monotonicTimeNanosUnsafe()
  }
}

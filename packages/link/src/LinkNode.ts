/**
 * A node: one key pair, one socket, one driver fiber. Outputs and an input host attach their machines to it; both roles
 * share the socket. The driver fiber sleeps until a datagram comes, a deadline passes or somebody calls `wake`, and
 * then takes one turn.
 */
import { type EpochLimits, epochLimits, type KeyPair } from "@pure-link/keys"
import {
  Cryptography,
  DatagramSocket,
  Entropy,
  type OpenSocket,
  type SocketCounters,
  type SocketError
} from "@pure-link/ports"
import { Policies, type PolicyMakers } from "@pure-link/recovery"
import { silentTrace, type Trace } from "@pure-link/trace"
import { type Address, type Micros, never, type StreamName } from "@pure-link/wire"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import { Driver, type DriverCounters } from "./Driver.ts"
import type { DeliberateFaults } from "./Faults.ts"
import { Journal } from "./Journal.ts"
import type { LinkEvent } from "./LinkEvent.ts"
import { keepSocket } from "./SocketKeeper.ts"

export interface NodeOptions {
  /** The node's static X25519 key pair. Peers know the public half. */
  readonly identity: KeyPair
  /** Where to listen. Port 0 takes a free one; host `::` serves IPv6 and IPv4, `0.0.0.0` IPv4 only. */
  readonly listen: Address
  /** How long epochs serve (spec §7.6): an hour or 2^22 packets by default. One that none may have is a defect. */
  readonly epochLimits?: Partial<EpochLimits>
  /** Receives every protocol event; silent by default. */
  readonly trace?: Trace
  /** For tests of the tests only. */
  readonly faults?: DeliberateFaults
}

/** Counters of a node by part; all are counts since it opened, for metrics and tests. */
export interface NodeCounters {
  readonly driver: Readonly<DriverCounters>
  readonly socket: Readonly<SocketCounters>
  /** One entry per open output: its names and the counters of its sender machine. */
  readonly outputs: ReadonlyArray<StreamName & { readonly counters: Readonly<Record<string, number>> }>
  /** The counters of the receiver machine, if there is one. */
  readonly receiver: Readonly<Record<string, number>> | undefined
  /** Events reported, by name; `OutputRefused` is spec §11.3's link_refused, `InputRefused` its listener_refused. */
  readonly events: Readonly<Record<string, number>>
}

/** The node has ended by itself, because of an error of Pure Link or because its inbox did. */
export class NodeFailed extends Data.TaggedError("NodeFailed")<{ readonly detail: string }> {
  override get message(): string {
    return this.detail
  }
}

/** What rooms around the node attach with; applications have no use for it. */
export interface NodeSeam {
  readonly options: NodeOptions
  readonly suite: Cryptography["Service"]
  readonly entropy: Entropy["Service"]
  readonly policies: PolicyMakers
  readonly trace: Trace
  readonly driver: Driver
  readonly journal: Journal
  /** Protocol time: whole microseconds of the monotonic clock. */
  readonly now: () => Micros
  /** Ends everything for good, with an event: the node cannot do its work any more. */
  readonly fail: (message: string) => void
  /** Fails when the node has failed. */
  readonly failed: Effect.Effect<never, NodeFailed>
  /** Lets a fiber of the node end everything, with an event, when it dies of a defect. */
  readonly guard: <A, E, R>(part: string, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Asks for a turn soon, after everyone who is ready now has been heard: many appends, one packet. */
  readonly wake: () => void
}

/** An open node. Use `LinkNode.layer` to make one, `Output.open` and `Inputs.layer` to use it. */
export class LinkNode extends Context.Service<
  LinkNode,
  {
    /** The bound address, with the port that was taken. */
    readonly address: Address
    /** The public half of the node's identity. */
    readonly publicKey: Uint8Array
    /** A snapshot of all counters. */
    readonly counters: Effect.Effect<NodeCounters>
    /** What happens from now on; a slow reader loses the oldest events, which the log still has. */
    readonly events: Stream.Stream<LinkEvent>
    readonly seam: NodeSeam
  }
>()("@pure-link/link/LinkNode") {
  /**
   * Opens the socket and starts the driver. Fails with `SocketError` when the socket cannot be bound at first; one that
   * dies later is opened again, with `SocketFailed` and `SocketReopened` events. Closing the scope ends the driver and
   * the socket.
   */
  static readonly layer = (
    options: NodeOptions
  ): Layer.Layer<LinkNode, SocketError, DatagramSocket | Cryptography | Entropy | Policies> =>
    Layer.effect(LinkNode, openNode(options))
}

/** A timer is never set for longer, whatever a machine asks for. */
const longestSleep: Micros = 3_600_000_000

const openNode = Effect.fnUntraced(function* (options: NodeOptions) {
  epochLimits(options.epochLimits) // throws for what no epoch may have
  const sockets = yield* DatagramSocket
  const suite = yield* Cryptography
  const entropy = yield* Entropy
  const policies = yield* Policies.chosen
  const clock = yield* Clock.Clock
  const scope = yield* Effect.scope
  const now = (): Micros => Math.floor(Number(clock.monotonicTimeNanosUnsafe()) / 1_000)
  const journal = yield* Journal.start
  const driver = new Driver()
  const loop = new Loop(driver, now)
  const address = yield* keepSocket({ open: sockets.open, driver, journal, now, wake: loop.wakeNow }, options.listen)
  yield* Effect.addFinalizer(() => Effect.sync(() => driver.close()))
  const failed = Deferred.makeUnsafe<never, NodeFailed>()
  const failNode = (message: string): void => {
    if (!Deferred.doneUnsafe(failed, Effect.fail(new NodeFailed({ detail: message })))) return
    journal.report({ _tag: "NodeFailed", at: now(), level: "error", message })
    driver.close()
  }
  const guard = <A, E, R>(part: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.onError(effect, (cause) =>
      Effect.sync(() => {
        if (Cause.hasInterruptsOnly(cause)) return
        failNode(
          `the ${part} died of an error of Pure Link itself; close the node and open it again: ` + Cause.pretty(cause)
        )
      })
    )
  yield* Effect.forkScoped(guard("driver", loop.run(scope)))
  return LinkNode.of({
    address,
    publicKey: options.identity.publicKey,
    counters: Effect.sync(() => snapshot(driver, journal)),
    events: journal.events,
    seam: {
      options,
      suite,
      entropy,
      driver,
      journal,
      now,
      fail: failNode,
      failed: Deferred.await(failed),
      guard,
      policies: driver.socket?.dontFragment === false ? withCuts(policies) : policies,
      trace: options.trace ?? silentTrace,
      wake: loop.wake
    }
  })
})

/** Path MTU discovery hears that a probe would prove nothing, as the socket cannot keep datagrams whole (spec §14.8). */
const withCuts = (policies: PolicyMakers): PolicyMakers => ({
  ...policies,
  pathMtu: { make: (options) => policies.pathMtu.make({ ...options, mayBeCut: true }) }
})

/**
 * A turn that received so many datagrams is one of a flood of them: the next comes a little later and finds more, as what
 * a turn costs beside its datagrams is the same for few and for many. Only where a timer is fine enough for such a rest.
 */
const busyTurn = 64
const restTime: Micros = 500
/** Arming a fine timer that fires so soon costs more than to look at what else is ready, and then to turn again. */
const shortestSleep: Micros = 50

/** The waiting of the driver fiber: a latch that anyone opens, and one timer that is only ever moved to earlier. */
class Loop {
  readonly #driver: Driver
  readonly #now: () => Micros
  readonly #latch = Latch.makeUnsafe(true)
  #gather = false
  #timer: Fiber.Fiber<void> | undefined
  #armed: Micros = never
  /** The socket whose timer is used; undefined while that is the clock's. */
  #timing: OpenSocket | undefined
  /** No turn before, whoever calls; a timer is armed for it. */
  #restUntil: Micros = 0

  constructor(driver: Driver, now: () => Micros) {
    this.#driver = driver
    this.#now = now
  }

  /** From machines' surroundings: the turn comes after all who are ready now, so that they share packets. */
  readonly wake = (): void => {
    this.#gather = true
    this.wakeNow()
  }

  /** From the socket: datagrams wait, or its timer fired. */
  readonly wakeNow = (): void => {
    if (!this.#rests) this.#latch.openUnsafe()
  }

  /** Between busy turns, with a timer armed that ends it. */
  get #rests(): boolean {
    return this.#restUntil > 0 && this.#driver.socket === this.#timing && this.#now() < this.#restUntil
  }

  /** Turns for ever. The latch is closed before state is read, so that nothing that happens later is missed. */
  run(scope: Scope.Scope): Effect.Effect<never> {
    return Effect.gen({ self: this }, function* () {
      for (;;) {
        yield* this.#latch.await
        if (this.#gather) yield* Effect.yieldNow
        this.#gather = false
        this.#latch.closeUnsafe()
        this.#restUntil = 0
        const now = this.#now()
        const more = this.#driver.turn(now)
        this.#driver.settle(now)
        if (more || this.#isSoon(now)) {
          this.#latch.openUnsafe()
          yield* Effect.yieldNow
        } else yield* this.#arm(scope, this.#rest(this.#driver.deadline(now), now), now)
      }
    })
  }

  #isSoon(now: Micros): boolean {
    return this.#driver.socket?.wakeAfter !== undefined && this.#driver.deadline(now) < now + shortestSleep
  }

  /** Rests after a busy turn, but not beyond a deadline; returns when the next turn is due. */
  #rest(deadline: Micros, now: Micros): Micros {
    const { receivedInTurn, socket } = this.#driver
    if (receivedInTurn < busyTurn || socket?.wakeAfter === undefined) return deadline
    this.#armed = never // an earlier timer would fire during the rest, to no effect
    return (this.#restUntil = Math.max(now + 1, Math.min(deadline, now + restTime)))
  }

  /** Arms the timer for a deadline earlier than the armed one; a later one is looked at again when the timer fires. */
  #arm(scope: Scope.Scope, deadline: Micros, now: Micros): Effect.Effect<void> {
    const { socket } = this.#driver
    const timing = socket?.wakeAfter === undefined ? undefined : socket
    // A socket's timer has fired by then, and is gone with the socket.
    if (now >= this.#armed || timing !== this.#timing) this.#armed = never
    const at = Math.min(deadline, now + longestSleep)
    if (at >= this.#armed || deadline === never) return Effect.void
    this.#timing = timing
    if (timing !== undefined) {
      this.#armed = at
      timing.wakeAfter!(Math.max(1, at - now))
      return Effect.void
    }
    return Effect.suspend(() => {
      this.#timer?.interruptUnsafe()
      this.#armed = at
      const fire = Effect.sync(() => {
        this.#armed = never
        this.#timer = undefined
        this.#latch.openUnsafe()
      })
      const wait = Effect.andThen(Effect.sleep(Math.max(1, at - now) / 1_000), fire)
      return Effect.map(Effect.forkIn(wait, scope, { startImmediately: true }), (timer) => {
        if (this.#armed === at) this.#timer = timer
      })
    })
  }
}

const noSocket: SocketCounters = { sent: 0, received: 0, sendErrors: 0, receiveErrors: 0, receiveDrops: 0, rebinds: 0 }

const snapshot = (driver: Driver, journal: Journal): NodeCounters => ({
  driver: { ...driver.counters },
  socket: { ...(driver.socket?.counters ?? noSocket) },
  outputs: driver.senders.map(({ counters, name }) => ({ ...name, counters: { ...counters } })),
  receiver: driver.receiver && { ...driver.receiver.counters },
  events: { ...journal.counts }
})

import { DatagramSocket, type OpenSocket, SocketError } from "@pure-link/ports"
import { type Address, formatAddress, type Micros } from "@pure-link/wire"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { Agenda, type Entry } from "./Agenda.ts"
import { type Alarm, makeAlarm } from "./Alarm.ts"
import { type LinkCounters, type LinkOptions, perfectLink, VirtualLink } from "./VirtualLink.ts"
import { copyOf, VirtualSocket } from "./VirtualSocket.ts"

/**
 * A network of named hosts inside one program, with sockets of the same interface as real ones. A seed determines what
 * befalls every datagram, so that one seed gives one course of events, to the byte, on a `Sim` and on TestClock alike
 * (there, binary fractions of a millisecond may order a sleep and an arrival of the same microsecond either way, but
 * always the same way). Build its layer inside the program whose clock it shall follow.
 */

export interface NetworkOptions {
  readonly seed: number
  /** What every link does, unless `configure` changes it; 1 ms and perfect if not given. */
  readonly link?: Partial<LinkOptions>
  /** Datagrams that may wait in a socket; 4,096 if not given. */
  readonly receiveQueue?: number
}

/** What befell a datagram. One that is sent meets one or two of the others later, or one at once. */
export type Fate =
  | "sent"
  | "lost"
  | "duplicated"
  | "tooLarge"
  | "cut"
  | "sieved"
  | "arrived"
  | "unreachable"
  | "overrun"

export interface Passage {
  readonly at: Micros
  readonly fate: Fate
  readonly from: Address
  readonly to: Address
  /** Valid only during the call, and not to be changed. */
  readonly bytes: Uint8Array
}

interface Delivery extends Entry {
  readonly bytes: Uint8Array
  readonly from: Address
  readonly to: Address
  readonly link: VirtualLink
}

export class VirtualNetwork extends Context.Service<VirtualNetwork, Network>()(
  "@pure-link/virtual-net/VirtualNetwork"
) {
  static readonly layer = (options: NetworkOptions): Layer.Layer<VirtualNetwork> =>
    Layer.effect(
      VirtualNetwork,
      Effect.gen(function* () {
        const network = new Network(options, yield* Clock.Clock, yield* Effect.context<never>())
        yield* Effect.addFinalizer(() => Effect.sync(() => network.stop()))
        return network
      })
    )

  /** The sockets of one host, to be given to whatever runs on it. */
  static readonly host = (host: string): Layer.Layer<DatagramSocket, never, VirtualNetwork> =>
    Layer.effect(
      DatagramSocket,
      Effect.map(VirtualNetwork, (network) => network.socketsOf(host))
    )
}

export class Network {
  /** A test's own loss: called for every datagram that is sent; true drops it. The bytes are not to be changed. */
  sieve: ((bytes: Uint8Array, from: Address, to: Address) => boolean) | undefined
  readonly #seed: number
  readonly #receiveQueue: number
  readonly #defaults: LinkOptions
  readonly #links = new Map<string, VirtualLink>()
  readonly #sockets = new Map<string, VirtualSocket>()
  readonly #nextPorts = new Map<string, number>()
  readonly #underWay = new Agenda<Delivery>()
  readonly #toBeCalled: Array<VirtualSocket> = []
  readonly #alarm: Alarm
  #taps: ReadonlyArray<(passage: Passage) => void> = []

  constructor(options: NetworkOptions, clock: Clock.Clock, context: Context.Context<never>) {
    this.#seed = options.seed
    this.#receiveQueue = options.receiveQueue ?? 4_096
    this.#defaults = { ...perfectLink, ...options.link }
    this.#alarm = makeAlarm(clock, context, () => this.#deliverDue())
  }

  /** Virtual time in whole microseconds. */
  now(): Micros {
    return this.#alarm.now()
  }

  /** Datagrams that are under way. */
  get underWay(): number {
    return this.#underWay.size
  }

  /**
   * The `DatagramSocket` service of one host. A socket binds to the host's name, `0.0.0.0` or `::`, which are the same
   * here.
   */
  socketsOf(host: string): DatagramSocket["Service"] {
    return {
      open: (at) =>
        Effect.acquireRelease(
          Effect.suspend(() => this.#bind(host, at)),
          (socket) => Effect.sync(() => this.#unbind(socket))
        ) as Effect.Effect<OpenSocket, SocketError, Scope.Scope>
    }
  }

  /** Changes what the link from one host to another does to datagrams sent from now on; the way back stays as it is. */
  configure(from: string, to: string, options: Partial<LinkOptions>): void {
    const link = this.#link(from, to)
    link.options = { ...link.options, ...options }
  }

  /** Changes both directions between two hosts. */
  configureBoth(a: string, b: string, options: Partial<LinkOptions>): void {
    this.configure(a, b, options)
    this.configure(b, a, options)
  }

  /** Drops what the two hosts send each other from now on. What is under way arrives. */
  partition(a: string, b: string): void {
    this.#link(a, b).isCut = this.#link(b, a).isCut = true
  }

  heal(a: string, b: string): void {
    this.#link(a, b).isCut = this.#link(b, a).isCut = false
  }

  counters(from: string, to: string): Readonly<LinkCounters> {
    return this.#link(from, to).counters
  }

  /** Shows every datagram and what befalls it to `watch`, until the returned function is called. */
  tap(watch: (passage: Passage) => void): () => void {
    this.#taps = [...this.#taps, watch]
    return () => {
      this.#taps = this.#taps.filter((other) => other !== watch)
    }
  }

  /**
   * Puts a datagram on the network as if `from` had sent it: forged, replayed or damaged, it meets the link's fate as
   * any.
   */
  inject(bytes: Uint8Array, from: Address, to: Address): void {
    this.#transmit(copyOf(bytes), from, to)
  }

  /** Makes the socket bound to `at` die for good: its `died` fails. */
  kill(at: Address, code = "EBADF"): void {
    const socket = this.#sockets.get(formatAddress(at))
    if (socket === undefined) throw new Error(`no socket is open at ${formatAddress(at)}`)
    this.#sockets.delete(formatAddress(at))
    socket.die(code)
  }

  /** Ends all traffic. */
  stop(): void {
    this.#alarm.stop()
    while (this.#underWay.takeFirst() !== undefined);
  }

  #bind(host: string, at: Address): Effect.Effect<VirtualSocket, SocketError> {
    const fail = (code: string, remedy: string) =>
      Effect.fail(new SocketError({ operation: "bind", address: at, code, remedy }))
    if (at.host !== host && at.host !== "0.0.0.0" && at.host !== "::") {
      return fail("EADDRNOTAVAIL", `bind to ${host}, the host that this program runs on`)
    }
    const local = { host, port: at.port === 0 ? this.#freePort(host) : at.port }
    if (this.#sockets.has(formatAddress(local))) return fail("EADDRINUSE", "choose another port, or 0 for a free one")
    const socket = new VirtualSocket(local, this.#receiveQueue, (bytes, from, to) => this.#transmit(bytes, from, to))
    this.#sockets.set(formatAddress(local), socket)
    return Effect.succeed(socket)
  }

  #unbind(socket: VirtualSocket): void {
    socket.close()
    const name = formatAddress(socket.local)
    if (this.#sockets.get(name) === socket) this.#sockets.delete(name)
  }

  #freePort(host: string): number {
    let port = this.#nextPorts.get(host) ?? firstFreePort
    while (this.#sockets.has(formatAddress({ host, port }))) port = port === lastPort ? firstFreePort : port + 1
    this.#nextPorts.set(host, port === lastPort ? firstFreePort : port + 1)
    return port
  }

  #link(from: string, to: string): VirtualLink {
    const name = `${from}>${to}`
    let link = this.#links.get(name)
    if (link === undefined) {
      link = new VirtualLink(this.#seed, from, to, this.#defaults)
      this.#links.set(name, link)
    }
    return link
  }

  /** Takes over `bytes`. */
  #transmit(bytes: Uint8Array, from: Address, to: Address): void {
    const link = this.#link(from.host, to.host)
    const counters = link.counters
    counters.sent++
    counters.sentBytes += bytes.length
    link.draw()
    this.#show("sent", from, to, bytes)
    const obstacle = this.#obstacle(link, bytes, from, to)
    if (obstacle !== undefined) {
      counters[obstacle]++
      this.#show(obstacle, from, to, bytes)
      return
    }
    if (link.isReordered) counters.reordered++
    this.#carry(bytes, from, to, link, link.delay)
    if (!link.isDuplicated) return
    counters.duplicated++
    this.#show("duplicated", from, to, bytes)
    this.#carry(bytes.slice(), from, to, link, link.copyDelay)
  }

  #obstacle(link: VirtualLink, bytes: Uint8Array, from: Address, to: Address) {
    if (link.isCut) return "cut"
    if (bytes.length > link.options.mtu) return "tooLarge"
    if (this.sieve?.(bytes, from, to) === true) return "sieved"
    return link.isLost ? "lost" : undefined
  }

  #carry(bytes: Uint8Array, from: Address, to: Address, link: VirtualLink, delay: Micros): void {
    const at = this.now() + delay
    this.#underWay.add({ at, order: this.#underWay.nextOrder(), bytes, from, to, link })
    this.#alarm.set(at)
  }

  /** All that is due at this instant arrives; then each socket that it reached calls its driver once. */
  #deliverDue(): void {
    const now = this.now()
    for (let due = this.#underWay.first(); due !== undefined && due.at <= now; due = this.#underWay.first()) {
      this.#underWay.takeFirst()
      this.#deliver(due)
    }
    const next = this.#underWay.first()
    if (next !== undefined) this.#alarm.set(next.at)
    for (const socket of this.#toBeCalled.splice(0)) socket.callDriver()
  }

  #deliver({ bytes, from, to, link }: Delivery): void {
    const socket = this.#sockets.get(formatAddress(to))
    const fate = socket === undefined ? "unreachable" : socket.arrive(bytes, from) ? "arrived" : "overrun"
    link.counters[fate]++
    if (fate === "arrived") link.counters.arrivedBytes += bytes.length
    this.#show(fate, from, to, bytes)
    if (socket === undefined || socket.isToBeCalled) return
    socket.isToBeCalled = true
    this.#toBeCalled.push(socket)
  }

  #show(fate: Fate, from: Address, to: Address, bytes: Uint8Array): void {
    if (this.#taps.length === 0) return
    const passage = { at: this.now(), fate, from, to, bytes }
    for (const watch of this.#taps) watch(passage)
  }
}

const firstFreePort = 49_152
const lastPort = 65_535

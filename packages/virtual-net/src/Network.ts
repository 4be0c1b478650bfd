import { type DatagramSocket, type OpenSocket, SocketError } from "@pure-link/ports"
import { type Address, type Bytes, formatAddress, type Micros, never } from "@pure-link/wire"
import type * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Agenda, type Entry } from "./Agenda.ts"
import { type Alarm, makeAlarm } from "./Alarm.ts"
import { Bottleneck, type BottleneckCounters, type BottleneckOptions, type FlowCounters } from "./Bottleneck.ts"
import type { Corruption } from "./Corruption.ts"
import { DatagramMemory } from "./DatagramMemory.ts"
import { EndpointDirectory } from "./EndpointDirectory.ts"
import { checkLinkOptions, type LinkOptions, perfectLink } from "./LinkOptions.ts"
import type { Fate, Passage } from "./Passage.ts"
import { checkScheduleStep, type ScheduleStep } from "./Schedule.ts"
import { type Station, StationEndpoint, type StationPort } from "./Station.ts"
import { type LinkCounters, VirtualLink } from "./VirtualLink.ts"
import { VirtualSocket } from "./VirtualSocket.ts"

/**
 * A network of named hosts inside one program, with sockets of the same interface as real ones. A seed determines what
 * befalls every datagram, so that one seed gives one course of events, to the byte, on a `Sim` and on TestClock alike
 * (there, binary fractions of a millisecond may order a sleep and an arrival of the same microsecond either way, but
 * always the same way).
 */

export interface NetworkOptions {
  readonly seed: number
  /** What every link does, unless `configure` changes it; 1 ms and perfect if not given. */
  readonly link?: Partial<LinkOptions>
  /** Datagrams that may wait in a socket; 4,096 if not given. */
  readonly receiveQueue?: number
}

class Delivery implements Entry {
  readonly at: Micros
  readonly order: number
  readonly bytes: Uint8Array
  readonly from: Address
  readonly to: Address
  readonly link: VirtualLink

  constructor(at: Micros, order: number, bytes: Uint8Array, from: Address, to: Address, link: VirtualLink) {
    this.at = at
    this.order = order
    this.bytes = bytes
    this.from = from
    this.to = to
    this.link = link
  }
}

interface Appointment extends Entry {
  readonly fire: () => void
}

export class Network {
  /** A test's own loss: called for every datagram that is sent; true drops it. The bytes are not to be changed. */
  sieve: ((bytes: Uint8Array, from: Address, to: Address) => boolean) | undefined
  readonly #seed: number
  readonly #receiveQueue: number
  readonly #defaults: LinkOptions
  readonly #links = new Map<string, Map<string, VirtualLink>>()
  readonly #bottlenecks = new Map<string, Bottleneck>()
  readonly #endpoints = new EndpointDirectory()
  readonly #agenda = new Agenda<Delivery | Appointment>()
  readonly #toBeCalled: Array<VirtualSocket> = []
  readonly #memory = new DatagramMemory()
  readonly #alarm: Alarm
  #underWay = 0
  #isRinging = false
  #taps: ReadonlyArray<(passage: Passage) => void> = []

  constructor(options: NetworkOptions, clock: Clock.Clock, context: Context.Context<never>) {
    this.#seed = options.seed
    this.#receiveQueue = options.receiveQueue ?? 4_096
    this.#defaults = { ...perfectLink, ...options.link }
    checkLinkOptions(this.#defaults)
    this.#alarm = makeAlarm(clock, context, () => this.#ring())
  }

  /** Virtual time in whole microseconds. */
  now(): Micros {
    return this.#alarm.now()
  }

  /** Datagrams that are under way, those that wait in front of a bottleneck among them. */
  get underWay(): number {
    return this.#underWay
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

  /** Puts a raw endpoint at an address; port 0 takes a free one. */
  station(at: Address, station: Station): StationPort {
    const local = { host: at.host, port: at.port === 0 ? this.#endpoints.freePort(at.host) : at.port }
    if (this.#endpoints.isTaken(local)) throw new Error(`${formatAddress(local)} is taken`)
    const endpoint = new StationEndpoint(local, station, this, () => this.#endpoints.remove(endpoint))
    this.#endpoints.add(endpoint)
    return endpoint
  }

  /**
   * A NAT gives the socket (or station) bound to `local` another outside address, which may be on another host: from
   * now on its datagrams come from `outside`, over the links and as the flow of that address, and what arrives there
   * reaches it, even if it was sent before. What arrives at its former outside address is unreachable. Its `local`
   * stays, and giving it back as `outside` undoes it all.
   */
  rebind(local: Address, outside: Address): void {
    this.#endpoints.move(local, outside)
  }

  /** Makes a bottleneck that links can lead through, or changes what it does from now on. Its counters go on. */
  bottleneck(name: string, options: BottleneckOptions): void {
    const bottleneck = this.#bottlenecks.get(name)
    if (bottleneck === undefined) this.#bottlenecks.set(name, new Bottleneck(options))
    else bottleneck.change(options)
  }

  bottleneckCounters(name: string): Readonly<BottleneckCounters> {
    return this.#bottleneck(name).counters
  }

  /** What the sender with this (outside) address sent through a bottleneck; zeros if nothing came yet. */
  flowCounters(name: string, from: Address): Readonly<FlowCounters> {
    return this.#bottleneck(name).flow(from)
  }

  /** Bytes on the wire that wait in front of a bottleneck at this moment, without the datagram that is being sent. */
  waitingBytes(name: string): Bytes {
    return this.#bottleneck(name).waitingBytes(this.now())
  }

  /** Changes what the link from one host to another does to datagrams sent from now on; the way back stays as it is. */
  configure(from: string, to: string, options: Partial<LinkOptions>): void {
    const link = this.#link(from, to)
    const changed = { ...link.options, ...options }
    checkLinkOptions(changed)
    link.bottleneck = changed.bottleneck === undefined ? undefined : this.#bottleneck(changed.bottleneck)
    link.options = changed
  }

  /** Changes both directions between two hosts. */
  configureBoth(a: string, b: string, options: Partial<LinkOptions>): void {
    this.configure(a, b, options)
    this.configure(b, a, options)
  }

  /** Drops what the two hosts send each other from now on, in front of any bottleneck. What is under way arrives. */
  partition(a: string, b: string): void {
    this.#link(a, b).isCut = this.#link(b, a).isCut = true
  }

  heal(a: string, b: string): void {
    this.#link(a, b).isCut = this.#link(b, a).isCut = false
  }

  /**
   * Calls `fire` at this virtual time, or soon if it is past; never in the caller's stack. What is set for one moment
   * is called in the order of setting.
   */
  at(at: Micros, fire: () => void): void {
    if (Number.isNaN(at)) throw new RangeError("a time must be a number of microseconds, but is NaN")
    if (at !== never) this.#enter({ at: Math.max(Math.ceil(at), this.now()), order: this.#agenda.nextOrder(), fire })
  }

  /** Has the link from one host to another change over time. The bottlenecks that steps name must have been made. */
  schedule(from: string, to: string, steps: ReadonlyArray<ScheduleStep>): void {
    for (const step of steps) {
      checkScheduleStep(step)
      if (step.options?.bottleneck !== undefined) this.#bottleneck(step.options.bottleneck)
    }
    for (const { atMicros, options = {}, cut } of steps) {
      this.at(atMicros, () => {
        this.configure(from, to, options)
        if (cut !== undefined) this.#link(from, to).isCut = cut
      })
    }
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
    this.#transmit(this.#memory.copy(bytes), from, to)
  }

  /** Makes the socket bound to `at` die for good: its `died` fails. */
  kill(at: Address, code = "EBADF"): void {
    const socket = this.#endpoints.boundTo(at)
    if (!(socket instanceof VirtualSocket)) throw new Error(`no socket is open at ${formatAddress(at)}`)
    this.#endpoints.remove(socket)
    socket.die(code)
  }

  /** Ends all traffic. */
  stop(): void {
    this.#alarm.stop()
    while (this.#agenda.takeFirst() !== undefined);
    this.#underWay = 0
  }

  #bind(host: string, at: Address): Effect.Effect<VirtualSocket, SocketError> {
    const fail = (code: string, remedy: string) =>
      Effect.fail(new SocketError({ operation: "bind", address: at, code, remedy }))
    if (at.host !== host && at.host !== "0.0.0.0" && at.host !== "::") {
      return fail("EADDRNOTAVAIL", `bind to ${host}, the host that this program runs on`)
    }
    const local = { host, port: at.port === 0 ? this.#endpoints.freePort(host) : at.port }
    if (this.#endpoints.isTaken(local)) return fail("EADDRINUSE", "choose another port, or 0 for a free one")
    const socket = new VirtualSocket(local, this.#receiveQueue, {
      send: (bytes, start, end, from, to) => this.#transmit(this.#memory.copy(bytes, start, end), from, to),
      callLater: (socket) => void this.#toBeCalled.push(socket)
    })
    this.#endpoints.add(socket)
    return Effect.succeed(socket)
  }

  #unbind(socket: VirtualSocket): void {
    socket.close()
    this.#endpoints.remove(socket)
  }

  #bottleneck(name: string): Bottleneck {
    const bottleneck = this.#bottlenecks.get(name)
    if (bottleneck === undefined) throw new Error(`there is no bottleneck "${name}" yet: make it with \`bottleneck\``)
    return bottleneck
  }

  #link(from: string, to: string): VirtualLink {
    let links = this.#links.get(from)
    if (links === undefined) this.#links.set(from, (links = new Map()))
    let link = links.get(to)
    if (link === undefined) {
      const { bottleneck } = this.#defaults
      const passed = bottleneck === undefined ? undefined : this.#bottleneck(bottleneck)
      links.set(to, (link = new VirtualLink(this.#seed, from, to, this.#defaults, passed)))
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
    if (link.isCut) return this.#drop("cut", link, bytes, from, to)
    const start = link.bottleneck === undefined ? this.now() : link.bottleneck.pass(this.now(), bytes.length, from)
    if (start === never) return this.#drop("queueDropped", link, bytes, from, to)
    const obstacle = this.#obstacle(link, bytes, from, to)
    if (obstacle !== undefined) return this.#drop(obstacle, link, bytes, from, to)
    if (link.isReordered) counters.reordered++
    this.#carry(bytes, from, to, link, Math.round(start))
  }

  #drop(
    fate: "cut" | "queueDropped" | "tooLarge" | "sieved" | "lost",
    link: VirtualLink,
    bytes: Uint8Array,
    from: Address,
    to: Address
  ): void {
    link.counters[fate]++
    this.#show(fate, from, to, bytes)
  }

  #obstacle(link: VirtualLink, bytes: Uint8Array, from: Address, to: Address) {
    if (bytes.length > link.options.mtu) return "tooLarge"
    if (this.sieve?.(bytes, from, to) === true) return "sieved"
    return link.isLost ? "lost" : undefined
  }

  /** Sends a datagram, and its copy if it has one, on the way from the bottleneck to the receiver. */
  #carry(bytes: Uint8Array, from: Address, to: Address, link: VirtualLink, start: Micros): void {
    const copy = link.isDuplicated ? this.#memory.copy(bytes) : undefined
    this.#launch(bytes, from, to, link, start + link.delay, link.corruption)
    if (copy === undefined) return
    link.counters.duplicated++
    this.#show("duplicated", from, to, copy)
    this.#launch(copy, from, to, link, start + link.copyDelay, link.copyCorruption)
  }

  /** The last of what can befall it on the way. */
  #launch(bytes: Uint8Array, from: Address, to: Address, link: VirtualLink, at: Micros, corruption: Corruption): void {
    if (corruption.isDue && bytes.length > 0) {
      corruption.apply(bytes)
      link.counters.corrupted++
      this.#show("corrupted", from, to, bytes)
    }
    this.#underWay++
    this.#enter(new Delivery(at, this.#agenda.nextOrder(), bytes, from, to, link))
  }

  #enter(entry: Delivery | Appointment): void {
    this.#agenda.add(entry)
    if (!this.#isRinging) this.#alarm.set(entry.at)
  }

  /** All that is due at this instant happens; then each socket that was reached calls its driver once. */
  #ring(): void {
    this.#isRinging = true
    try {
      this.#settle(this.now())
    } finally {
      this.#isRinging = false
      const next = this.#agenda.first()
      if (next !== undefined) this.#alarm.set(next.at)
    }
    for (const socket of this.#toBeCalled.splice(0)) socket.callDriver()
  }

  #settle(now: Micros): void {
    let left = mostAtOnce
    for (let due = this.#agenda.first(); due !== undefined && due.at <= now; due = this.#agenda.first()) {
      this.#agenda.takeFirst()
      if (due instanceof Delivery) this.#deliver(due)
      else due.fire()
      if (--left === 0) throw new Error(`${mostAtOnce} events at ${now} µs: does one set itself again at once?`)
    }
  }

  #deliver({ bytes, from, to, link }: Delivery): void {
    this.#underWay--
    const endpoint = this.#endpoints.reachedAt(to)
    const fate = endpoint === undefined ? "unreachable" : endpoint.arrive(bytes, from) ? "arrived" : "overrun"
    link.counters[fate]++
    if (fate === "arrived") link.counters.arrivedBytes += bytes.length
    this.#show(fate, from, to, bytes)
    endpoint?.attend()
  }

  #show(fate: Fate, from: Address, to: Address, bytes: Uint8Array): void {
    if (this.#taps.length === 0) return
    const passage = { at: this.now(), fate, from, to, bytes }
    for (const watch of this.#taps) watch(passage)
  }
}

/** Far more than an honest network has at one instant. */
const mostAtOnce = 1_000_000

import type {
  NativeSocket as Handle,
  NativeTimer,
  SocketAddon,
  SocketCapabilities,
  SocketSettings
} from "@pure-link/native"
import { ReceivedDatagrams, type SocketCounters, type SocketError } from "@pure-link/ports"
import type { Address, Bytes, Micros } from "@pure-link/wire"
import type * as Effect from "effect/Effect"
import { getSystemErrorMap } from "node:util"
import { isPort } from "./addresses.ts"
import type { SupervisedSocket, Supervisor } from "./supervision.ts"

/**
 * An open socket over the addon. Datagrams cross the boundary in batches, through tables that were handed over once; here
 * is only what names things: peers by `Address`, errors by code. Peers are known by a number, and an address object is
 * made when a place in the addon's memory of peers changes hands.
 */
export interface NativeSocketOptions extends Supervisor {
  readonly addon: SocketAddon
  readonly settings: SocketSettings
  /** Places for messages from the system, of 64 KiB each. */
  readonly receiveSlots: number
  readonly receivedAtOnce: number
}

const slotBytes: Bytes = 65_536
const rememberedPeers = 256
/** Places in the addon's table of counters; errors by errno follow from 16 on. */
const counterPlaces = {
  sent: 0,
  received: 1,
  sendErrors: 2,
  receiveErrors: 3,
  receiveDrops: 4,
  sendCalls: 8,
  receiveCalls: 9
}
const tracePlaces = { truncated: 5, queued: 6, stepDowns: 7, messages: 10, trains: 11 }
const firstErrno = 16
const tableLength = 256

export class NativeSocket implements SupervisedSocket {
  readonly counters: Readonly<SocketCounters>
  readonly died: Effect.Effect<never, SocketError>
  /** Absent where the system has no timerfd. */
  readonly wakeAfter?: (delay: Micros) => void
  #local: Address = { host: "", port: 0 }
  #buffers = { receive: 0, send: 0 }
  readonly #supervisor: Supervisor
  readonly #addon: SocketAddon
  readonly #handle: Handle
  readonly #timer: NativeTimer | undefined
  readonly #received: ReceivedDatagrams
  readonly #peers: Uint32Array
  readonly #news = new Uint32Array(2 + rememberedPeers)
  readonly #addresses: Array<Address> = []
  readonly #table = new Float64Array(tableLength)
  #rebinds = 0
  #isForbidden = false
  #onReadable: (() => void) | undefined
  /** The last destination, and all of them, in the addon's form. */
  #to: Address | undefined
  #encodedTo: Uint8Array = nowhere
  readonly #encoded = new WeakMap<Address, Uint8Array>()

  constructor(options: NativeSocketOptions) {
    this.died = options.died
    this.#supervisor = options
    this.#addon = options.addon
    const bytes = options.receiveSlots * slotBytes
    this.#received = new ReceivedDatagrams(options.receivedAtOnce, bytes, bytes)
    this.#peers = new Uint32Array(options.receivedAtOnce)
    const { ecn, ends, starts } = this.#received
    const tables = { bytes: this.#received.bytes, starts, ends, ecn, peers: this.#peers, news: this.#news }
    this.#handle = new options.addon.Socket(tables, options.settings, (code) => this.#handleCall(code))
    this.counters = this.#makeCounters()
    this.#timer = this.#makeTimer()
    if (this.#timer) this.wakeAfter = (delay) => this.#timer!.arm(Math.max(0, Math.ceil(delay)))
  }

  get local(): Address {
    return this.#local
  }

  get buffers(): { readonly receive: Bytes; readonly send: Bytes } {
    return this.#buffers
  }

  get dontFragment(): boolean {
    return this.#handle.capabilities().dontFragment
  }

  get errorCodes(): ReadonlyMap<string, number> {
    const codes = new Map<string, number>()
    this.#handle.counters(this.#table)
    for (let errno = 1; firstErrno + errno < tableLength; errno++) {
      const count = this.#table[firstErrno + errno]!
      if (count > 0) codes.set(nameOfErrno(errno), count)
    }
    return codes
  }

  get capabilities(): SocketCapabilities & { readonly timer: boolean } {
    return { ...this.#handle.capabilities(), timer: this.#timer !== undefined }
  }

  /** How the work was done, for benchmarks and the curious. */
  get trace(): Readonly<Record<keyof typeof tracePlaces, number>> {
    return this.#read(tracePlaces)
  }

  get onReadable(): (() => void) | undefined {
    return this.#onReadable
  }

  set onReadable(call: (() => void) | undefined) {
    this.#onReadable = call
    this.#handle.watch(call !== undefined)
    if (call !== undefined && this.#handle.waits()) call()
  }

  /** Binds, for the first time or anew; returns the error's code if the system refuses. */
  open(at: Address): string | undefined {
    const result = this.#handle.open(this.#encode(at))
    if (result < 0) return nameOfErrno(-result)
    const { receiveBufferBytes, sendBufferBytes } = this.#handle.capabilities()
    this.#buffers = { receive: receiveBufferBytes, send: sendBufferBytes }
    this.#local = this.#handle.local() ?? at
    return undefined
  }

  /** Binds again where it was bound. */
  openAgain(): string | undefined {
    const code = this.open(this.#local)
    if (code === undefined) this.#rebinds++
    return code
  }

  send(slab: Uint8Array, stride: number, lengths: Uint32Array, count: number, to: Address): void {
    if (to !== this.#to) this.#aim(to)
    const refused = this.#handle.send(slab, stride, lengths, count, this.#encodedTo)
    if (refused === 0) return
    if (refused < 0) this.#supervisor.whenHandleDies(nameOfErrno(-refused))
    else if (!this.#isForbidden) this.#noticeForbidden()
  }

  receive(most: number): ReceivedDatagrams {
    const received = this.#received
    const count = this.#handle.receive(most)
    if (count < 0) {
      received.clear()
      this.#supervisor.whenHandleDies(nameOfErrno(-count))
      return received
    }
    received.count = count
    received.more = this.#news[0] === 1
    if (this.#news[1]! > 0) this.#meet()
    const { from } = received
    const [peers, addresses] = [this.#peers, this.#addresses]
    for (let i = 0; i < count; i++) from[i] = addresses[peers[i]!]!
    return received
  }

  close(whenDone: () => void): void {
    this.#onReadable = undefined
    this.#handle.close()
    this.#timer?.close()
    whenDone()
  }

  #handleCall(code: number): void {
    if (code < 0) this.#supervisor.whenHandleDies(nameOfErrno(-code))
    else this.#onReadable?.()
  }

  /** Learns the addresses of peers that took a place in the addon's memory. */
  #meet(): void {
    const last = 2 + this.#news[1]!
    for (let i = 2; i < last; i++) {
      const index = this.#news[i]!
      this.#addresses[index] = this.#handle.peerAt(index)
    }
  }

  #aim(to: Address): void {
    let encoded = this.#encoded.get(to)
    if (encoded === undefined) this.#encoded.set(to, (encoded = this.#encode(to)))
    this.#to = to
    this.#encodedTo = encoded
  }

  #encode(address: Address): Uint8Array {
    if (!isPort(address.port)) return nowhere
    return this.#addon.encodePeer(address.host, address.port, address.local) ?? nowhere
  }

  #noticeForbidden(): void {
    if (!this.errorCodes.has("EPERM")) return
    this.#isForbidden = true
    this.#supervisor.whenForbidden()
  }

  /** An object that reads the addon's table whenever it is looked at. */
  #makeCounters(): Readonly<SocketCounters> {
    const counters = {}
    for (const [name, place] of Object.entries(counterPlaces)) {
      const get = () => {
        this.#handle.counters(this.#table)
        return this.#table[place]!
      }
      Object.defineProperty(counters, name, { enumerable: true, get })
    }
    Object.defineProperty(counters, "rebinds", { enumerable: true, get: () => this.#rebinds })
    return counters as SocketCounters
  }

  #read<Name extends string>(places: Readonly<Record<Name, number>>): Record<Name, number> {
    this.#handle.counters(this.#table)
    const entries = Object.entries<number>(places).map(([name, place]) => [name, this.#table[place]!] as const)
    return Object.fromEntries(entries) as Record<Name, number>
  }

  #makeTimer(): NativeTimer | undefined {
    try {
      return new this.#addon.Timer(() => this.#onReadable?.())
    } catch {
      return undefined
    }
  }
}

/** An encoded peer that no datagram reaches: port 0 counts as EINVAL. */
const nowhere = new Uint8Array(44)

const errorNames = getSystemErrorMap()

const nameOfErrno = (errno: number): string => errorNames.get(-errno)?.[0] ?? `E${errno}`

import { type OpenSocket, ReceivedDatagrams, type SocketCounters, SocketError } from "@pure-link/ports"
import { type Address, type Bytes, largestDatagram } from "@pure-link/wire"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { Endpoint } from "./Endpoint.ts"

/** What a socket needs of the network. */
export interface SocketGround {
  /** Sends a copy of bytes[start, end). */
  send(bytes: Uint8Array, start: number, end: number, from: Address, to: Address): void
  /** Has `callDriver` called at the end of this instant. */
  callLater(socket: VirtualSocket): void
}

/** What one `receive` hands over at most; the largest datagram fits. */
const receivedAtOnce = 256
const receivedBytes: Bytes = 524_288

/**
 * A socket on a virtual host. As an aid to tests it overwrites what it handed over when it is asked again, so that whoever
 * keeps bytes of a datagram finds out.
 */
export class VirtualSocket implements OpenSocket, Endpoint {
  readonly local: Address
  outside: Address
  readonly counters: SocketCounters = noCounts()
  readonly errorCodes = new Map<string, number>()
  readonly buffers: { readonly receive: Bytes; readonly send: Bytes }
  /** A narrow link swallows what is too long for it. */
  readonly dontFragment = true
  readonly #died = Deferred.makeUnsafe<never, SocketError>()
  readonly died = Deferred.await(this.#died)
  readonly #ground: SocketGround
  readonly #bytes: Array<Uint8Array> = []
  readonly #from: Array<Address> = []
  readonly #queueLength: number
  readonly #received = new ReceivedDatagrams(receivedAtOnce, receivedBytes)
  #next = 0
  #onReadable: (() => void) | undefined
  #isClosed = false
  #isToBeCalled = false

  constructor(local: Address, queueLength: number, ground: SocketGround) {
    this.local = this.outside = local
    this.buffers = { receive: queueLength * largestDatagram, send: 0 }
    this.#queueLength = queueLength
    this.#ground = ground
  }

  get onReadable(): (() => void) | undefined {
    return this.#onReadable
  }

  set onReadable(call: (() => void) | undefined) {
    this.#onReadable = call
    if (this.#next < this.#bytes.length) call?.()
  }

  send(slab: Uint8Array, stride: number, lengths: Uint32Array, count: number, to: Address): void {
    for (let i = 0; i < count; i++) {
      const length = lengths[i]!
      const refusal = this.#isClosed ? "EBADF" : length > 65_507 ? "EMSGSIZE" : undefined
      if (refusal === undefined) {
        this.counters.sent++
        this.#ground.send(slab, i * stride, i * stride + length, this.outside, to)
      } else {
        this.counters.sendErrors++
        this.errorCodes.set(refusal, (this.errorCodes.get(refusal) ?? 0) + 1)
      }
    }
  }

  receive(most: number): ReceivedDatagrams {
    const received = this.#received
    received.bytes.fill(0xdb, 0, received.used)
    received.clear()
    while (received.count < most && this.#next < this.#bytes.length) {
      if (!received.add(this.#bytes[this.#next]!, this.#from[this.#next]!)) break
      this.#next++
    }
    this.counters.received += received.count
    received.more = this.#next < this.#bytes.length
    this.#forgetTaken()
    return received
  }

  arrive(bytes: Uint8Array, from: Address): boolean {
    if (this.#bytes.length - this.#next >= this.#queueLength) {
      this.counters.receiveDrops++
      return false
    }
    this.#bytes.push(bytes)
    this.#from.push(from)
    return true
  }

  /** Asks to be told, once, when all that arrives at this instant is here. */
  attend(): void {
    if (this.#isToBeCalled) return
    this.#isToBeCalled = true
    this.#ground.callLater(this)
  }

  callDriver(): void {
    this.#isToBeCalled = false
    this.#onReadable?.()
  }

  close(): void {
    this.#isClosed = true
    this.#onReadable = undefined
    this.#bytes.length = this.#from.length = this.#next = 0
  }

  /** Dies for good, as a real socket does when it cannot be bound again. */
  die(code: string): void {
    this.close()
    const error = new SocketError({ operation: "receive", address: this.local, code, remedy: "a test killed it" })
    Deferred.doneUnsafe(this.#died, Effect.fail(error))
  }

  #forgetTaken(): void {
    if (this.#next < 1_024 && this.#next < this.#bytes.length) return
    this.#bytes.splice(0, this.#next)
    this.#from.splice(0, this.#next)
    this.#next = 0
  }
}

const noCounts = (): SocketCounters => ({
  sent: 0,
  received: 0,
  sendErrors: 0,
  receiveErrors: 0,
  receiveDrops: 0,
  rebinds: 0
})

import { type OpenSocket, type SocketCounters, SocketError } from "@pure-link/ports"
import { type Address, type Bytes, largestDatagram } from "@pure-link/wire"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"

/**
 * A socket on a virtual host. As an aid to tests it overwrites what it handed to a visitor as soon as the visitor
 * returns, so that whoever keeps bytes of a datagram finds out.
 */
export class VirtualSocket implements OpenSocket {
  readonly local: Address
  readonly counters: SocketCounters = noCounts()
  readonly errorCodes = new Map<string, number>()
  readonly buffers: { readonly receive: Bytes; readonly send: Bytes }
  /** That this socket was already told to call its driver at this instant. */
  isToBeCalled = false
  readonly #died = Deferred.makeUnsafe<never, SocketError>()
  readonly died = Deferred.await(this.#died)
  readonly #transmit: (bytes: Uint8Array, from: Address, to: Address) => void
  readonly #bytes: Array<Uint8Array> = []
  readonly #from: Array<Address> = []
  readonly #queueLength: number
  #next = 0
  #onReadable: (() => void) | undefined
  #isClosed = false

  constructor(local: Address, queueLength: number, transmit: (bytes: Uint8Array, from: Address, to: Address) => void) {
    this.local = local
    this.buffers = { receive: queueLength * largestDatagram, send: 0 }
    this.#queueLength = queueLength
    this.#transmit = transmit
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
      const bytes = copyOf(slab, i * stride, i * stride + lengths[i]!)
      const refusal = this.#isClosed ? "EBADF" : bytes.length > 65_507 ? "EMSGSIZE" : undefined
      if (refusal === undefined) {
        this.counters.sent++
        this.#transmit(bytes, this.local, to)
      } else {
        this.counters.sendErrors++
        this.errorCodes.set(refusal, (this.errorCodes.get(refusal) ?? 0) + 1)
      }
    }
  }

  receive(most: number, visit: (bytes: Uint8Array, from: Address) => void): number {
    let taken = 0
    for (; taken < most && this.#next < this.#bytes.length; taken++) {
      const bytes = this.#bytes[this.#next]!
      const from = this.#from[this.#next++]!
      this.counters.received++
      visit(bytes, from)
      bytes.fill(0xdb)
    }
    this.#forgetTaken()
    return taken
  }

  /** A datagram arrived; false if the queue is full. It belongs to the socket from now on. */
  arrive(bytes: Uint8Array, from: Address): boolean {
    if (this.#bytes.length - this.#next >= this.#queueLength) {
      this.counters.receiveDrops++
      return false
    }
    this.#bytes.push(bytes)
    this.#from.push(from)
    return true
  }

  /** Calls the driver, once for all that arrived at this instant. */
  callDriver(): void {
    this.isToBeCalled = false
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

/** A plain copy, even of a `Buffer`, whose own `slice` makes none. */
export const copyOf = (bytes: Uint8Array, start = 0, end = bytes.length): Uint8Array => {
  const copy = new Uint8Array(end - start)
  copy.set(bytes.subarray(start, end))
  return copy
}

import { ReceivedDatagrams, type SocketCounters, type SocketError } from "@pure-link/ports"
import type { Address, Bytes } from "@pure-link/wire"
import type * as Effect from "effect/Effect"
import type * as dgram from "node:dgram"
import { type Family, isPort, reachableHost, Sources } from "./addresses.ts"
import { codeOf, errorsInARow, isFatal } from "./failures.ts"
import { ReceiveQueue } from "./ReceiveQueue.ts"
import { largestUdpPayload, SendBlocks } from "./SendBlocks.ts"
import type { SupervisedSocket, Supervisor } from "./supervision.ts"

/**
 * An open socket over node:dgram. The system's socket beneath it (the handle) may die and be exchanged for a new one on
 * the same address; this one stays. Whatever the system reports is counted here and reaches nobody else.
 */
export interface NodeSocketOptions extends Supervisor {
  readonly local: Address
  readonly family: Family
  readonly buffers: { readonly receive: Bytes; readonly send: Bytes }
  readonly receiveQueue: number
  readonly receiveQueueBytes: Bytes
}

/** Datagrams that one `receive` hands over at most, and bytes of them. */
const receivedAtOnce = 512
const receivedBytes: Bytes = 1_048_576

export class NodeSocket implements SupervisedSocket {
  readonly local: Address
  readonly counters: SocketCounters = {
    sent: 0,
    received: 0,
    sendErrors: 0,
    receiveErrors: 0,
    receiveDrops: 0,
    rebinds: 0
  }
  readonly errorCodes = new Map<string, number>()
  readonly buffers: { readonly receive: Bytes; readonly send: Bytes }
  /** Node has no option for it, and Linux by itself sets DF only on what fits the path that it knows (docs/errno.md). */
  readonly dontFragment = false
  readonly died: Effect.Effect<never, SocketError>
  readonly #family: Family
  readonly #supervisor: Supervisor
  readonly #received = new ReceivedDatagrams(receivedAtOnce, receivedBytes)
  readonly #queue: ReceiveQueue
  readonly #sources = new Sources()
  readonly #blocks = new SendBlocks((error) => this.#settleSend(error))
  #handle: dgram.Socket | undefined
  #errorsInARow = 0
  #isCallPending = false
  #onReadable: (() => void) | undefined
  /** The last destination and how the system's socket names it. */
  #toHost = ""
  #toReachable: string | undefined

  constructor(options: NodeSocketOptions) {
    this.local = options.local
    this.buffers = options.buffers
    this.died = options.died
    this.#family = options.family
    this.#supervisor = options
    this.#queue = new ReceiveQueue(options.receiveQueue, options.receiveQueueBytes)
  }

  get onReadable(): (() => void) | undefined {
    return this.#onReadable
  }

  set onReadable(call: (() => void) | undefined) {
    this.#onReadable = call
    if (this.#queue.length > 0) call?.()
  }

  send(slab: Uint8Array, stride: number, lengths: Uint32Array, count: number, to: Address): void {
    const handle = this.#handle
    const host = this.#reachable(to.host)
    if (handle === undefined) return this.#refuse("EBADF", count)
    if (host === undefined || !isPort(to.port) || to.port === 0) return this.#refuse("EINVAL", count)
    if (handle.getSendQueueSize() > mostQueuedBytes) return this.#refuse("ENOBUFS", count)
    for (let i = 0; i < count; i++) {
      const length = lengths[i]!
      if (length > largestUdpPayload) {
        this.#refuse("EMSGSIZE", 1)
        continue
      }
      const block = this.#blocks.blockFor(length)
      const start = block.add(slab, i * stride, length)
      try {
        handle.send(block.bytes, start, length, to.port, host, block.done)
      } catch (error) {
        block.done(error as Error)
      }
    }
  }

  receive(most: number): ReceivedDatagrams {
    const received = this.#received
    received.clear()
    this.#queue.moveTo(received, most)
    received.more = this.#queue.length > 0
    this.counters.received += received.count
    return received
  }

  /** Goes on with a bound handle. */
  attach(handle: dgram.Socket): void {
    handle.removeAllListeners()
    handle.on("message", this.#handleMessage)
    handle.on("error", (error) => this.#handleError(handle, codeOf(error)))
    handle.on("close", () => this.#handleDeath(handle, "EBADF"))
    this.#errorsInARow = 0
    this.#handle = handle
  }

  /** Closes for good; calls back when the port is free. */
  close(whenDone: () => void): void {
    this.#onReadable = undefined
    this.#queue.clear()
    const handle = this.#handle
    this.#handle = undefined
    if (handle === undefined) whenDone()
    else closeHandle(handle, whenDone)
  }

  readonly #handleMessage = (bytes: Buffer, info: dgram.RemoteInfo): void => {
    this.#errorsInARow = 0
    if (!this.#queue.add(bytes, this.#sources.addressOf(info.address, info.port))) this.counters.receiveDrops++
    if (this.#isCallPending) return
    this.#isCallPending = true
    setImmediate(this.#callDriver)
  }

  /** Runs after the event loop has read all that it reads in one turn, so that the driver gets one batch. */
  readonly #callDriver = (): void => {
    this.#isCallPending = false
    if (this.#queue.length > 0) this.#onReadable?.()
  }

  #handleError(handle: dgram.Socket, code: string): void {
    this.counters.receiveErrors++
    this.#count(code, 1)
    this.#errorsInARow++
    if (isFatal(code) || this.#errorsInARow >= errorsInARow) this.#handleDeath(handle, code)
  }

  #handleDeath(handle: dgram.Socket, code: string): void {
    if (handle !== this.#handle) return
    this.#handle = undefined
    closeHandle(handle, () => {})
    this.#supervisor.whenHandleDies(code)
  }

  #settleSend(error: Error | null): void {
    if (!error) {
      this.counters.sent++
      return
    }
    const code = codeOf(error)
    this.#refuse(code, 1)
    if (isFatal(code) && this.#handle !== undefined) this.#handleDeath(this.#handle, code)
  }

  #refuse(code: string, count: number): void {
    if (code === "EPERM" && !this.errorCodes.has(code)) this.#supervisor.whenForbidden()
    this.counters.sendErrors += count
    this.#count(code, count)
  }

  #count(code: string, count: number): void {
    this.errorCodes.set(code, (this.errorCodes.get(code) ?? 0) + count)
  }

  #reachable(host: string): string | undefined {
    if (host !== this.#toHost) {
      this.#toHost = host
      this.#toReachable = reachableHost(this.#family, host)
    }
    return this.#toReachable
  }
}

/** What may wait for room in the system's send buffer; more is refused, as a full buffer refuses it. */
const mostQueuedBytes: Bytes = 4_194_304

export const closeHandle = (handle: dgram.Socket, whenDone: () => void): void => {
  handle.removeAllListeners()
  handle.on("error", () => {})
  try {
    handle.close(whenDone)
  } catch {
    whenDone()
  }
}

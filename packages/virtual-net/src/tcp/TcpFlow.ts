import type { Address, Bytes, Micros } from "@pure-link/wire"
import type { Station, StationPort } from "../Station.ts"
import { headerBytes, largestSegmentDatagram, mostBlocks } from "./segment.ts"
import { TcpReceiver } from "./TcpReceiver.ts"
import { type SenderCounters, TcpSender } from "./TcpSender.ts"

/**
 * A TCP CUBIC flow between two stations of a network, to judge shares beside it. The machines are pure; here are only
 * their two ends on the network. There is no handshake and no end of connection: data goes at once.
 */

export interface TcpFlowOptions {
  readonly from: Address
  readonly to: Address
  /** At once if not given. */
  readonly startAt?: Micros
  /** Endless if not given. */
  readonly bytes?: Bytes
  /** The receiver's window, 16 MB if not given. */
  readonly receiveWindow?: Bytes
  readonly name?: string
}

/** What a flow needs of a network. */
export interface TcpGround {
  now(): Micros
  station(at: Address, station: Station): StationPort
}

export interface TcpCounters extends SenderCounters {
  /** Segments that the receiver had already, and those that it refused as overtaken by a later copy (PAWS). */
  duplicates: number
  stale: number
  acknowledgements: number
}

export class TcpFlow {
  readonly name: string
  readonly #sender: TcpSender
  readonly #receiver: TcpReceiver
  readonly #ports: Array<StationPort> = []

  constructor(network: TcpGround, options: TcpFlowOptions) {
    this.name = options.name ?? "TCP CUBIC"
    const window = options.receiveWindow ?? 16_000_000
    this.#sender = new TcpSender({ bytes: options.bytes, largestWindow: window })
    this.#receiver = new TcpReceiver({ window })
    this.#openReceiver(network, options)
    this.#openSender(network, options)
  }

  /** In order, at the receiver. */
  get deliveredBytes(): Bytes {
    return this.#receiver.deliveredBytes
  }

  /** The congestion window. */
  get window(): Bytes {
    return this.#sender.window
  }

  get smoothedRoundTrip(): Micros {
    return this.#sender.smoothedRoundTrip
  }

  /** Everything is delivered and acknowledged. */
  get isComplete(): boolean {
    return this.#sender.isComplete
  }

  get counters(): TcpCounters {
    const { duplicates, stale, acknowledgements } = this.#receiver.counters
    return { ...this.#sender.counters, duplicates, stale, acknowledgements }
  }

  /** Both ends fall silent and free their addresses. */
  stop(): void {
    for (const port of this.#ports.splice(0)) port.close()
  }

  #openSender(network: TcpGround, options: TcpFlowOptions): void {
    const sender = this.#sender
    const out = new Uint8Array(largestSegmentDatagram)
    const startAt = options.startAt ?? network.now()
    const drive = (now: Micros): void => {
      if (now < startAt) return port.wakeAt(startAt)
      for (let length = sender.poll(now, out); length > 0; length = sender.poll(now, out)) {
        port.send(out.subarray(0, length), options.to)
      }
      port.wakeAt(sender.deadline())
    }
    const port = this.#open(network, options.from, (now, bytes) => sender.handleSegment(now, bytes), drive)
    port.wakeAt(startAt)
  }

  #openReceiver(network: TcpGround, options: TcpFlowOptions): void {
    const receiver = this.#receiver
    const out = new Uint8Array(headerBytes + 4 + 8 * mostBlocks)
    const drive = (now: Micros): void => {
      const length = receiver.poll(now, out)
      if (length > 0) port.send(out.subarray(0, length), options.from)
      port.wakeAt(receiver.deadline())
    }
    const port = this.#open(network, options.to, (now, bytes) => receiver.handleSegment(now, bytes), drive)
  }

  #open(
    network: TcpGround,
    at: Address,
    handle: (now: Micros, bytes: Uint8Array) => void,
    drive: (now: Micros) => void
  ): StationPort {
    const port = network.station(at, {
      arrive: (now, bytes) => {
        handle(now, bytes)
        drive(now)
      },
      wake: drive
    })
    this.#ports.push(port)
    return port
  }
}

export const startTcpFlow = (network: TcpGround, options: TcpFlowOptions): TcpFlow => new TcpFlow(network, options)

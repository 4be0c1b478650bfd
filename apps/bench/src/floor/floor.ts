import { type Aead, load, type NativeSocket, type SocketAddon } from "@pure-link/native"
import * as Effect from "effect/Effect"
import type { FloorReport } from "../ends/messages.ts"
import type { Work } from "../sample.ts"

/**
 * The floor: what has to be done for records to get through at all, and nothing more. Seal, send, receive, open, take
 * the records out; a window, but no loss handling, no stores, no clock. It says what this machine gives right now; the
 * link is measured against it. Both ends share what stands here.
 */

/** The whole datagram, tag included: what fits a path of 1,500 B. */
export const datagramBytes = 1_452
export const tagBytes = 16
/** As many as a short header of the protocol has: flags, key id, run, and the packet number in the last 3 B. */
export const headerBytes = 12
export const numberOffset = 9
/** Packets sent and not acknowledged. */
export const windowPackets = 512
/** Sealed and sent by one call each. */
export const trainPackets = 64

export interface FloorHooks {
  readonly ready: (port: number, work: () => Work) => void
  readonly tick: (records: number) => void
  readonly until: Effect.Effect<void>
}

export interface FloorEnd {
  readonly report: FloorReport
  readonly memorySeries: ReadonlyArray<number>
}

/** The floor is a loop of native code: without it there is none. */
export class NoFloor extends Error {
  override readonly name = "NoFloor"
}

export const openAddon = (): { readonly aead: Aead; readonly sockets: SocketAddon } => {
  const { addon, reason } = load()
  if (addon?.aead === undefined) throw new NoFloor(`no floor without the native code: ${reason ?? addon?.aeadReason}`)
  return { aead: addon.aead, sockets: addon }
}

/** Everybody knows these keys. */
export const dataKey = new Uint8Array(28).fill(0xda)
export const answerKey = new Uint8Array(28).fill(0xac)

const slotBytes = 65_536
const slots = 8
const mostDatagrams = 1_024

/** A socket with the tables that it fills, and what opening needs beside them. */
export class FloorSocket {
  readonly bytes = new Uint8Array(slots * slotBytes)
  readonly starts = new Uint32Array(mostDatagrams)
  readonly ends = new Uint32Array(mostDatagrams)
  readonly peers = new Uint32Array(mostDatagrams)
  readonly numbers = new Float64Array(mostDatagrams)
  readonly opened = new Uint8Array(mostDatagrams)
  readonly native: NativeSocket
  readonly port: number
  readonly #sockets: SocketAddon
  readonly #counters = new Float64Array(256)

  constructor(sockets: SocketAddon, whenReadable: () => void) {
    this.#sockets = sockets
    const { bytes, ends, peers, starts } = this
    const tables = { bytes, starts, ends, peers, ecn: new Uint8Array(mostDatagrams), news: new Uint32Array(258) }
    this.native = new sockets.Socket(tables, settings, (code) => {
      if (code < 0) throw new NoFloor(`the socket of the floor died (errno ${-code})`)
      whenReadable()
    })
    const failed = this.native.open(this.peer(0))
    if (failed < 0) throw new NoFloor(`the floor cannot bind a port (errno ${-failed})`)
    this.port = this.native.local()!.port
  }

  /** A port of this machine as `send` wants it. */
  peer(port: number): Uint8Array {
    return this.#sockets.encodePeer("127.0.0.1", port)!
  }

  /** Datagrams that wait, in the tables. */
  receive(): number {
    return Math.max(0, this.native.receive(mostDatagrams))
  }

  /** Where the number of each of the first `count` datagrams stands relative to the last one: fills `numbers`. */
  readNumbers(count: number, last: number): void {
    const { bytes, numbers, starts } = this
    const base = last - (last % shortNumbers)
    for (let i = 0; i < count; i++) {
      const at = starts[i]! + numberOffset
      const low = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!
      const number = base + low
      numbers[i] = number < last - shortNumbers / 2 ? number + shortNumbers : number
    }
  }

  work(records: number, bytes: number, answers: number): Work {
    this.native.counters(this.#counters)
    const [sent, received] = this.#counters
    return {
      records,
      bytes,
      datagramsSent: sent!,
      datagramsReceived: received!,
      datagramsDropped: this.#counters[4]!,
      sendCalls: this.#counters[8]!,
      receiveCalls: this.#counters[9]!,
      turns: 0,
      answers
    }
  }
}

const shortNumbers = 2 ** 24

const settings = {
  receiveBufferBytes: 4_194_304,
  sendBufferBytes: 4_194_304,
  sendQueueBytes: 4_194_304,
  longestDatagram: datagramBytes,
  sendEcn: 0,
  gso: 1,
  gro: 1
}

/** Writes the number into a header whose other bytes stand already. */
export const writeNumber = (slab: Uint8Array, at: number, number: number): void => {
  const low = number % shortNumbers
  slab[at + numberOffset] = low >>> 16
  slab[at + numberOffset + 1] = low >>> 8
  slab[at + numberOffset + 2] = low
}

/** Runs an end until it is told to end. */
export const running = (
  open: () => { readonly close: () => void; readonly bad: () => number },
  until: Effect.Effect<void>
): Effect.Effect<FloorEnd, NoFloor> =>
  Effect.gen(function* () {
    const end = yield* Effect.try({ try: open, catch: (error) => error as NoFloor })
    yield* until
    end.close()
    return { report: { role: "floor", bad: end.bad() }, memorySeries: [] }
  })

import type * as Effect from "effect/Effect"
import { Pattern } from "../pattern.ts"
import {
  answerKey,
  dataKey,
  datagramBytes,
  type FloorEnd,
  type FloorHooks,
  FloorSocket,
  headerBytes,
  type NoFloor,
  openAddon,
  running,
  trainPackets,
  windowPackets,
  writeNumber
} from "./floor.ts"
import { Packer } from "./framing.ts"

/** The sending end of the floor: keeps the window full, a train at a time. */

export const floorSend = (
  options: { readonly size: number; readonly port: number },
  { ready, tick, until }: FloorHooks
): Effect.Effect<FloorEnd, NoFloor> =>
  running(() => {
    const sender = new FloorSender(options, tick)
    ready(sender.socket.port, () => sender.work)
    setImmediate(() => sender.begin())
    return { close: () => sender.close(), bad: () => sender.stalls }
  }, until)

/** Nothing is acknowledged for so long: what is under way is lost, and goes on as if it were not. */
const stallMillis = 2_000

class FloorSender {
  readonly socket: FloorSocket
  stalls = 0
  readonly #aead
  readonly #dataKey: number
  readonly #answerKey: number
  readonly #packer: Packer
  readonly #slab = new Uint8Array(trainPackets * datagramBytes)
  readonly #lengths = new Uint32Array(trainPackets).fill(datagramBytes)
  readonly #to: Uint8Array
  readonly #tick: (records: number) => void
  readonly #size: number
  readonly #watchdog: NodeJS.Timeout
  #next = 0
  #acknowledged = 0
  #lastAnswer = 0
  #answers = 0
  #seen = -1

  constructor({ port, size }: { readonly size: number; readonly port: number }, tick: (records: number) => void) {
    const { aead, sockets } = openAddon()
    this.#aead = aead
    this.#dataKey = aead.createKey(this, dataKey)
    this.#answerKey = aead.createKey(this, answerKey)
    this.#packer = new Packer(new Pattern(size))
    this.#size = size
    this.#tick = tick
    this.socket = new FloorSocket(sockets, () => this.#hear())
    this.#to = this.socket.peer(port)
    this.#watchdog = setInterval(() => this.#watch(), stallMillis)
  }

  get work() {
    const records = this.#packer.record - 1
    return this.socket.work(records, records * this.#size, this.#answers)
  }

  begin(): void {
    this.socket.native.watch(true)
    this.#fill()
  }

  close(): void {
    clearInterval(this.#watchdog)
    this.socket.native.close()
  }

  #hear(): void {
    const { socket } = this
    for (;;) {
      const count = socket.receive()
      if (count === 0) break
      this.#openAnswers(count)
      this.#fill()
    }
    this.#tick(this.#packer.record - 1)
  }

  #openAnswers(count: number): void {
    const { bytes, ends, numbers, opened, starts } = this.socket
    this.socket.readNumbers(count, this.#lastAnswer)
    this.#aead.openAll(this.#answerKey, bytes, starts, ends, numbers, opened, 0, count, headerBytes)
    for (let i = 0; i < count; i++) {
      if (opened[i] !== 1) continue
      this.#answers++
      this.#lastAnswer = numbers[i]!
      const at = starts[i]! + headerBytes
      const low = (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0
      const through = bytes[at + 4]! * 2 ** 32 + low
      if (through > this.#acknowledged) this.#acknowledged = through
    }
  }

  /** Whole trains while the window has room for one. */
  #fill(): void {
    const slab = this.#slab
    while (this.#next + trainPackets <= this.#acknowledged + windowPackets) {
      const first = this.#next
      for (let i = 0; i < trainPackets; i++) {
        writeNumber(slab, i * datagramBytes, first + i)
        this.#packer.pack(slab, i * datagramBytes)
      }
      this.#aead.sealTrain(this.#dataKey, slab, datagramBytes, this.#lengths, 0, trainPackets, headerBytes, first)
      this.socket.native.send(slab, datagramBytes, this.#lengths, trainPackets, this.#to)
      this.#next = first + trainPackets
    }
  }

  #watch(): void {
    if (this.#acknowledged === this.#seen) {
      this.stalls++
      this.#acknowledged = this.#next
      this.#fill()
    }
    this.#seen = this.#acknowledged
  }
}

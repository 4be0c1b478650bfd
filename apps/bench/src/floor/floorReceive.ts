import type * as Effect from "effect/Effect"
import { RecordCheck } from "../pattern.ts"
import {
  answerKey,
  dataKey,
  type FloorEnd,
  type FloorHooks,
  FloorSocket,
  headerBytes,
  type NoFloor,
  openAddon,
  running,
  tagBytes,
  writeNumber
} from "./floor.ts"
import { Unpacker } from "./framing.ts"

/** The receiving end of the floor: opens what came together, takes the records out, and answers once. */

export const floorReceive = (
  _options: { readonly size: number },
  { ready, tick, until }: FloorHooks
): Effect.Effect<FloorEnd, NoFloor> =>
  running(() => {
    const receiver = new FloorReceiver(tick)
    ready(receiver.socket.port, () => receiver.work)
    return { close: () => receiver.socket.native.close(), bad: () => receiver.bad }
  }, until)

/** What is handed to the consumer at a time. */
const batchBytes = 262_144
const answerBytes = headerBytes + 8 + tagBytes

class FloorReceiver {
  readonly socket: FloorSocket
  readonly #aead
  readonly #dataKey: number
  readonly #answerKey: number
  readonly #source: Buffer
  readonly #check = new RecordCheck("sampled")
  readonly #unpacker: Unpacker
  readonly #answer = new Uint8Array(answerBytes)
  readonly #answerLength = Uint32Array.of(answerBytes)
  readonly #tick: (records: number) => void
  #to: Uint8Array | undefined
  #peer = -1
  #next = 0
  #answers = 0
  #lost = 0

  constructor(tick: (records: number) => void) {
    const { aead, sockets } = openAddon()
    this.#aead = aead
    this.#dataKey = aead.createKey(this, dataKey)
    this.#answerKey = aead.createKey(this, answerKey)
    this.#tick = tick
    this.#unpacker = new Unpacker(batchBytes, (bytes, sizes, count, first) => {
      this.#check.batch(bytes, 0, sizes, 0, count, first)
    })
    this.socket = new FloorSocket(sockets, () => this.#hear())
    this.#source = Buffer.from(this.socket.bytes.buffer)
    this.socket.native.watch(true)
  }

  get work() {
    return this.socket.work(this.#unpacker.records, this.#check.bytes, this.#answers)
  }

  get bad(): number {
    return this.#check.bad + this.#lost + this.#unpacker.breaks
  }

  #hear(): void {
    for (;;) {
      const count = this.socket.receive()
      if (count === 0) break
      this.#take(count)
      this.#reply()
    }
    this.#tick(this.#unpacker.records)
  }

  #take(count: number): void {
    const { bytes, ends, numbers, opened, peers, starts } = this.socket
    if (peers[0] !== this.#peer) this.#answerTo(peers[0]!)
    this.socket.readNumbers(count, this.#next)
    this.#aead.openAll(this.#dataKey, bytes, starts, ends, numbers, opened, 0, count, headerBytes)
    for (let i = 0; i < count; i++) {
      if (opened[i] !== 1 || numbers[i] !== this.#next) this.#lost++
      if (opened[i] !== 1) continue
      this.#next = numbers[i]! + 1
      this.#unpacker.unpack(bytes, this.#source, starts[i]!)
    }
  }

  #answerTo(peer: number): void {
    this.#peer = peer
    this.#to = this.socket.peer(this.socket.native.peerAt(peer).port)
  }

  /** All packets below `#next` are acknowledged. */
  #reply(): void {
    const answer = this.#answer
    const low = this.#next >>> 0
    writeNumber(answer, 0, ++this.#answers)
    answer[headerBytes] = low
    answer[headerBytes + 1] = low >>> 8
    answer[headerBytes + 2] = low >>> 16
    answer[headerBytes + 3] = low >>> 24
    answer[headerBytes + 4] = this.#next / 2 ** 32
    this.#aead.seal(this.#answerKey, answer, 0, headerBytes, answerBytes - tagBytes, this.#answers)
    this.socket.native.send(answer, answerBytes, this.#answerLength, 1, this.#to!)
  }
}

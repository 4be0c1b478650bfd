import { seededEntropy } from "@pure-link/keys"
import { assert } from "@effect/vitest"
import type { Frame, Micros, PacketNumber, RecordNumber } from "@pure-link/wire"
import { type Bench, frameOf, list, type OpenedPacket, partsOf, stored } from "./scriptedPeer.ts"

/**
 * Whole transfers over a bad path to a peer that keeps parts, forgets, and may say LOST.
 */

/** What a peer has of one record. */
interface Held {
  readonly bytes: Uint8Array
  readonly known: Uint8Array
  size: number
}

/** Keeps parts in memory, stores in order, and answers every packet. */
export class Keeper {
  n: RecordNumber = 0
  #base: RecordNumber = 1
  readonly stored: Array<Uint8Array> = []
  #held = new Map<RecordNumber, Held>()
  #acked: Array<PacketNumber> = []
  #seen: Array<PacketNumber> = []

  /** Forgets all that is not stored, and what it reported. */
  forget(): void {
    this.#held = new Map()
    this.#acked = []
    this.#seen = []
  }

  keep(packet: OpenedPacket, full: boolean): void {
    if (this.#acked.includes(packet.number) || this.#seen.includes(packet.number)) return
    this.#base = frameOf(packet, "Stream")?.base ?? this.#base
    const parts = partsOf(packet, this.#base)
    const kept = !full || parts.every((part) => part.number === this.n + 1)
    ;(kept ? this.#acked : this.#seen).push(packet.number)
    if (!kept) return
    for (const { number, offset, bytes, ends } of parts) {
      if (number <= this.n) continue
      const held = this.#held.get(number) ?? { bytes: new Uint8Array(90_000), known: new Uint8Array(90_000), size: -1 }
      held.bytes.set(bytes, offset)
      held.known.fill(1, offset, offset + bytes.length)
      if (ends) held.size = offset + bytes.length
      this.#held.set(number, held)
    }
    for (let next; (next = this.#held.get(this.n + 1)) !== undefined && isComplete(next);) {
      this.stored.push(next.bytes.slice(0, next.size))
      this.#held.delete(++this.n)
    }
  }

  frames(): ReadonlyArray<Frame> {
    const acked = this.#acked.slice(-60)
    const seen = this.#seen.slice(-60)
    return [
      ...(acked.length > 0 ? [list("Ack", ...acked)] : []),
      ...(seen.length > 0 ? [list("Seen", ...seen)] : []),
      stored(this.n, { creditRecords: 1000, creditBytes: 300_000 })
    ]
  }
}

const isComplete = ({ size, known }: Held): boolean => size >= 0 && known.subarray(0, size).every((byte) => byte === 1)

export interface Path {
  readonly seed: number
  readonly lossPercent: number
  readonly jitter: Micros
  /** The peer forgets everything at these packet counts … */
  readonly restarts: ReadonlyArray<number>
  /** … and says LOST to what it cannot open then. */
  readonly saysLost?: boolean
  /** Of a hundred packets, the peer has no room for this many. */
  readonly fullPercent: number
}

/** Runs a transfer to its end; returns the peer, and fails when it takes too long. */
export const transfer = (bench: Bench, path: Path): Keeper => {
  const random = randomOf(path.seed)
  const keeper = new Keeper()
  const flying: Array<{ readonly at: Micros; readonly datagram: Uint8Array; readonly isAnswer: boolean }> = []
  const launch = (datagram: Uint8Array, isAnswer: boolean): void => {
    const copies = random(100) < path.lossPercent ? 0 : random(50) === 0 ? 2 : 1
    for (let i = 0; i < copies; i++) {
      flying.push({ at: bench.now + 10_000 + random(path.jitter + 1), datagram, isAnswer })
    }
  }
  let opened = 0
  let run = bench.link.run
  const arrive = (datagram: Uint8Array): void => {
    if (path.restarts.includes(opened)) {
      opened++
      keeper.forget()
      bench.peer.restart()
    }
    const packet = bench.peer.open(bench.now, datagram)
    if (packet === undefined && path.saysLost && bench.peer.epochs === undefined)
      launch(bench.peer.lost(datagram), true)
    if (packet === undefined) return
    if (packet.run !== run) {
      run = packet.run
      keeper.forget()
    }
    opened++
    keeper.keep(packet, random(100) < path.fullPercent)
    launch(bench.peer.answer(keeper.frames()), true)
  }
  const end = bench.now + 600_000_000
  while (bench.link.stored < bench.last && bench.now < end) {
    for (const datagram of bench.send()) launch(datagram, false)
    const arrival = flying.reduce((earliest, { at }) => Math.min(earliest, at), Infinity)
    bench.now = Math.max(bench.now, Math.min(arrival, bench.link.deadline()))
    bench.link.handleTimeout(bench.now)
    for (let i; (i = flying.findIndex(({ at }) => at <= bench.now)) >= 0;) {
      const [{ datagram, isAnswer }] = flying.splice(i, 1) as [(typeof flying)[number]]
      if (isAnswer) bench.hear(datagram.slice())
      else arrive(datagram)
    }
  }
  assert.strictEqual(bench.link.stored, bench.last, `not done after ${(bench.now / 1e6).toFixed(1)} s`)
  return keeper
}

const randomOf = (seed: number): ((below: number) => number) => {
  const entropy = seededEntropy(seed)
  const word = new Uint8Array(4)
  return (below) => {
    entropy.fill(word)
    return new DataView(word.buffer).getUint32(0) % below
  }
}

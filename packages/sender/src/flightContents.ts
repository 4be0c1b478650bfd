import type { PacketEcho, PacketNumber } from "@pure-link/wire"
import type { Position } from "./recordQueue.ts"

/**
 * What every flight carried, in arrays parallel to recovery's ring: its spans, marks, and what a LOST would repeat of it
 * (spec §12.2). Recovery judges numbers and bytes; this says what a verdict means for records and STREAM.
 */

/** Spans that one packet carries at most. */
export const spansInFlight = 4

/** Marks of a flight. */
export const Mark = {
  /** It carried the STREAM frame. */
  stream: 1,
  /**
   * A later flight, or the list of what needs sending again, has taken its spans over: its loss sends nothing again.
   */
  replaced: 2,
  /** It was answered, or has left. */
  settled: 4,
  /** It is a copy that tail redundancy sent. */
  copy: 8
} as const

export class FlightContents {
  readonly #mask: number
  readonly #numbers: Float64Array
  readonly #marks: Uint8Array
  readonly #counts: Uint8Array
  /** The first span of every flight, then the second of every flight, and so on: most have one. */
  readonly #starts: Float64Array
  readonly #ends: Float64Array
  readonly #flags: Uint8Array
  readonly #tagsHigh: Uint32Array
  readonly #tagsLow: Uint32Array

  constructor(ringSize: number) {
    this.#mask = ringSize - 1
    this.#numbers = new Float64Array(ringSize).fill(-1)
    this.#marks = new Uint8Array(ringSize)
    this.#counts = new Uint8Array(ringSize)
    this.#starts = new Float64Array(ringSize * spansInFlight)
    this.#ends = new Float64Array(ringSize * spansInFlight)
    this.#flags = new Uint8Array(ringSize)
    this.#tagsHigh = new Uint32Array(ringSize)
    this.#tagsLow = new Uint32Array(ringSize)
  }

  get ringSize(): number {
    return this.#mask + 1
  }

  /** Begins the entry of a packet; its spans are added next. */
  begin(number: PacketNumber, marks: number): void {
    const slot = number & this.#mask
    this.#numbers[slot] = number
    this.#marks[slot] = marks
    this.#counts[slot] = 0
  }

  addSpan(number: PacketNumber, start: Position, end: Position): void {
    const slot = number & this.#mask
    const at = this.#counts[slot]!++ * this.ringSize + slot
    this.#starts[at] = start
    this.#ends[at] = end
  }

  /** The entry of a packet with one span and without marks. */
  put(number: PacketNumber, start: Position, end: Position): void {
    const slot = number & this.#mask
    this.#numbers[slot] = number
    this.#marks[slot] = 0
    this.#counts[slot] = 1
    this.#starts[slot] = start
    this.#ends[slot] = end
  }

  /** The packet is sealed: this is what identifies it. */
  seal(number: PacketNumber, { flags, tagHigh, tagLow }: PacketEcho): void {
    const slot = number & this.#mask
    this.#flags[slot] = flags
    this.#tagsHigh[slot] = tagHigh
    this.#tagsLow[slot] = tagLow
  }

  /** Whether an echo is of the packet with this number. */
  isEcho(number: PacketNumber, { flags, tagHigh, tagLow }: PacketEcho): boolean {
    const slot = number & this.#mask
    if (!this.knows(number) || this.#flags[slot] !== flags) return false
    return this.#tagsHigh[slot] === tagHigh && this.#tagsLow[slot] === tagLow
  }

  /** Numbers begin again at 0. */
  restart(): void {
    this.#numbers.fill(-1)
  }

  /** Whether the ring still knows the packet. */
  knows(number: PacketNumber): boolean {
    return number >= 0 && this.#numbers[number & this.#mask] === number
  }

  has(number: PacketNumber, mark: number): boolean {
    return (this.#marks[number & this.#mask]! & mark) !== 0
  }

  mark(number: PacketNumber, mark: number): void {
    const slot = number & this.#mask
    this.#marks[slot] = this.#marks[slot]! | mark
  }

  /** Marks the packets from `from` on and below `end`; returns all marks that any of them has. */
  markAll(from: PacketNumber, end: PacketNumber, mark: number): number {
    let all = 0
    for (let number = from; number < end; number++) {
      const slot = number & this.#mask
      all |= this.#marks[slot]! |= mark
    }
    return all
  }

  spanCount(number: PacketNumber): number {
    return this.#counts[number & this.#mask]!
  }

  spanStart(number: PacketNumber, i: number): Position {
    return this.#starts[i * this.ringSize + (number & this.#mask)]!
  }

  spanEnd(number: PacketNumber, i: number): Position {
    return this.#ends[i * this.ringSize + (number & this.#mask)]!
  }
}

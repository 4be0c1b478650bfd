import { ok as assert } from "node:assert/strict"
import type { Bytes, Micros, PacketNumber } from "@pure-link/wire"

/**
 * The packets in the air. The flight of number N lives in slot N mod size, until a later number takes the slot: three
 * bitmaps say whether it is in flight, was declared lost, or was given up (spec §14.3); none is set once it is settled.
 * Bitmaps make looking for the few open flights among thousands of settled numbers cost 1/32 of a step each, however
 * often an answer repeats a range.
 */
export class FlightRing {
  readonly size: number
  /** The number that the next packet takes. */
  next: PacketNumber = 0
  /** Flights in flight, and their bytes; those declared lost are not among them. */
  count = 0
  bytes: Bytes = 0
  readonly #mask: number
  readonly #sentAt: Float64Array
  /** When it was declared lost. */
  readonly #declaredAt: Float64Array
  readonly #bytes: Uint32Array
  readonly #inFlight: Uint32Array
  readonly #declaredLost: Uint32Array
  readonly #givenUp: Uint32Array
  /** No number below is in flight. */
  #oldest: PacketNumber = 0
  /** No number below is declared lost. */
  #oldestDeclared: PacketNumber = 0
  /** No number below is given up. */
  #oldestGivenUp: PacketNumber = 0

  constructor(size: number) {
    assert(size >= 64 && size <= 2 ** 30 && (size & (size - 1)) === 0, "a ring's size is a power of two from 64 on")
    this.size = size
    this.#mask = size - 1
    this.#sentAt = new Float64Array(size)
    this.#declaredAt = new Float64Array(size)
    this.#bytes = new Uint32Array(size)
    this.#inFlight = new Uint32Array(size >>> 5)
    this.#declaredLost = new Uint32Array(size >>> 5)
    this.#givenUp = new Uint32Array(size >>> 5)
  }

  /** Whether the slot of this number still is about this number. */
  holds(number: PacketNumber): boolean {
    return number >= this.first && number < this.next
  }

  /** The lowest number that the ring can still be about. */
  get first(): PacketNumber {
    return Math.max(0, this.next - this.size)
  }

  /** Whether the next number's slot is taken by a flight that is in flight. */
  get isFull(): boolean {
    return this.isInFlight(this.next - this.size)
  }

  isInFlight(number: PacketNumber): boolean {
    return this.holds(number) && this.#has(this.#inFlight, number)
  }

  isDeclaredLost(number: PacketNumber): boolean {
    return this.holds(number) && this.#has(this.#declaredLost, number)
  }

  isGivenUp(number: PacketNumber): boolean {
    return this.holds(number) && this.#has(this.#givenUp, number)
  }

  sentAt(number: PacketNumber): Micros {
    return this.#sentAt[number & this.#mask]!
  }

  /** When a flight that is declared lost was declared so. */
  declaredAt(number: PacketNumber): Micros {
    return this.#declaredAt[number & this.#mask]!
  }

  bytesOf(number: PacketNumber): Bytes {
    return this.#bytes[number & this.#mask]!
  }

  /** The lowest number in flight; `next` when none is. */
  oldest(): PacketNumber {
    return (this.#oldest = this.nextInFlight(this.#oldest))
  }

  /** The lowest number declared lost; `next` when none is. */
  oldestDeclaredLost(): PacketNumber {
    return (this.#oldestDeclared = this.nextDeclaredLost(this.#oldestDeclared))
  }

  /** No flight below this number has anything left to be told. */
  oldestOpen(): PacketNumber {
    this.#oldestGivenUp = this.#seek(Math.max(this.#oldestGivenUp, this.first), this.next, this.#givenUp)
    return Math.min(this.oldest(), this.oldestDeclaredLost(), this.#oldestGivenUp)
  }

  /** The lowest number from `from` on that is in flight; `next` when none is. */
  nextInFlight(from: PacketNumber): PacketNumber {
    return this.#seek(Math.max(from, this.first), this.next, this.#inFlight)
  }

  /** The lowest number from `from` on that is declared lost; `next` when none is. */
  nextDeclaredLost(from: PacketNumber): PacketNumber {
    return this.#seek(Math.max(from, this.first), this.next, this.#declaredLost)
  }

  /** The lowest number from `from` on and below `end` that is not settled; `end` when none is. */
  nextOpen(from: PacketNumber, end: PacketNumber): PacketNumber {
    return this.#seek(Math.max(from, this.first), end, this.#inFlight, this.#declaredLost, this.#givenUp)
  }

  /** Puts the next packet in flight and returns its number; whatever was declared lost in its slot is settled by then. */
  add(now: Micros, bytes: Bytes): PacketNumber {
    assert(!this.isFull, "a flight in flight is never overwritten")
    assert(!this.isDeclaredLost(this.next - this.size), "a flight declared lost is settled before its slot is taken")
    const number = this.next++
    const slot = number & this.#mask
    this.#sentAt[slot] = now
    this.#bytes[slot] = bytes
    this.#set(this.#inFlight, number)
    this.#clear(this.#givenUp, number)
    this.count++
    this.bytes += bytes
    return number
  }

  /** How many flights may be added before one would take the slot of a flight in flight. */
  get room(): number {
    return this.oldest() + this.size - this.next
  }

  /** Puts packets of these lengths, lengths[from … to), in flight. */
  addTrain(now: Micros, lengths: Uint32Array, from: number, to: number): void {
    for (let i = from; i < to; i++) this.add(now, lengths[i]!)
  }

  /** The first number from `from` on that is not in flight; `end` when all below are. `from` is within the ring. */
  endOfRun(from: PacketNumber, end: PacketNumber): PacketNumber {
    let number = from
    while (number < end) {
      const slot = number & this.#mask
      const gaps = ~this.#inFlight[slot >>> 5]! >>> (slot & 31)
      if (gaps !== 0) return Math.min(end, number + 31 - Math.clz32(gaps & -gaps))
      number += 32 - (slot & 31)
    }
    return end
  }

  /** The flights from `from` on and below `end`, all of them in flight, need no more attention. */
  settleRun(from: PacketNumber, end: PacketNumber): void {
    let number = from
    let bytes = 0
    while (number < end) {
      const slot = number & this.#mask
      const length = Math.min(end - number, 32 - (slot & 31))
      const these = (length === 32 ? -1 : (1 << length) - 1) << (slot & 31)
      this.#inFlight[slot >>> 5]! &= ~these
      for (let i = slot; i < slot + length; i++) bytes += this.#bytes[i]!
      number += length
    }
    this.count -= end - from
    this.bytes -= bytes
  }

  /** A flight in flight is declared lost: it leaves the flight but stays in the ring. */
  declareLost(number: PacketNumber, now: Micros): void {
    this.#leave(number)
    this.#set(this.#declaredLost, number)
    this.#declaredAt[number & this.#mask] = now
    if (number < this.#oldestDeclared) this.#oldestDeclared = number
  }

  /** A flight declared lost is given up: it counts as lost, whatever comes. */
  giveUp(number: PacketNumber): void {
    this.#clear(this.#declaredLost, number)
    this.#set(this.#givenUp, number)
    if (number < this.#oldestGivenUp) this.#oldestGivenUp = number
  }

  /** A flight needs no more attention. */
  settle(number: PacketNumber): void {
    if (this.#has(this.#declaredLost, number)) this.#clear(this.#declaredLost, number)
    else if (this.#has(this.#givenUp, number)) this.#clear(this.#givenUp, number)
    else this.#leave(number)
  }

  /** Nothing is in flight or declared lost any more; numbers go on. */
  forget(): void {
    this.#inFlight.fill(0)
    this.#declaredLost.fill(0)
    this.#givenUp.fill(0)
    this.count = 0
    this.bytes = 0
  }

  /** Forgets everything, and numbers begin again at 0. */
  restart(): void {
    this.forget()
    this.next = 0
    this.#oldest = 0
    this.#oldestDeclared = 0
    this.#oldestGivenUp = 0
  }

  /** What is in flight weighs nothing from now on: it was sent into another window than the present one. */
  leaveWindow(): void {
    for (let number = this.oldest(); number < this.next; number = this.nextInFlight(number + 1)) {
      this.#bytes[number & this.#mask] = 0
    }
    this.bytes = 0
  }

  #leave(number: PacketNumber): void {
    assert(this.isInFlight(number))
    this.#clear(this.#inFlight, number)
    this.count--
    this.bytes -= this.bytesOf(number)
  }

  /** A word of 32 slots at a time; `size` is a multiple of 32, so that a word's slots are consecutive numbers. */
  #seek(
    from: PacketNumber,
    end: PacketNumber,
    these: Uint32Array,
    those: Uint32Array = these,
    others: Uint32Array = these
  ): PacketNumber {
    let number = from
    while (number < end) {
      const slot = number & this.#mask
      const index = slot >>> 5
      const word = these[index]! | those[index]! | others[index]!
      const rest = word >>> (slot & 31)
      if (rest !== 0) return Math.min(end, number + 31 - Math.clz32(rest & -rest))
      number += 32 - (slot & 31)
    }
    return end
  }

  #has(bits: Uint32Array, number: PacketNumber): boolean {
    const slot = number & this.#mask
    return (bits[slot >>> 5]! & (1 << (slot & 31))) !== 0
  }

  #set(bits: Uint32Array, number: PacketNumber): void {
    const slot = number & this.#mask
    bits[slot >>> 5]! |= 1 << (slot & 31)
  }

  #clear(bits: Uint32Array, number: PacketNumber): void {
    const slot = number & this.#mask
    bits[slot >>> 5]! &= ~(1 << (slot & 31))
  }
}

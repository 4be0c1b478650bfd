import type { PacketKey } from "@pure-link/keys"
import { type Bytes, PacketEcho, type PacketNumber, tagLength } from "@pure-link/wire"
import type { FlightContents } from "./flightContents.ts"

/**
 * The datagrams of one call: built one behind the other at a stride in the caller's slab, and sealed together, as many at
 * once as share a key and a header length; their numbers are consecutive in any case. What a LOST would repeat of each
 * (spec §12.2) is known when it is sealed.
 */
export class Train {
  count = 0
  /** Nothing more belongs into this train, whatever room it has: what went in goes alone. */
  isClosed = false
  slab: Uint8Array = new Uint8Array(0)
  stride: Bytes = 0
  lengths: Uint32Array = new Uint32Array(0)
  #most = 0
  #start = 0
  /** Those before are sealed; the others have this key and header length, and the first of them this number. */
  #sealed = 0
  #key: PacketKey | undefined
  #headerLength: Bytes = 0
  #number: PacketNumber = 0
  readonly #echo = new PacketEcho()

  /** Begins a train of at most `most` datagrams; the first stands at slab[start…]. */
  begin(slab: Uint8Array, start: number, stride: Bytes, lengths: Uint32Array, most: number): void {
    this.slab = slab
    this.#start = start
    this.stride = stride
    this.lengths = lengths
    this.#most = most
    this.count = 0
    this.#sealed = 0
    this.isClosed = false
  }

  /** How many datagrams more fit. */
  get room(): number {
    return this.isClosed ? 0 : this.#most - this.count
  }

  /** Where the next datagram belongs in the slab. */
  get offset(): number {
    return this.#start + this.count * this.stride
  }

  /** The next datagram was written, all but its tag; `length` counts the tag. */
  add(length: Bytes, key: PacketKey, headerLength: Bytes, number: PacketNumber, flights: FlightContents): void {
    if (key !== this.#key || headerLength !== this.#headerLength) this.seal(flights)
    if (this.#sealed === this.count) {
      this.#key = key
      this.#headerLength = headerLength
      this.#number = number
    }
    this.lengths[this.count++] = length
  }

  /** Seals what is not sealed yet. */
  seal(flights: FlightContents): void {
    const { slab, stride, lengths, count } = this
    const from = this.#sealed
    if (from === count) return
    const first = this.#start + from * stride
    if (count === from + 1) {
      const end = first + lengths[from]!
      this.#key!.seal(slab, first, first + this.#headerLength, end - tagLength, this.#number)
    } else {
      this.#key!.sealTrain(slab, stride, lengths, from, count, this.#headerLength, this.#number)
    }
    for (let i = from; i < count; i++) {
      const number = this.#number + i - from
      const start = this.#start + i * stride
      this.#echo.take(slab, start, start + lengths[i]!, number)
      flights.seal(number, this.#echo)
    }
    this.#sealed = count
  }
}

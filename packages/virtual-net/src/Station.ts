import { type Address, type Micros, never } from "@pure-link/wire"
import type { Endpoint } from "./Endpoint.ts"

/**
 * A raw endpoint on the network, called plainly, without Effect: for reference flows beside the link. Its datagrams
 * meet the same fates as those of sockets.
 */
export interface Station {
  /**
   * A datagram arrived. The bytes are valid only during the call; as an aid to tests they are overwritten after it. It
   * may send and set its alarm.
   */
  arrive(now: Micros, bytes: Uint8Array, from: Address): void
  /** The time given to `wakeAt` has come. */
  wake(now: Micros): void
}

export interface StationPort {
  readonly local: Address
  /** Sends a copy of these bytes, at once. */
  send(bytes: Uint8Array, to: Address): void
  /**
   * Has `wake` called at this time, or soon if it is past, never in the caller's stack. Of several calls the earliest
   * counts; after each `wake` the next time is to be set anew. `never` sets nothing.
   */
  wakeAt(at: Micros): void
  /** Frees the address; the station is called no more. */
  close(): void
}

/** What a station needs of the network. */
export interface StationGround {
  now(): Micros
  at(at: Micros, fire: () => void): void
  inject(bytes: Uint8Array, from: Address, to: Address): void
}

export class StationEndpoint implements Endpoint, StationPort {
  readonly local: Address
  outside: Address
  readonly #station: Station
  readonly #ground: StationGround
  readonly #leave: (endpoint: StationEndpoint) => void
  readonly #ring = (): void => this.#wake()
  #arrived: Uint8Array | undefined
  #from: Address
  #wakeAt: Micros = never
  #isClosed = false

  constructor(local: Address, station: Station, ground: StationGround, leave: (endpoint: StationEndpoint) => void) {
    this.local = this.outside = this.#from = local
    this.#station = station
    this.#ground = ground
    this.#leave = leave
  }

  send(bytes: Uint8Array, to: Address): void {
    if (this.#isClosed) throw new Error("the station is closed")
    this.#ground.inject(bytes, this.outside, to)
  }

  wakeAt(at: Micros): void {
    if (this.#isClosed || at >= this.#wakeAt) return
    this.#ground.at(at, this.#ring)
    this.#wakeAt = at
  }

  close(): void {
    this.#isClosed = true
    this.#wakeAt = never
    this.#leave(this)
  }

  arrive(bytes: Uint8Array, from: Address): boolean {
    this.#arrived = bytes
    this.#from = from
    return true
  }

  attend(): void {
    const bytes = this.#arrived!
    this.#arrived = undefined
    this.#station.arrive(this.#ground.now(), bytes, this.#from)
    bytes.fill(0xdb)
  }

  /** An alarm may be left over from a time that an earlier one overtook. */
  #wake(): void {
    const now = this.#ground.now()
    if (now < this.#wakeAt) return
    this.#wakeAt = never
    this.#station.wake(now)
  }
}

import type { Address, Id64, Micros } from "@pure-link/wire"
import type { Chance } from "./chance.ts"
import type { Timeline } from "./timeline.ts"

/**
 * The network of a world: every datagram takes its own random time, may be lost, doubled, or damaged in one byte. It
 * keeps a copy of everything, as an eavesdropper would who replays it later.
 */
export interface Weather {
  readonly delay: Micros
  readonly jitter: Micros
  readonly loss: number
  readonly duplicate: number
  readonly corrupt: number
}

export const clear: Weather = { delay: 5_000, jitter: 0, loss: 0, duplicate: 0, corrupt: 0 }

export interface Delivery {
  readonly bytes: Uint8Array
  /** Whether these are the bytes that were sent. */
  readonly intact: boolean
  /** Which send this is a copy of. */
  readonly id: number
  readonly from: Address
  readonly to: Address
}

/** Where a replayer sits: what is answered to it is lost. */
export const replayer: Address = { host: "10.6.6.6", port: 6_666 }

export class Network {
  weather: Weather
  /** Everything that was sent: data packets by run, answers in one row. */
  readonly runs = new Map<Id64, Array<Delivery>>()
  readonly answers: Array<Delivery> = []
  #sent = 0

  readonly timeline: Timeline
  readonly chance: Chance
  readonly #deliver: (delivery: Delivery) => void

  constructor(timeline: Timeline, chance: Chance, weather: Weather, deliver: (delivery: Delivery) => void) {
    this.timeline = timeline
    this.chance = chance
    this.weather = weather
    this.#deliver = deliver
  }

  /** A data packet of a run. The bytes are the network's from now on. */
  sendData(run: Id64, bytes: Uint8Array, from: Address, to: Address): void {
    const delivery = { bytes, intact: true, id: this.#sent++, from, to }
    const row = this.runs.get(run)
    if (row === undefined) this.runs.set(run, [delivery])
    else row.push(delivery)
    this.#send(delivery)
  }

  sendAnswer(bytes: Uint8Array, from: Address, to: Address): void {
    const delivery = { bytes, intact: true, id: this.#sent++, from, to }
    this.answers.push(delivery)
    this.#send(delivery)
  }

  /** Delivers another copy of what was sent before, from anywhere. */
  replay(delivery: Delivery, at: Micros, from: Address = delivery.from, to: Address = delivery.to): void {
    this.timeline.at(at, () => this.#deliver({ ...delivery, bytes: delivery.bytes.slice(), from, to }))
  }

  /** Copies of the delivery arrive, later or never. */
  #send(delivery: Delivery): void {
    const { chance, weather } = this
    const copies = chance.happens(weather.duplicate) ? 2 : 1
    for (let i = 0; i < copies; i++) {
      if (chance.happens(weather.loss)) continue
      const bytes = delivery.bytes.slice()
      const damaged = chance.happens(weather.corrupt)
      if (damaged) bytes[chance.between(0, bytes.length - 1)]! ^= 1 << chance.between(0, 7)
      const after = weather.delay + Math.floor(chance.unit() * weather.jitter)
      this.timeline.at(this.timeline.now + after, () => this.#deliver({ ...delivery, bytes, intact: !damaged }))
    }
  }
}

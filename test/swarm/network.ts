import type { Micros } from "@pure-link/wire"
import type { Chance } from "./chance.ts"
import type { Timeline } from "./timeline.ts"

/**
 * The network of a world: every datagram takes its own random time, may be lost, doubled, or damaged in one byte.
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
}

export class Network {
  weather: Weather
  #sent = 0

  readonly timeline: Timeline
  readonly chance: Chance

  constructor(timeline: Timeline, chance: Chance, weather: Weather) {
    this.timeline = timeline
    this.chance = chance
    this.weather = weather
  }

  /** Takes the bytes and delivers copies of them, later or never. */
  send(bytes: Uint8Array, deliver: (delivery: Delivery) => void): void {
    const { chance, weather } = this
    const id = this.#sent++
    const copies = chance.happens(weather.duplicate) ? 2 : 1
    for (let i = 0; i < copies; i++) {
      if (chance.happens(weather.loss)) continue
      const copy = bytes.slice()
      const damaged = chance.happens(weather.corrupt)
      if (damaged) copy[chance.between(0, copy.length - 1)]! ^= 1 << chance.between(0, 7)
      const after = weather.delay + Math.floor(chance.unit() * weather.jitter)
      this.timeline.at(this.timeline.now + after, () => deliver({ bytes: copy, intact: !damaged, id }))
    }
  }
}

import type { Address, Id64, Micros } from "@pure-link/wire"
import type { Chance } from "../world/chance.ts"
import type { Spoken } from "./spoken.ts"
import type { Timeline } from "../world/timeline.ts"

/**
 * The network of a world: every datagram takes its own random time, may be lost, doubled, or damaged in one byte. It
 * keeps a copy of everything, as an eavesdropper would who replays it later, and knows the truth of every loss.
 */
export interface Weather {
  readonly delay: Micros
  readonly jitter: Micros
  readonly loss: number
  readonly duplicate: number
  readonly corrupt: number
}

export const clear: Weather = { delay: 5_000, jitter: 0, loss: 0, duplicate: 0, corrupt: 0 }

/** A datagram as its sender sent it. */
export interface Sent {
  readonly bytes: Uint8Array
  readonly id: number
  /** The run of a data packet; 0 for answers and LOST. */
  readonly run: Id64
  /** What its sealer put into it. */
  readonly spoken: Spoken
  readonly from: Address
  readonly to: Address
  readonly at: Micros
  /** Whether a machine was handed these very bytes. */
  arrived: boolean
}

export interface Delivery {
  readonly bytes: Uint8Array
  /**
   * Who put it on its way: the network itself; someone who repeats what he saw; or someone who made it up, so that no
   * key opens it.
   */
  readonly origin: "sent" | "repeated" | "forged"
  /** Whether these are the bytes that were sent. */
  readonly intact: boolean
  /** What this is a copy of; of forged packets, nothing. */
  readonly sent: Sent | undefined
  readonly from: Address
  readonly to: Address
}

/** Where a replayer sits: what is answered to it is lost. */
export const replayer: Address = { host: "10.6.6.6", port: 6_666 }

export class Network {
  weather: Weather
  /** Everything that was sent: data packets by run, answers in one row, LOST in another. */
  readonly runs = new Map<Id64, Array<Sent>>()
  readonly answers: Array<Sent> = []
  readonly lost: Array<Sent> = []
  /** Sees everything that is sent. */
  eavesdropper: ((sent: Sent) => void) | undefined
  #sent = 0

  readonly timeline: Timeline
  readonly chance: Chance
  readonly #longestDelay: Micros
  readonly #deliver: (delivery: Delivery) => void

  constructor(timeline: Timeline, chance: Chance, weather: Weather, deliver: (delivery: Delivery) => void) {
    this.timeline = timeline
    this.chance = chance
    this.weather = weather
    this.#longestDelay = weather.delay + weather.jitter
    this.#deliver = deliver
  }

  /** No packet of a machine travels longer. */
  get longestDelay(): Micros {
    return this.#longestDelay
  }

  /** A data packet of a run. The bytes are the network's from now on. */
  sendData(run: Id64, bytes: Uint8Array, spoken: Spoken, from: Address, to: Address): void {
    const sent = this.#make(run, bytes, spoken, from, to)
    const row = this.runs.get(run)
    if (row === undefined) this.runs.set(run, [sent])
    else row.push(sent)
    this.#send(sent)
  }

  /** A packet back: an answer, or LOST. */
  sendBack(isLost: boolean, bytes: Uint8Array, spoken: Spoken, from: Address, to: Address): void {
    const sent = this.#make(0n, bytes, spoken, from, to)
    if (isLost) this.lost.push(sent)
    else this.answers.push(sent)
    this.#send(sent)
  }

  /** Delivers another copy of what was sent before, from anywhere. */
  repeat(sent: Sent, at: Micros, from: Address = sent.from, to: Address = sent.to): void {
    this.timeline.at(at, () =>
      this.#deliver({ bytes: sent.bytes.slice(), origin: "repeated", intact: true, sent, from, to })
    )
  }

  /** Delivers what nobody sent. */
  forge(bytes: Uint8Array, at: Micros, from: Address, to: Address): void {
    this.timeline.at(at, () => this.#deliver({ bytes, origin: "forged", intact: false, sent: undefined, from, to }))
  }

  #make(run: Id64, bytes: Uint8Array, spoken: Spoken, from: Address, to: Address): Sent {
    return { bytes, id: this.#sent++, run, spoken, from, to, at: this.timeline.now, arrived: false }
  }

  /** Copies of it arrive, later or never. */
  #send(sent: Sent): void {
    const { chance, weather } = this
    const { from, to } = sent
    this.eavesdropper?.(sent)
    const copies = chance.happens(weather.duplicate) ? 2 : 1
    for (let i = 0; i < copies; i++) {
      if (chance.happens(weather.loss)) continue
      const bytes = sent.bytes.slice()
      const damaged = chance.happens(weather.corrupt)
      if (damaged) bytes[chance.between(0, bytes.length - 1)]! ^= 1 << chance.between(0, 7)
      const after = weather.delay + Math.floor(chance.unit() * weather.jitter)
      this.timeline.at(this.timeline.now + after, () =>
        this.#deliver({ bytes, origin: "sent", intact: !damaged, sent, from, to })
      )
    }
  }
}

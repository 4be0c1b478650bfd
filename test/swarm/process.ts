import type { Micros } from "@pure-link/wire"
import type { Chance } from "../world/chance.ts"
import type { Delivery } from "./network.ts"
import type { Timeline } from "../world/timeline.ts"

/**
 * A process as its operating system runs it: a monotonic clock of its own, with an origin that no other process shares,
 * a socket's buffer, and the power to suspend it for minutes. While it is suspended nothing of it runs; then everything
 * happens late and at once.
 */
export class Process {
  alive = true
  /** Datagrams that found the socket's buffer full. */
  overflowed = 0
  #origin: Micros
  #frozenAt: Micros | undefined
  #first: Array<() => void> = []
  #late: Array<() => void> = []
  #buffer: Array<Delivery> = []
  readonly #room: number
  readonly #timeline: Timeline
  readonly #chance: Chance

  constructor(timeline: Timeline, chance: Chance) {
    this.#timeline = timeline
    this.#chance = chance
    this.#origin = chance.happens(0.3) ? 0 : Math.floor(chance.unit() * longestAgo)
    this.#room = chance.between(8, 128)
  }

  /** What its clock shows: the only time its machines ever see. */
  get now(): Micros {
    return this.#timeline.now + this.#origin
  }

  get isFrozen(): boolean {
    return this.#frozenAt !== undefined
  }

  /** Acts when the clock shows a time, or later. */
  at(time: Micros, act: () => void): void {
    this.#timeline.at(Math.ceil(time) - this.#origin, () => this.do(act))
  }

  /** Acts now; a suspended process when it wakes; a dead one never. */
  do(act: () => void): void {
    if (!this.alive) return
    if (this.isFrozen) this.#late.push(act)
    else act()
  }

  /** Acts now; a suspended process as soon as it wakes, before anything else. */
  doFirst(act: () => void): void {
    if (this.isFrozen) this.#first.push(act)
    else this.do(act)
  }

  /** A datagram reached the socket; `take` reads all that wait there. */
  receive(delivery: Delivery, take: (all: ReadonlyArray<Delivery>) => void): void {
    if (!this.alive) return
    if (!this.isFrozen) return take([delivery])
    if (this.#buffer.length >= this.#room) {
      this.overflowed += 1
      return
    }
    this.#buffer.push(delivery)
    if (this.#buffer.length > 1) return
    this.#late.push(() => {
      const all = this.#buffer
      this.#buffer = []
      take(all)
    })
  }

  freeze(): void {
    if (this.alive) this.#frozenAt ??= this.#timeline.now
  }

  /** Everything that waited happens; a clock that does not count suspended time is behind by it. */
  wake(): void {
    if (this.#frozenAt === undefined) return
    if (this.#chance.happens(0.5)) this.#origin -= this.#timeline.now - this.#frozenAt
    this.#frozenAt = undefined
    const first = this.#first
    const late = this.#late
    this.#first = []
    this.#late = []
    if (this.#chance.happens(0.5)) late.reverse()
    for (const act of [...first, ...late]) this.do(act)
  }
}

/** The oldest origin of a clock: 80 years ago. */
const longestAgo: Micros = 80 * 365 * 86_400 * 1_000_000

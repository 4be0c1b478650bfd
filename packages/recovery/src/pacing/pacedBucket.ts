import { type Bytes, type Micros, never } from "@pure-link/wire"
import type { RoundTripTime } from "../roundTripTime.ts"
import type { Pacer, PacerOptions } from "./Pacer.ts"

/**
 * Spreads a window over a round trip (RFC 9002 §7.7, spec §14.7). A bucket of bytes fills at 1.25 windows per smoothed
 * RTT, 2 in slow start, and holds 2 ms' worth. A timer that comes late finds what it missed in the bucket too, so that
 * neither a coarse timer nor a process that is busy for some time costs throughput; a sender without data misses nothing.
 */

const gain = 1.25
const slowStartGain = 2
/** A burst is worth this much time … */
const burstTime: Micros = 2_000
/** … and at least and at most this many datagrams. */
const smallestBurst = 10
const largestBurst = 256
/** A paused sender is woken for this much time's worth at once, or for a burst, not for every datagram. */
const wakeTime: Micros = 1_000

export class PacedBucket implements Pacer {
  readonly name = "paced"
  readonly #controller: PacerOptions["controller"]
  readonly #rtt: RoundTripTime
  #datagramSize: Bytes
  /** Bytes that may go now; below 0 after probes, which do not ask. */
  #room: Bytes
  #filledAt: Micros = 0
  /** When a paused sender was told to come back; never when it was not paused, or has come. */
  #promisedAt: Micros = never
  /** Something was sent since the window was last found full. */
  #hasSent = false

  constructor(options: PacerOptions) {
    this.#controller = options.controller
    this.#rtt = options.rtt
    this.#datagramSize = options.datagramSize
    this.#room = smallestBurst * options.datagramSize
  }

  setDatagramSize(bytes: Bytes): void {
    this.#datagramSize = bytes
  }

  /** When a datagram may go: `now`, or a later time to come back at. */
  paceAt(now: Micros): Micros {
    this.#fill(now)
    if (this.#room >= this.#datagramSize) return now
    const rate = this.#rate()
    const worth = Math.max(this.#datagramSize, rate * wakeTime)
    const wanted = Math.min(worth, this.#burst(rate))
    this.#promisedAt = now + Math.max(1, Math.ceil((wanted - this.#room) / rate))
    return this.#promisedAt
  }

  roomFor(now: Micros, bytes: Bytes): number {
    this.#fill(now)
    return Math.floor(this.#room / bytes)
  }

  handleSent(now: Micros, bytes: Bytes): void {
    this.#fill(now)
    this.#hasSent = true
    this.#room -= bytes
  }

  /**
   * The sender has nothing to send: from here on no timer can miss anything for it, and what it missed is forgotten.
   */
  rest(now: Micros): void {
    this.#fill(now)
    this.#promisedAt = never
    this.#room = Math.min(this.#room, this.#burst(this.#rate()))
  }

  /**
   * Once after every packet, lest a full window wakes its sender again and again. A process that is busy elsewhere reads
   * the answers late, too, all at once, and then must not wait for time that it had already.
   */
  waitForRoom(now: Micros): Micros {
    if (now === this.#promisedAt) return (this.#promisedAt = never)
    this.#fill(now)
    this.#room = Math.min(this.#room, this.#burst(this.#rate()))
    if (this.#hasSent) this.#promisedAt = now + burstTime
    this.#hasSent = false
    return this.#promisedAt
  }

  restart(now: Micros): void {
    this.#room = smallestBurst * this.#datagramSize
    this.#filledAt = now
    this.#promisedAt = never
  }

  /** Time fills the bucket up to a burst; the time since a missed promise fills it beyond, up to the largest burst. */
  #fill(now: Micros): void {
    if (now <= this.#filledAt) return
    const rate = this.#rate()
    const missed = Math.max(0, now - Math.max(this.#promisedAt, this.#filledAt))
    const filled = this.#room + (now - this.#filledAt - missed) * rate
    this.#room = Math.max(this.#room, Math.min(filled, this.#burst(rate)))
    const caughtUp = this.#room + missed * rate
    this.#room = Math.max(this.#room, Math.min(caughtUp, largestBurst * this.#datagramSize))
    this.#filledAt = now
    if (now >= this.#promisedAt) this.#promisedAt = never
  }

  /** Bytes per microsecond. */
  #rate(): number {
    return ((this.#controller.inSlowStart ? slowStartGain : gain) * this.#controller.window) / this.#rtt.smoothed
  }

  #burst(rate: number): Bytes {
    const datagrams = Math.min(Math.max((rate * burstTime) / this.#datagramSize, smallestBurst), largestBurst)
    return datagrams * this.#datagramSize
  }
}

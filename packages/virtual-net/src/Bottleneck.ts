import { type Address, type Bytes, type Micros, never } from "@pure-link/wire"
import { AddressMap } from "./AddressMap.ts"
import { atLeast, atLeastZero } from "./bounds.ts"

/**
 * A place that datagrams pass one after the other at a limited rate, with a queue in front of it that drops what does
 * not fit (drop-tail). Any number of links may lead through one bottleneck; then they share its rate and its queue, and
 * it counts each sender's flow apart. Nothing happens here when a datagram leaves: the time of its departure is known
 * when it comes.
 */

export interface BottleneckOptions {
  /** What it carries at most, headers included; above 0. */
  readonly rateBitsPerSecond: number
  /**
   * Bytes that may wait, headers included; the datagram that is being sent does not wait and does not count. A datagram
   * that finds the bottleneck idle never waits, so it passes even if it is larger than this. Infinity drops nothing.
   */
  readonly queueBytes: Bytes
  /** Headers that each datagram has on the wire besides its payload; 28 (IPv4 and UDP) if not given. */
  readonly overheadBytes?: Bytes
}

/** What one sender sent through a bottleneck. Bytes are those on the wire, headers included. */
export interface FlowCounters {
  accepted: number
  acceptedBytes: Bytes
  /** The queue had no room for them. */
  dropped: number
  droppedBytes: Bytes
}

export interface BottleneckCounters extends FlowCounters {
  /** The most that ever waited, without the datagram that was being sent. */
  largestQueueBytes: Bytes
}

export class Bottleneck {
  readonly counters: BottleneckCounters = { ...noFlow(), largestQueueBytes: 0 }
  readonly #flows = new AddressMap<FlowCounters>()
  #microsPerByte = 0
  #queueBytes = 0
  #overheadBytes = 0
  /** When the last of those inside will have left: a fraction of a microsecond, so that the rate is exact over time. */
  #busyUntil = 0
  /** Those inside, in a ring: the first is being sent, the others wait. */
  #departures = new Float64Array(64)
  #sizes = new Float64Array(64)
  #first = 0
  #inside = 0
  #insideBytes = 0

  constructor(options: BottleneckOptions) {
    this.change(options)
  }

  /** What comes from now on meets these options. Those that are inside leave when they would have left. */
  change({ rateBitsPerSecond, queueBytes, overheadBytes = 28 }: BottleneckOptions): void {
    if (!(rateBitsPerSecond > 0 && rateBitsPerSecond < Infinity)) {
      throw new RangeError(`rateBitsPerSecond must be finite and above 0, but is ${rateBitsPerSecond}`)
    }
    atLeast("queueBytes", queueBytes, 0)
    atLeastZero("overheadBytes", overheadBytes)
    this.#microsPerByte = 8e6 / rateBitsPerSecond
    this.#queueBytes = queueBytes
    this.#overheadBytes = overheadBytes
  }

  /** A datagram comes. Returns when its last bit will have left, or `never` if it was dropped. */
  pass(now: Micros, payload: Bytes, from: Address): number {
    const size = payload + this.#overheadBytes
    const flow = this.flow(from)
    const waitingBytes = this.waitingBytes(now)
    const isIdle = this.#inside === 0
    if (!isIdle && waitingBytes + size > this.#queueBytes) {
      count(this.counters, "dropped", "droppedBytes", size)
      count(flow, "dropped", "droppedBytes", size)
      return never
    }
    count(this.counters, "accepted", "acceptedBytes", size)
    count(flow, "accepted", "acceptedBytes", size)
    if (!isIdle) this.counters.largestQueueBytes = Math.max(this.counters.largestQueueBytes, waitingBytes + size)
    this.#busyUntil = (isIdle ? now : this.#busyUntil) + size * this.#microsPerByte
    this.#enter(size)
    return this.#busyUntil
  }

  /** Bytes on the wire that wait at this moment, without the datagram that is being sent. */
  waitingBytes(now: Micros): Bytes {
    this.#release(now)
    return this.#inside === 0 ? 0 : this.#insideBytes - this.#sizes[this.#first]!
  }

  /** The counters of the flow that comes from this address; zeros if nothing came yet. */
  flow(from: Address): FlowCounters {
    let flow = this.#flows.get(from)
    if (flow === undefined) this.#flows.set(from, (flow = noFlow()))
    return flow
  }

  #enter(size: Bytes): void {
    if (this.#inside === this.#sizes.length) this.#grow()
    const last = (this.#first + this.#inside++) & (this.#sizes.length - 1)
    this.#departures[last] = this.#busyUntil
    this.#sizes[last] = size
    this.#insideBytes += size
  }

  /** Forgets those that have left; what leaves at this very moment has left. */
  #release(now: Micros): void {
    while (this.#inside > 0 && this.#departures[this.#first]! <= now) {
      this.#insideBytes -= this.#sizes[this.#first]!
      this.#first = (this.#first + 1) & (this.#sizes.length - 1)
      this.#inside--
    }
  }

  #grow(): void {
    this.#departures = unrolled(this.#departures, this.#first)
    this.#sizes = unrolled(this.#sizes, this.#first)
    this.#first = 0
  }
}

const noFlow = (): FlowCounters => ({ accepted: 0, acceptedBytes: 0, dropped: 0, droppedBytes: 0 })

const count = (
  counters: FlowCounters,
  number: "accepted" | "dropped",
  bytes: "acceptedBytes" | "droppedBytes",
  size: Bytes
): void => {
  counters[number]++
  counters[bytes] += size
}

/** A full ring in one of twice the size, its first element in front. */
const unrolled = (ring: Float64Array, first: number): Float64Array<ArrayBuffer> => {
  const larger = new Float64Array(2 * ring.length)
  larger.set(ring.subarray(first))
  larger.set(ring.subarray(0, first), ring.length - first)
  return larger
}

import type { Bytes, Micros } from "@pure-link/wire"

/**
 * Goodput, window and TCP's goodput over a run, in slices of virtual time that double in length when there would be too
 * many, so that a second and an hour take the same memory.
 */

/** A point: a slice's end in seconds, Mbit/s, and the window's last value in it. */
export interface Point {
  readonly seconds: number
  readonly goodput: number
  readonly window: Bytes
  readonly tcp: number
}

const mostSlices = 8_192

export class TimeSeries {
  #slice: Micros = 1_000
  readonly #bytes: Array<Bytes> = []
  readonly #tcpBytes: Array<Bytes> = []
  readonly #windows: Array<Bytes> = []

  addBytes(now: Micros, bytes: Bytes): void {
    const slice = this.#sliceOf(now)
    this.#bytes[slice] = (this.#bytes[slice] ?? 0) + bytes
  }

  addTcpBytes(now: Micros, bytes: Bytes): void {
    const slice = this.#sliceOf(now)
    this.#tcpBytes[slice] = (this.#tcpBytes[slice] ?? 0) + bytes
  }

  setWindow(now: Micros, window: Bytes): void {
    const slice = this.#sliceOf(now)
    this.#windows[slice] = window
  }

  /** The run up to `end`, in at most this many points of equal length. */
  points(end: Micros, count: number): ReadonlyArray<Point> {
    const slices = Math.max(1, Math.ceil(end / this.#slice))
    const each = Math.ceil(slices / count)
    const points: Array<Point> = []
    let window = 0
    for (let from = 0; from < slices; from += each) {
      const to = Math.min(from + each, slices)
      let bytes = 0
      let tcpBytes = 0
      for (let slice = from; slice < to; slice++) {
        bytes += this.#bytes[slice] ?? 0
        tcpBytes += this.#tcpBytes[slice] ?? 0
        window = this.#windows[slice] ?? window
      }
      const micros = Math.min(to * this.#slice, end) - from * this.#slice
      points.push({
        seconds: Math.min(to * this.#slice, end) / 1e6,
        goodput: (8 * bytes) / micros,
        window,
        tcp: (8 * tcpBytes) / micros
      })
    }
    return points
  }

  #sliceOf(now: Micros): number {
    while (now >= this.#slice * mostSlices) this.#double()
    return Math.floor(now / this.#slice)
  }

  #double(): void {
    for (const row of [this.#bytes, this.#tcpBytes]) {
      const half = Math.ceil(row.length / 2)
      for (let i = 0; i < half; i++) row[i] = (row[2 * i] ?? 0) + (row[2 * i + 1] ?? 0)
      row.length = half
    }
    const half = Math.ceil(this.#windows.length / 2)
    for (let i = 0; i < half; i++) this.#windows[i] = (this.#windows[2 * i + 1] ?? this.#windows[2 * i])!
    this.#windows.length = half
    this.#slice *= 2
  }
}

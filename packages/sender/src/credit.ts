import { initialWindow } from "@pure-link/recovery"
import type { Bytes, RecordNumber } from "@pure-link/wire"
import type { Position, RecordQueue } from "./recordQueue.ts"

/**
 * How far past n records may go (spec §9.3): what the answer with the highest number of the current reply run said, the
 * initial window before any.
 */

export class Credit {
  /** The last stored number that the credit counts from. */
  n: RecordNumber
  #records = Number.MAX_SAFE_INTEGER
  #bytes: Bytes
  /** The farthest that credit reached, in records and as a position, to tell whether it opened. */
  #recordEdge = 0
  #byteEdge: Position = 0

  constructor(n: RecordNumber, datagramSize: Bytes) {
    this.n = n
    this.#bytes = initialWindow(datagramSize)
  }

  /** Takes what STORED said; `n` is dropped from the queue already. True: credit reaches farther than it did. */
  set(n: RecordNumber, records: number, bytes: Bytes, queue: RecordQueue): boolean {
    const recordEdge = n + records
    const byteEdge = queue.firstPosition + bytes
    const opened = recordEdge > this.#recordEdge || byteEdge > this.#byteEdge
    this.n = n
    this.#records = records
    this.#bytes = bytes
    this.#recordEdge = recordEdge
    this.#byteEdge = byteEdge
    return opened
  }

  /** The position behind the last queued record that may be sent: by records, and by bytes unless it is record n+1. */
  reach(queue: RecordQueue): Position {
    const last = Math.min(this.n + this.#records, queue.end - 1)
    if (last < queue.first) return queue.firstPosition
    let low = queue.first
    let high = last
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if (bytesThrough(queue, middle) <= this.#bytes) low = middle
      else high = middle - 1
    }
    return queue.positionOf(low + 1)
  }
}

/** The bytes of the queued records through r. */
const bytesThrough = (queue: RecordQueue, r: RecordNumber): Bytes =>
  queue.positionOf(r + 1) - queue.firstPosition - (r - queue.first + 1)

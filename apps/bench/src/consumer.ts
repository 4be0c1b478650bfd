import type { InboxBatch } from "@pure-link/ports"
import { Arrivals } from "./goodput.ts"
import { Latencies } from "./latencies.ts"
import { RecordCheck, sentAtOf, sharedMillis, type Strictness } from "./pattern.ts"

/** What reads the input of a receiving end: counts, checks and times the records of each batch. */
export class Consumer {
  readonly arrivals: Arrivals
  readonly latencies = new Latencies()
  readonly check: RecordCheck

  constructor(options: { readonly skipSeconds: number; readonly strictness: Strictness }) {
    this.arrivals = new Arrivals(options.skipSeconds)
    this.check = new RecordCheck(options.strictness)
  }

  get records(): number {
    return this.check.records
  }

  get bytes(): number {
    return this.check.bytes
  }

  take({ bytes, runs, sizes }: Omit<InboxBatch, "firstPosition">): void {
    const now = performance.now()
    let from = 0
    let at = 0
    for (const { count, firstNumber } of runs) {
      const end = this.check.batch(bytes, at, sizes, from, from + count, firstNumber)
      this.#time(bytes, at, sizes, from, from + count)
      at = end
      from += count
    }
    this.arrivals.add(now, sizes.length, at)
  }

  /** A sender at a rate stamps every record, any other none. */
  #time(bytes: Uint8Array, start: number, sizes: Uint32Array, from: number, to: number): void {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    const arrived = sharedMillis()
    for (let i = from, at = start; i < to; at += sizes[i++]!) {
      const sentAt = sentAtOf(view, at, sizes[i]!)
      if (sentAt === 0) return
      this.latencies.add(arrived - sentAt)
    }
  }
}

import type { PacketNumber } from "@pure-link/wire"

/**
 * Packet numbers as ranges, in the order in which they were added: emptied and filled again for every answer, which
 * settles few ranges however many packets they are. Read range i as [starts[i], ends[i]), for i below `length`.
 */
export class NumberRanges {
  starts = new Float64Array(16)
  ends = new Float64Array(16)
  /** How many ranges, and how many numbers in all of them. */
  length = 0
  count = 0

  /** Adds the numbers from `start` on and below `end`; what follows the last range at once prolongs it. */
  add(start: PacketNumber, end: PacketNumber): void {
    this.count += end - start
    const last = this.length - 1
    if (last >= 0 && this.ends[last] === start) {
      this.ends[last] = end
      return
    }
    if (this.length === this.starts.length) this.#grow()
    this.starts[this.length] = start
    this.ends[this.length++] = end
  }

  clear(): void {
    this.length = 0
    this.count = 0
  }

  #grow(): void {
    const { starts, ends } = this
    this.starts = new Float64Array(starts.length * 2)
    this.ends = new Float64Array(ends.length * 2)
    this.starts.set(starts)
    this.ends.set(ends)
  }
}

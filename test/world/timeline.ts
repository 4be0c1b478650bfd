import type { Micros } from "@pure-link/wire"

/**
 * Virtual time: a heap of things to do, in the order of their time and, at equal times, of their asking.
 */
interface Entry {
  readonly at: Micros
  readonly order: number
  readonly run: () => void
}

const before = (a: Entry, b: Entry) => a.at < b.at || (a.at === b.at && a.order < b.order)

export class Timeline {
  now: Micros = 0
  #order = 0
  readonly #heap: Array<Entry> = []

  at(time: Micros, run: () => void): void {
    const entry = { at: Math.max(time, this.now), order: this.#order++, run }
    const heap = this.#heap
    let i = heap.push(entry) - 1
    for (let parent; i > 0 && before(entry, heap[(parent = (i - 1) >> 1)]!); i = parent) heap[i] = heap[parent]!
    heap[i] = entry
  }

  /** Runs the earliest thing; false when there is none. */
  step(): boolean {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined) return false
    if (heap.length > 0) this.#sift(last)
    this.now = first.at
    first.run()
    return true
  }

  #sift(entry: Entry): void {
    const heap = this.#heap
    let i = 0
    for (let child; (child = 2 * i + 1) < heap.length; i = child) {
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++
      if (!before(heap[child]!, entry)) break
      heap[i] = heap[child]!
    }
    heap[i] = entry
  }
}

import type { Micros } from "@pure-link/wire"

/**
 * What is to happen, earliest first, and in the order of entry at the same microsecond: a binary heap. Both the
 * simulated clock and the network keep one; that order is what makes their runs repeatable.
 */

export interface Entry {
  readonly at: Micros
  /** Position in the order of entry; unique in its agenda. */
  readonly order: number
}

export class Agenda<A extends Entry> {
  readonly #heap: Array<A> = []
  #entered = 0

  get size(): number {
    return this.#heap.length
  }

  /** The `order` for the next entry. */
  nextOrder(): number {
    return this.#entered++
  }

  first(): A | undefined {
    return this.#heap[0]
  }

  add(entry: A): void {
    const heap = this.#heap
    let hole = heap.push(entry) - 1
    while (hole > 0) {
      const parent = (hole - 1) >> 1
      if (!precedes(entry, heap[parent]!)) break
      heap[hole] = heap[parent]!
      hole = parent
    }
    heap[hole] = entry
  }

  takeFirst(): A | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (heap.length === 0 || last === undefined) return first
    let hole = 0
    for (let child = 1; child < heap.length; child = 2 * hole + 1) {
      if (child + 1 < heap.length && precedes(heap[child + 1]!, heap[child]!)) child++
      if (!precedes(heap[child]!, last)) break
      heap[hole] = heap[child]!
      hole = child
    }
    heap[hole] = last
    return first
  }
}

const precedes = (a: Entry, b: Entry): boolean => a.at < b.at || (a.at === b.at && a.order < b.order)

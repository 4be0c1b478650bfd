import { GCProfiler, getHeapStatistics } from "node:v8"

/**
 * How much a process allocates: what the heap grew between garbage collections, added up, so that nothing is counted
 * twice and nothing that was collected is missed.
 */

export interface Allocation {
  /** On the JavaScript heap. */
  readonly heap_bytes: number
  /** Outside it: array buffers. What was freed between two collections does not show. */
  readonly external_bytes: number
  readonly collections: number
}

interface HeapSizes {
  readonly usedHeapSize: number
  readonly externalMemory: number
}

export class AllocationWatch {
  readonly #profiler = new GCProfiler()
  readonly #before = sizesNow()

  constructor() {
    this.#profiler.start()
  }

  stop(): Allocation {
    const { statistics } = this.#profiler.stop() as {
      statistics: ReadonlyArray<{
        readonly beforeGC: { readonly heapStatistics: HeapSizes }
        readonly afterGC: { readonly heapStatistics: HeapSizes }
      }>
    }
    const pauses = statistics.map(({ afterGC, beforeGC }) => ({
      before: beforeGC.heapStatistics,
      after: afterGC.heapStatistics
    }))
    return allocated(this.#before, pauses, sizesNow())
  }
}

/** Growth up to each collection, and after the last. */
export const allocated = (
  from: HeapSizes,
  pauses: ReadonlyArray<{ readonly before: HeapSizes; readonly after: HeapSizes }>,
  to: HeapSizes
): Allocation => {
  const grown = (size: (sizes: HeapSizes) => number): number => {
    let sum = 0
    let last = size(from)
    for (const { after, before } of pauses) {
      sum += Math.max(0, size(before) - last)
      last = size(after)
    }
    return sum + Math.max(0, size(to) - last)
  }
  return {
    heap_bytes: grown((sizes) => sizes.usedHeapSize),
    external_bytes: grown((sizes) => sizes.externalMemory),
    collections: pauses.length
  }
}

const sizesNow = (): HeapSizes => {
  const { external_memory: externalMemory, used_heap_size: usedHeapSize } = getHeapStatistics()
  return { usedHeapSize, externalMemory }
}

import { Memo } from "@pure-link/ports"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type MemoCapacity, memoCapacity } from "./memo/options.ts"
import { slotLength } from "./memo/slot.ts"
import { SlotTable } from "./memo/slotTable.ts"
import type { SlotStorage } from "./memo/storage.ts"

/**
 * A memo in memory, for tests and simulations. It outlives the nodes that use it, as a file would, and can be copied, as
 * a file in a backup is.
 */
export interface MemoInMemory extends Readonly<Memo["Service"]> {
  /** What a backup made now gives when it is restored: a memo that goes its own way. */
  copy(): MemoInMemory
  /** All that it holds, secrets included. */
  bytes(): Uint8Array
}

export const makeMemoMemory = (capacity: MemoCapacity = {}): MemoInMemory =>
  memoOver(new SlotsInMemory(), memoCapacity(capacity))

const memoOver = (storage: SlotsInMemory, capacity: Required<MemoCapacity>): MemoInMemory => {
  const table = new SlotTable(storage, { ...capacity, owner: new Uint8Array(32) })
  return {
    memo: table,
    rebuilt: undefined,
    get counters() {
      return table.counters
    },
    copy: () => memoOver(storage.copy(), capacity),
    bytes: () => storage.bytes()
  }
}

/** `memory`: one that outlives the layer; else it has a fresh one. */
export const layer = (options: MemoCapacity & { readonly memory?: MemoInMemory } = {}): Layer.Layer<Memo> =>
  Layer.effect(
    Memo,
    Effect.sync(() => Memo.of(options.memory ?? makeMemoMemory(options)))
  )

class SlotsInMemory implements SlotStorage {
  readonly #slots = new Map<number, Uint8Array>()

  visit(each: (place: number, slot: Uint8Array) => void): void {
    for (const place of [...this.#slots.keys()].toSorted((a, b) => a - b)) each(place, this.#slots.get(place)!.slice())
  }

  read(place: number, slot: Uint8Array): boolean {
    slot.fill(0)
    slot.set(this.#slots.get(place) ?? [])
    return true
  }

  write(place: number, slot: Uint8Array): boolean {
    const written = this.#slots.get(place) ?? new Uint8Array(slotLength)
    written.set(slot)
    this.#slots.set(place, written)
    return true
  }

  bytes(): Uint8Array {
    return Buffer.concat([...this.#slots.values()])
  }

  copy(): SlotsInMemory {
    const copy = new SlotsInMemory()
    for (const [place, slot] of this.#slots) copy.write(place, slot)
    return copy
  }
}

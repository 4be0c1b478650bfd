import { type Entropy, id64 } from "@pure-link/keys"
import {
  type CommitOutcome,
  type Id64,
  type Life,
  lifeOf,
  type RecordBatch,
  type RecordNumber,
  type StoreIntent,
  type StreamCursor,
  type StreamName
} from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import { checkRecord, recordOf } from "../world/record.ts"

/**
 * An outbox and an inbox that outlive their processes and keep no bytes: a record follows from its number and size, and
 * the inbox checks each one before it counts it.
 */
export class OutboxDisk {
  readonly generation: Id64
  readonly #entropy: Entropy
  #removedThrough: RecordNumber = 0
  #sizes: Array<number> = []
  #lives: Array<Life> = []
  #life: Id64 | undefined

  constructor(entropy: Entropy) {
    this.#entropy = entropy
    this.generation = id64(entropy)
  }

  /** Another process opened it: what it appends is another life (spec §8.2). */
  reopen(): void {
    this.#life = undefined
  }

  append(sizes: ReadonlyArray<number>): void {
    if (this.#life === undefined) {
      this.#life = id64(this.#entropy)
      this.#lives.push({ life: this.#life, first: this.last + 1 })
    }
    for (const size of sizes) this.#sizes.push(size)
  }

  get last(): RecordNumber {
    return this.#sizes.length
  }

  state() {
    const lives = this.#lives.filter(
      (_, i) => (this.#lives[i + 1]?.first ?? Infinity) > Math.max(this.#removedThrough, 1)
    )
    return { generation: this.generation, lowestHeld: this.#removedThrough + 1, last: this.last, lives }
  }

  read(from: RecordNumber, most: { readonly records: number; readonly bytes: number }): RecordBatch {
    let bytes = 0
    let end = from
    for (; end <= this.last && end - from < most.records; end++) {
      const size = this.#sizes[end - 1]!
      if (end > from && bytes + size > most.bytes) break
      bytes += size
    }
    const sizes = Uint32Array.from(this.#sizes.slice(from - 1, end - 1))
    const batch = { first: from, bytes: new Uint8Array(bytes), sizes }
    let at = 0
    sizes.forEach((size, i) => {
      batch.bytes.set(recordOf(from + i, size), at)
      at += size
    })
    return batch
  }

  removeThrough(n: RecordNumber): void {
    this.#removedThrough = Math.max(this.#removedThrough, n)
  }
}

export class InboxDisk {
  readonly #cursors = new Map<string, StreamCursor>()
  recordsStored = 0
  bytesStored = 0

  cursor({ source }: StreamName): StreamCursor | undefined {
    return this.#cursors.get(source)
  }

  isRetired(): boolean {
    return false
  }

  retiredCount(): number {
    return 0
  }

  /** Stores what follows; anything else is a fault of the machine, for no outbox here is ever replaced or copied. */
  commit(intent: StoreIntent): CommitOutcome {
    const { batch, generation, lives, source } = intent
    const n = this.#cursors.get(source)?.n ?? 0
    assert(batch.first === n + 1, `a batch from ${batch.first} on came to ${source}'s n of ${n}`)
    let at = 0
    batch.sizes.forEach((size, i) => {
      checkRecord(batch.first + i, batch.bytes, at, size)
      at += size
    })
    const last = n + batch.sizes.length
    const cursor = { generation, n: last, life: lifeOf(lives, last)!.life }
    this.#cursors.set(source, cursor)
    this.recordsStored += batch.sizes.length
    this.bytesStored += batch.bytes.length
    return { _tag: "Stored", cursor }
  }
}

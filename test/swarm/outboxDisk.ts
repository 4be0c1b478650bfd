import { type Id64, type Life, type RecordBatch, type RecordNumber } from "@pure-link/wire"
import type { Chance } from "../world/chance.ts"
import { type Entry, follow, type Generation, id64 } from "./history.ts"

/**
 * An outbox as it survives its process: a path of the model's tree. Plain and slow on purpose; the real stores are held
 * to the same contract by `packages/ports/src/contract`.
 */
export class OutboxDisk {
  readonly generation: Generation
  removedThrough: RecordNumber = 0
  #entries: Array<Entry> = []
  #lives: Array<Life> = []
  #life: Id64 | undefined

  readonly chance: Chance

  constructor(chance: Chance, generation: Generation) {
    this.chance = chance
    this.generation = generation
  }

  /** A new opening: its life is registered by its first append. */
  reopen(): void {
    this.#life = undefined
  }

  append(record: Uint8Array): void {
    if (this.#life === undefined) {
      this.#life = id64(this.chance)
      this.#lives.push({ life: this.#life, first: this.last + 1 })
    }
    this.#entries.push(follow(this.#entries.at(-1) ?? this.generation.root, this.#life, record))
  }

  get last(): RecordNumber {
    return this.#entries.length
  }

  entry(number: RecordNumber): Entry | undefined {
    return number === 0 ? this.generation.root : this.#entries[number - 1]
  }

  /** Whether an inbox ever held a record that this outbox does not have: the two are forks of one history. */
  get isForked(): boolean {
    for (const entry of this.generation.stored) if (this.entry(entry.number) !== entry) return true
    return false
  }

  state() {
    const lives = this.#lives
    const kept = lives.filter(
      (_, index) => (lives[index + 1]?.first ?? Number.POSITIVE_INFINITY) > Math.max(this.removedThrough, 1)
    )
    return { generation: this.generation.id, lowestHeld: this.removedThrough + 1, last: this.last, lives: kept }
  }

  read(from: RecordNumber, most: { readonly records: number; readonly bytes: number }): RecordBatch {
    const taken: Array<Uint8Array> = []
    let bytes = 0
    for (let number = from; number <= this.last && taken.length < most.records; number++) {
      const record = this.entry(number)!.bytes
      if (taken.length > 0 && bytes + record.length > most.bytes) break
      taken.push(record)
      bytes += record.length
    }
    return { first: from, bytes: Buffer.concat(taken), sizes: Uint32Array.from(taken.map((record) => record.length)) }
  }

  removeThrough(n: RecordNumber): void {
    this.removedThrough = Math.max(this.removedThrough, n)
  }

  /** The file as it is now, copied: a backup, or another machine's disk. Opened anew, it is another life. */
  copy(): OutboxDisk {
    const copy = new OutboxDisk(this.chance, this.generation)
    copy.removedThrough = this.removedThrough
    copy.#entries = [...this.#entries]
    copy.#lives = [...this.#lives]
    return copy
  }
}

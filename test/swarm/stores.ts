import {
  type CommitOutcome,
  endOf,
  type Id64,
  type Life,
  lifeOf,
  type RecordBatch,
  type StoreIntent,
  type StreamCursor,
  type StreamName
} from "@pure-link/wire"
import type { Chance } from "./chance.ts"

/**
 * The reference model's disks: what an outbox and an inbox hold, whatever process is killed. They are plain and slow on
 * purpose; the real stores are held to the same contract by `packages/ports/src/contract`.
 */

const id64 = (chance: Chance): Id64 => (BigInt(chance.bits()) << 32n) | BigInt((chance.bits() | 1) >>> 0)

/** A violation of a guarantee: the world stops with it. */
export class Violation extends Error {}

export class OutboxDisk {
  generation: Id64
  records: Array<Uint8Array> = []
  lives: Array<Life> = []
  removedThrough = 0
  #life: Id64 | undefined

  readonly chance: Chance

  constructor(chance: Chance) {
    this.chance = chance
    this.generation = id64(chance)
  }

  /** A new opening: its life is registered by its first append. */
  reopen(): void {
    this.#life = undefined
  }

  append(record: Uint8Array): void {
    if (this.#life === undefined) {
      this.#life = id64(this.chance)
      this.lives.push({ life: this.#life, first: this.last + 1 })
    }
    this.records.push(record)
  }

  get last(): number {
    return this.records.length
  }

  state() {
    const kept = this.lives.filter(
      (entry, index) => (this.lives[index + 1]?.first ?? Number.POSITIVE_INFINITY) > Math.max(this.removedThrough, 1)
    )
    return { generation: this.generation, lowestHeld: this.removedThrough + 1, last: this.last, lives: kept }
  }

  read(from: number, most: { readonly records: number; readonly bytes: number }): RecordBatch {
    const taken: Array<Uint8Array> = []
    let bytes = 0
    for (let number = from; number <= this.last && taken.length < most.records; number++) {
      const record = this.records[number - 1]!
      if (taken.length > 0 && bytes + record.length > most.bytes) break
      taken.push(record)
      bytes += record.length
    }
    return { first: from, bytes: Buffer.concat(taken), sizes: Uint32Array.from(taken.map((record) => record.length)) }
  }

  removeThrough(n: number): void {
    this.removedThrough = Math.max(this.removedThrough, n)
  }

  /** What a backup tool would keep; `restore` puts it back, as onto another machine. */
  backup() {
    return {
      generation: this.generation,
      records: [...this.records],
      lives: [...this.lives],
      removedThrough: this.removedThrough
    }
  }

  restore(copy: ReturnType<OutboxDisk["backup"]>): void {
    this.generation = copy.generation
    this.records = [...copy.records]
    this.lives = [...copy.lives]
    this.removedThrough = copy.removedThrough
    this.reopen()
  }
}

interface Log {
  cursor: StreamCursor
  records: Array<Uint8Array>
  retired: Set<Id64>
}

const keyOf = (name: StreamName) => `${name.source}\0${name.input}`

export class InboxDisk {
  readonly logs = new Map<string, Log>()

  cursor(name: StreamName): StreamCursor | undefined {
    return this.logs.get(keyOf(name))?.cursor
  }

  isRetired(name: StreamName, generation: Id64): boolean {
    return this.logs.get(keyOf(name))?.retired.has(generation) ?? false
  }

  retiredCount(name: StreamName): number {
    return this.logs.get(keyOf(name))?.retired.size ?? 0
  }

  records(name: StreamName): ReadonlyArray<Uint8Array> {
    return this.logs.get(keyOf(name))?.records ?? []
  }

  /** The rules of spec §2.3 and §8.6, record by record. */
  commit(intent: StoreIntent): CommitOutcome {
    const log = this.logs.get(keyOf(intent))
    if (log?.retired.has(intent.generation)) return { _tag: "Conflict", cursor: log.cursor }
    const fresh = log === undefined || log.cursor.generation !== intent.generation
    const n = fresh ? 0 : log.cursor.n
    if (intent.batch.first !== n + 1) return { _tag: "Conflict", cursor: log?.cursor }
    let life = fresh ? 0n : log.cursor.life
    for (let number = intent.batch.first; number < endOf(intent.batch); number++) {
      const entry = lifeOf(intent.lives, number)
      if (entry === undefined || (number > 1 && entry.first <= number - 1 && entry.life !== life)) {
        return { _tag: "Conflict", cursor: log?.cursor }
      }
      life = entry.life
    }
    const cursor = { generation: intent.generation, n: endOf(intent.batch) - 1, life }
    const records: Array<Uint8Array> = []
    let at = 0
    for (const size of intent.batch.sizes) {
      records.push(intent.batch.bytes.slice(at, at + size))
      at += size
    }
    if (at !== intent.batch.bytes.length) throw new Violation("the sizes of a store intent do not add up to its bytes")
    const retired = log?.retired ?? new Set<Id64>()
    if (log !== undefined && fresh) retired.add(log.cursor.generation)
    this.logs.set(keyOf(intent), { cursor, records: [...(log?.records ?? []), ...records], retired })
    return { _tag: "Stored", cursor }
  }

  backup() {
    return new Map(
      [...this.logs].map(([key, log]) => [key, { ...log, records: [...log.records], retired: new Set(log.retired) }])
    )
  }

  restore(copy: ReturnType<InboxDisk["backup"]>): void {
    this.logs.clear()
    for (const [key, log] of copy)
      this.logs.set(key, { ...log, records: [...log.records], retired: new Set(log.retired) })
  }
}

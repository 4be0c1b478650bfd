import {
  type CommitOutcome,
  endOf,
  type Id64,
  lifeOf,
  type StoreIntent,
  type StreamCursor,
  type StreamName
} from "@pure-link/wire"
import { Violation } from "./violation.ts"

/**
 * An inbox as it survives its process: cursors, records and retired generations, changed by the commit rules of spec
 * §2.3 and §8.6 alone.
 */
interface Log {
  readonly cursor: StreamCursor
  readonly records: ReadonlyArray<Uint8Array>
  readonly retired: ReadonlySet<Id64>
}

const keyOf = (name: StreamName) => `${name.source}\0${name.input}`

export class InboxDisk {
  #logs = new Map<string, Log>()

  cursor(name: StreamName): StreamCursor | undefined {
    return this.#logs.get(keyOf(name))?.cursor
  }

  isRetired(name: StreamName, generation: Id64): boolean {
    return this.#logs.get(keyOf(name))?.retired.has(generation) ?? false
  }

  retiredCount(name: StreamName): number {
    return this.#logs.get(keyOf(name))?.retired.size ?? 0
  }

  /** All records of a stream, those of replaced generations first. */
  records(name: StreamName): ReadonlyArray<Uint8Array> {
    return this.#logs.get(keyOf(name))?.records ?? []
  }

  commit(intent: StoreIntent): CommitOutcome {
    const log = this.#logs.get(keyOf(intent))
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
    const retired = new Set(log?.retired)
    if (log !== undefined && fresh) retired.add(log.cursor.generation)
    this.#logs.set(keyOf(intent), { cursor, records: [...(log?.records ?? []), ...records], retired })
    return { _tag: "Stored", cursor }
  }

  /** What a backup tool would keep; `restore` puts it back, as onto another machine. */
  backup(): ReadonlyMap<string, Log> {
    return new Map(this.#logs)
  }

  restore(copy: ReadonlyMap<string, Log>): void {
    this.#logs = new Map(copy)
  }
}

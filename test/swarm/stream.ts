import type { Id64, StreamName } from "@pure-link/wire"
import type { Chance } from "../world/chance.ts"
import { type Entry, Generation, id64 } from "./history.ts"
import { OutboxDisk } from "./outboxDisk.ts"

/** One stream of a world: its name, what was ever appended to it, and the outbox file that it has now. */
export class Stream implements StreamName {
  readonly source: string
  readonly input: string
  readonly shape: Id64
  disk: OutboxDisk
  /** Its generations, in the order of their making; the last one is the one that counts. */
  readonly generations: Array<Generation> = []
  /** The inbox as the model has it: the last record of every generation that it holds, in order. */
  tips: ReadonlyArray<Entry> = []
  /** How many records were appended, to whatever outbox. */
  appended = 0
  /** Nothing is appended any more. */
  isClosed = false
  /** How far the inbox held each generation when it was put back to a backup. */
  readonly fallenTo = new Map<Generation, number>()
  /** The refusals that its configuration ever gave reason for. */
  readonly excuses = new Set<number>()

  constructor(name: StreamName, shape: Id64, chance: Chance) {
    this.source = name.source
    this.input = name.input
    this.shape = shape
    this.disk = this.newDisk(chance)
  }

  /** An outbox made anew, of a new generation. */
  newDisk(chance: Chance): OutboxDisk {
    const generation = new Generation(id64(chance), this.generations.length)
    this.generations.push(generation)
    return new OutboxDisk(chance, generation)
  }

  generation(id: Id64): Generation | undefined {
    return this.generations.find((known) => known.id === id)
  }

  /** The last record of the inbox; undefined before any. */
  get tip(): Entry | undefined {
    return this.tips.at(-1)
  }

  /** The inbox was put back to a backup. */
  fell(): void {
    for (const generation of this.generations) {
      const n = this.tip?.generation === generation ? this.tip.number : 0
      this.fallenTo.set(generation, Math.min(n, this.fallenTo.get(generation) ?? n))
    }
  }

  /** Whether the inbox holds a record, by the model. */
  holds(entry: Entry): boolean {
    let held = this.tips.find((tip) => tip.generation === entry.generation) ?? entry.generation.root
    while (held.number > entry.number) held = held.previous!
    return held === entry
  }

  /** All records that the inbox must hold, by the model. */
  get expected(): ReadonlyArray<Uint8Array> {
    return this.tips.flatMap((tip) => {
      const path: Array<Uint8Array> = []
      for (let entry = tip; entry.previous !== undefined; entry = entry.previous) path.push(entry.bytes)
      return path.reverse()
    })
  }
}

/** The streams of a world: two sources, two inputs, one shape for each input. */
export const makeStreams = (count: number, chance: Chance): ReadonlyArray<Stream> => {
  const others = chance.happens(0.5) ? [names.otherInput, names.otherSource] : [names.otherSource, names.otherInput]
  return [names.first, ...others]
    .slice(0, count)
    .map((name) => new Stream(name, name.input === "orders" ? 0x5045_5249_4f44_0001n : 0x5354_4f43_4b00_0001n, chance))
}

const names = {
  first: { source: "till-7", input: "orders" },
  otherInput: { source: "till-7", input: "stock" },
  otherSource: { source: "till-8", input: "orders" }
}

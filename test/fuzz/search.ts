import { Chance } from "../world/chance.ts"
import type { Coverage } from "./coverage.ts"
import { mutate } from "./mutation.ts"
import type { Target } from "./target.ts"

/**
 * The search that coverage guides: mutants of what is kept are run, and one that reaches something new is kept too. Coverage
 * is taken once for a handful of mutants, because taking it costs more than running many; only a handful with news is
 * run again one by one. Handfuls are as large as to take about as long as taking the coverage.
 */

const smallestHandful = 8
const largestHandful = 512
/** A kept corpus is small: what only long inputs reach is left to the search. */
const mostKept = 48 * 1_024

export interface Finding {
  readonly input: Uint8Array
  readonly error: Error
}

/** Runs one input; what it threw, or undefined. */
export const tryInput = (target: Target, input: Uint8Array): Error | undefined => {
  try {
    target.run(input)
    return undefined
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

export class Search {
  readonly target: Target
  readonly kept: Array<Uint8Array> = []
  readonly findings: Array<Finding> = []
  runs = 0
  /** The longest that one input took, in milliseconds, and which it was. */
  slowest = 0
  slowestInput: Uint8Array = new Uint8Array(0)
  readonly #coverage: Coverage
  readonly #chance: Chance
  readonly #reached = new Set<number>()
  #handful = smallestHandful

  constructor(target: Target, coverage: Coverage, seed: number) {
    this.target = target
    this.#coverage = coverage
    this.#chance = new Chance(seed)
    this.#coverage.take()
  }

  get blocks(): number {
    return this.#reached.size
  }

  /** Runs inputs that are known already, and keeps those that reach something. */
  begin(inputs: ReadonlyArray<Uint8Array>): void {
    for (const input of inputs) this.#runOne(input)
  }

  /** Runs a handful of mutants. */
  step(): void {
    const mutants = Array.from({ length: this.#handful }, () => this.#mutant())
    const began = performance.now()
    for (const mutant of mutants) this.#run(mutant)
    const ran = performance.now()
    const reached = this.#coverage.take()
    const isShort = ran - began < performance.now() - ran
    this.#handful = Math.max(smallestHandful, Math.min(largestHandful, isShort ? this.#handful * 2 : this.#handful / 2))
    if (!hasNews(this.#reached, reached)) return
    for (const mutant of mutants) this.#runOne(mutant)
  }

  /** Few inputs that together reach what all kept ones do: the shortest that has something of its own, one after the other. */
  minimized(): ReadonlyArray<Uint8Array> {
    const reached = new Set<number>()
    const chosen: Array<Uint8Array> = []
    let bytes = 0
    for (const input of this.kept.toSorted((a, b) => a.length - b.length)) {
      if (bytes + input.length > mostKept) break
      this.#coverage.take()
      tryInput(this.target, input)
      const now = this.#coverage.take()
      if (!hasNews(reached, now)) continue
      for (const block of now) reached.add(block)
      chosen.push(input)
      bytes += input.length
    }
    return chosen
  }

  #runOne(input: Uint8Array): void {
    this.#run(input)
    const now = this.#coverage.take()
    if (!hasNews(this.#reached, now)) return
    for (const block of now) this.#reached.add(block)
    this.kept.push(input)
  }

  #run(input: Uint8Array): void {
    const began = performance.now()
    const error = tryInput(this.target, input)
    const took = performance.now() - began
    this.runs += 1
    if (took > this.slowest) {
      this.slowest = took
      this.slowestInput = input
    }
    if (error !== undefined && !this.findings.some((known) => kindOf(known.error) === kindOf(error))) {
      this.findings.push({ input, error })
    }
  }

  /** Late inputs are mutated more often: they are where the news is. */
  #mutant(): Uint8Array {
    const { kept } = this
    const chance = this.#chance
    const index = Math.floor(Math.max(chance.unit(), chance.unit()) * kept.length)
    return mutate(
      kept[index] ?? new Uint8Array(0),
      this.target.isScript,
      chance,
      () => chance.pick(kept) ?? new Uint8Array(0)
    )
  }
}

const hasNews = (known: ReadonlySet<number>, now: ReadonlySet<number>): boolean => {
  for (const block of now) if (!known.has(block)) return true
  return false
}

/** Findings that differ in numbers only are one. */
const kindOf = (error: Error): string => error.message.replaceAll(/[\d.]+/g, "n")

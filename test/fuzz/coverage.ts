import { Session } from "node:inspector"

/**
 * Which pieces of the rooms' code an input reaches, told by V8's own block coverage: the feedback of the search. It must be
 * started before the code is loaded, or V8 counts whole functions only. A block counts once more for each higher order of
 * magnitude of its count, so that a loop that turns longer is news as well.
 */

interface Range {
  readonly startOffset: number
  readonly endOffset: number
  readonly count: number
}
interface Taken {
  readonly result: ReadonlyArray<{
    readonly url: string
    readonly functions: ReadonlyArray<{ readonly ranges: ReadonlyArray<Range> }>
  }>
}

export class Coverage {
  readonly #session = new Session()
  /** Scripts of the rooms by URL, numbered. */
  readonly #scripts = new Map<string, number>()

  constructor() {
    this.#session.connect()
    this.#post("Profiler.enable")
    this.#post("Profiler.startPreciseCoverage", { callCount: true, detailed: true })
  }

  /** What was reached since the last call, as keys of blocks. */
  take(): Set<number> {
    const reached = new Set<number>()
    const { result } = this.#post("Profiler.takePreciseCoverage") as Taken
    for (const { url, functions } of result) {
      if (!/\/packages\/[a-z-]+\/src\//.test(url)) continue
      const script = this.#numberOf(url)
      for (const { ranges } of functions) {
        for (const { startOffset, endOffset, count } of ranges) {
          // V8 names a block by where it starts and ends; 2^20 characters are more than any file has.
          if (count > 0)
            reached.add(
              ((script * 2 ** 20 + startOffset) * 64 + ((endOffset - startOffset) & 63)) * 8 + magnitude(count)
            )
        }
      }
    }
    return reached
  }

  #numberOf(url: string): number {
    const known = this.#scripts.get(url) ?? this.#scripts.size
    this.#scripts.set(url, known)
    return known
  }

  /** The session is of this very thread, so that the answer is there when `post` returns. */
  #post(method: string, parameters?: object): unknown {
    let answer: unknown
    this.#session.post(method, parameters, (error, result) => {
      if (error !== null) throw new Error(`inspector: ${JSON.stringify(error)}`)
      answer = result
    })
    return answer
  }
}

/** 1, 2 to 9, 10 to 99, … */
const magnitude = (count: number): number => Math.min(7, count === 1 ? 0 : 1 + Math.floor(Math.log10(count)))

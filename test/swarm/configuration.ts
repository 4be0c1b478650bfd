import type { Id64 } from "@pure-link/wire"
import type { InputTrouble } from "./plan.ts"
import type { Stream } from "./stream.ts"

/**
 * What the receiver's operator configured: inputs with their shapes, and the sources of the sender's key. It outlives
 * receiver processes.
 */
export class Configuration {
  readonly inputs = new Map<string, Id64>()
  readonly sources = new Set<string>()

  readonly #streams: ReadonlyArray<Stream>

  constructor(streams: ReadonlyArray<Stream>) {
    this.#streams = streams
    for (const stream of streams) this.repair(stream)
  }

  /** Breaks what a stream needs; other streams may need it as well. */
  disturb(stream: Stream, trouble: InputTrouble): void {
    if (trouble === "missing" || trouble === "removed") this.inputs.delete(stream.input)
    if (trouble === "otherShape") this.inputs.set(stream.input, stream.shape + 1n)
    if (trouble === "sourceNotAllowed") this.sources.delete(stream.source)
    for (const other of this.#streams) {
      const reason = this.refusalOf(other, other.shape)
      if (reason !== undefined) other.excuses.add(reason)
    }
  }

  repair(stream: Stream): void {
    this.inputs.set(stream.input, stream.shape)
    this.sources.add(stream.source)
  }

  /** Which of the refusals 1 to 3 of spec §11.1 a stream deserves now. */
  refusalOf(name: { readonly source: string; readonly input: string }, shape: Id64): number | undefined {
    const configured = this.inputs.get(name.input)
    if (configured === undefined) return 1
    if (configured !== shape) return 2
    return this.sources.has(name.source) ? undefined : 3
  }
}

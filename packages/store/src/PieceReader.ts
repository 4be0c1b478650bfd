import { type ReadBounds, readEnough } from "@pure-link/ports"
import type { Bytes } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import type { Block } from "./file/blocks.ts"
import { type Columns, joined } from "./columns.ts"
import { Piece } from "./RecordList.ts"

/**
 * Reads records that are fetched a piece at a time from elsewhere, a file or another thread. The last pieces are kept,
 * so that who reads in smaller steps does not fetch one again: that, and no more, is read ahead.
 */

/** A piece that was fetched, with whatever else is known of its records. */
export interface Fetched {
  readonly piece: Piece
  /** The record of it that was asked for, or the first after that if it is gone. */
  readonly from: number
  /** Views of it were given away. */
  wasRead: boolean
}

/** Records that were read, and where they stood: `count` from `from` on in each piece. */
export interface Found<F> extends Columns {
  readonly parts: ReadonlyArray<{ readonly fetched: F; readonly from: number; readonly count: number }>
}

/** Pieces are kept up to this, and one whatever its length. */
const mostKept: Bytes = 2 * 1_048_576

/** A block of an outbox, fetched for the sake of a record. */
export const fetchedBlock =
  (from: number) =>
  (block: Block): Fetched => ({
    piece: new Piece(block.first, block),
    from: Math.max(from, block.first),
    wasRead: false
  })

export class PieceReader<F extends Fetched, E> {
  readonly #fetch: (from: number, enough: Bytes) => Effect.Effect<ReadonlyArray<F>, E>
  /** The one used last at the end. */
  #kept: Array<F> = []
  /** Pieces that are at hand anyway, oldest first: whoever has them puts them here and takes them out. */
  readonly atHand: Array<F> = []

  /**
   * `fetch` gives a piece with record `from` in it, or one with the next if it is gone, and those that follow it until
   * there are `enough` bytes; nothing if there is none.
   */
  constructor(fetch: (from: number, enough: Bytes) => Effect.Effect<ReadonlyArray<F>, E>) {
    this.#fetch = fetch
  }

  /** Records from `from` on; the bounds do not lead beyond the last that there is. */
  read(from: number, most: ReadBounds): Effect.Effect<Found<F>, E> {
    const parts: Array<{ readonly fetched: F; readonly from: number; readonly count: number }> = []
    const views: Array<Columns> = []
    let next = from
    let bytes = 0
    const step: Effect.Effect<Found<F>, E> = Effect.suspend(() => {
      const kept = this.#find(next)
      if (kept !== undefined) return take(kept)
      // A copy of the little there is so far: while the next piece is fetched, its room may be used again.
      if (views.length > 0) views.splice(0, views.length, joined(views))
      const fetching = this.#fetch(next, Math.max(readEnough, rest().bytes))
      // What cannot be read is met by the read that begins there: this one gives what stands before it.
      const orNothing =
        views.length === 0 ? fetching : Effect.catch(fetching, () => Effect.succeed<ReadonlyArray<F>>([]))
      return Effect.flatMap(orNothing, (pieces) => {
        const [fetched] = pieces
        const isNext = fetched === undefined || fetched.from === next
        if (!isNext && views.length > 0) return Effect.succeed(found())
        if (!isNext) from = next = fetched.from
        this.#keep(pieces)
        return take(fetched)
      })
    })
    const take = (fetched: F | undefined): Effect.Effect<Found<F>, E> => {
      const view = fetched?.piece.cut(next - fetched.piece.first, rest(), views.length === 0)
      if (fetched === undefined || view === undefined || view.sizes.length === 0) return Effect.succeed(found())
      fetched.wasRead = true
      parts.push({ fetched, from: next, count: view.sizes.length })
      views.push(view)
      next += view.sizes.length
      bytes += view.bytes.length
      const isEnough = next <= fetched.piece.last || bytes >= readEnough || next - from >= most.records
      return isEnough ? Effect.succeed(found()) : step
    }
    const rest = (): ReadBounds => ({ records: most.records - (next - from), bytes: most.bytes - bytes })
    const found = (): Found<F> => ({ ...(views.length === 1 ? views[0]! : joined(views)), parts })
    return step
  }

  /** Forgets pieces that end at or before a record: they are removed. */
  dropThrough(last: number): void {
    this.#kept = this.#kept.filter(({ piece }) => piece.last > last)
  }

  #find(number: number): F | undefined {
    const holds = ({ piece }: F) => number >= piece.first && number <= piece.last
    const atHand = this.atHand.find(holds)
    if (atHand !== undefined) return atHand
    const found = this.#kept.findLast(holds)
    if (found !== undefined && found !== this.#kept.at(-1)) this.#keep([found])
    return found
  }

  #keep(pieces: ReadonlyArray<F>): void {
    this.#kept = [...this.#kept.filter((one) => !pieces.includes(one)), ...pieces]
    let bytes = this.#kept.reduce((sum, { piece }) => sum + piece.end, 0)
    while (this.#kept.length > 1 && bytes > mostKept) bytes -= this.#kept.shift()!.piece.end
  }
}

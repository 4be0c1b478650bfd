import type { InboxBatch, InboxRun, ReadBounds } from "@pure-link/ports"
import type { Bytes } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import type { InboxPiece } from "./file/logTable.ts"
import { type Fetched, PieceReader } from "./PieceReader.ts"
import { Piece } from "./RecordList.ts"
import { RunList } from "./RunList.ts"

/** A piece of a log, and whose its records are. */
interface FetchedLog extends Fetched {
  readonly runs: RunList
  /** Takes back the buffers of a piece that was just written, when nobody reads it any more. */
  readonly release?: () => void
}

/** Of what was just written, so much is at hand for readers that keep up with it. */
const mostAtHand: Bytes = 8 * 1_048_576
const piecesAtHand = 64

/** Reads an input's log, in a file or behind a thread, a piece at a time; what was just written is read from memory. */
export class LogReader<E> {
  readonly #reader: PieceReader<FetchedLog, E>
  /** Positions up to this are known to be pruned. */
  #pruned = 0

  /** `fetch` gives pieces, from that on which has the first record after a position. */
  constructor(fetch: (after: number, enough: number) => Effect.Effect<ReadonlyArray<InboxPiece>, E>) {
    this.#reader = new PieceReader((from, enough) =>
      Effect.map(fetch(from - 1, enough), (pieces) => pieces.map(fetched))
    )
  }

  /** Records after a position, as the port's `read`; no bound leads beyond the last. */
  read(after: number, most: ReadBounds): Effect.Effect<InboxBatch, E> {
    return Effect.suspend(() => {
      const from = Math.max(after, this.#pruned) + 1
      return Effect.map(this.#reader.read(from, most), ({ bytes, parts, sizes }): InboxBatch => {
        const runs: Array<InboxRun> = []
        for (const { count, fetched, from } of parts) fetched.runs.slice(from, count, runs)
        return { firstPosition: parts[0]?.from ?? from, bytes, sizes, runs }
      })
    })
  }

  /** Records that were just written, with whose they are; `release` is called when nobody reads them here any more. */
  written(piece: InboxPiece, release: () => void): void {
    const { atHand } = this.#reader
    atHand.push({ ...fetched(piece), release })
    let bytes = atHand.reduce((sum, one) => sum + one.piece.end, 0)
    while (bytes > mostAtHand || atHand.length > piecesAtHand) {
      const oldest = atHand.shift()!
      bytes -= oldest.piece.end
      if (!oldest.wasRead) oldest.release?.() // views that were given away last until their records are pruned
    }
  }

  /** Records up to a position are pruned. */
  prune(through: number): void {
    const { atHand } = this.#reader
    this.#pruned = Math.max(this.#pruned, through)
    this.#reader.dropThrough(through)
    while (atHand.length > 0 && atHand[0]!.piece.last <= through) atHand.shift()!.release?.()
  }
}

const fetched = ({ bytes, first, from, runs, sizes }: InboxPiece): FetchedLog => {
  const list = new RunList()
  let position = first
  for (const [source, firstNumber, count] of runs) {
    list.append(position, source, firstNumber, count)
    position += count
  }
  return { piece: new Piece(first, { bytes, sizes }), runs: list, from, wasRead: false }
}

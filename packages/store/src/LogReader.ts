import type { InboxBatch, InboxRun, ReadBounds } from "@pure-link/ports"
import * as Effect from "effect/Effect"
import type { InboxPiece } from "./file/inboxFile.ts"
import { type Fetched, PieceReader } from "./PieceReader.ts"
import { Piece } from "./RecordList.ts"
import { RunList } from "./RunList.ts"

/** A piece of a log, and whose its records are. */
interface FetchedLog extends Fetched {
  readonly runs: RunList
  /** The first position in it that was not pruned. */
  readonly from: number
}

/** Reads an input's log, in a file or behind a thread, a piece at a time. */
export class LogReader<E> {
  readonly #reader: PieceReader<FetchedLog, E>
  /** Positions up to this are known to be pruned. */
  #pruned = 0

  /** `fetch` gives the piece with the first record after a position. */
  constructor(fetch: (after: number) => Effect.Effect<InboxPiece | undefined, E>) {
    this.#reader = new PieceReader((from) => Effect.map(fetch(from - 1), (found) => found && fetched(found)))
  }

  /** Records after a position, as the port's `read`; no bound leads beyond the last. */
  read(after: number, most: ReadBounds): Effect.Effect<InboxBatch, E> {
    return Effect.suspend(() => {
      const from = Math.max(after, this.#pruned) + 1
      return Effect.map(this.#reader.read(from, most), ({ bytes, parts, sizes }): InboxBatch => {
        const runs: Array<InboxRun> = []
        for (const part of parts) part.fetched.runs.slice(part.from, part.count, runs)
        return { firstPosition: parts[0]?.from ?? from, bytes, sizes, runs }
      })
    })
  }

  /** Records up to a position are pruned. */
  prune(through: number): void {
    this.#pruned = Math.max(this.#pruned, through)
    this.#reader.dropThrough(through)
  }
}

const fetched = ({ bytes, first, from, runs, sizes }: InboxPiece): FetchedLog => {
  const list = new RunList()
  let position = first
  for (const [source, firstNumber, count] of runs) {
    list.append(position, source, firstNumber, count)
    position += count
  }
  return { piece: new Piece(first, { bytes, sizes }), runs: list, from }
}

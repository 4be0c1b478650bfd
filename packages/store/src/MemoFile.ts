import { Memo, StoreError } from "@pure-link/ports"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { failureOf } from "./file/failure.ts"
import { openMemoFile } from "./memo/memoFile.ts"
import { type MemoCapacity, memoCapacity } from "./memo/options.ts"
import { openRawFile } from "./memo/rawFile.ts"
import { renameSync } from "node:fs"

/**
 * A memo in a file, which nobody but its owner may read: it holds secrets. It grows with the peers that are kept, to 34
 * MiB for 65,536 of them. A file that is no memo is refused and left as it is; a memo that cannot be used (damaged, of a
 * later version or another node) is made anew, with `rebuilt` saying why; with another capacity it keeps what fits.
 */
export interface Options extends MemoCapacity {
  readonly file: string
  /**
   * A file that is no memo is moved to `<file>.bad`, and a memo made in its place. For a name that nobody but the memo has,
   * so that its damage stops nobody; false by default.
   */
  readonly movesAside?: boolean
  /** The node's own public key: a memo of another node is of no use to it. */
  readonly publicKey: Uint8Array
}

export const layer = (options: Options): Layer.Layer<Memo, StoreError> =>
  Layer.effect(
    Memo,
    Effect.gen(function* () {
      const { file, movesAside = false, publicKey } = options
      const capacity = memoCapacity(options)
      const attempt = <A>(run: () => A) =>
        Effect.try({ try: run, catch: (cause) => new StoreError({ file, ...failureOf(cause) }) })
      const opened = Effect.acquireRelease(
        attempt(() => openRawFile(file)),
        (raw) => Effect.sync(() => raw.close())
      )
      const open = Effect.flatMap(opened, (raw) => attempt(() => openMemoFile(raw, { ...capacity, publicKey })))
      const anew = (error: StoreError) =>
        Effect.gen(function* () {
          if (!movesAside || error.reason !== "unreadable") return yield* Effect.fail(error)
          yield* attempt(() => renameSync(file, `${file}.bad`))
          const { table } = yield* open
          return { table, rebuilt: `it was no memo, is kept as ${file}.bad, and the memo was made anew` }
        })
      const { rebuilt, table } = yield* Effect.catch(open, anew)
      return Memo.of({
        memo: table,
        rebuilt: rebuilt && `${file}: ${rebuilt}`,
        get counters() {
          return table.counters
        }
      })
    })
  )

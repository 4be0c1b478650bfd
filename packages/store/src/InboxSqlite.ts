import { Inbox, type StoreError } from "@pure-link/ports"
import type { StoreIntent } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Carried, Carrier } from "./Carrier.ts"
import type { InboxProgress } from "./file/inboxFile.ts"
import type { InboxPiece } from "./file/logTable.ts"
import { makeInbox } from "./InboxFront.ts"
import { LogReader } from "./LogReader.ts"
import { openThread } from "./StoreThread.ts"
import { type StoreCounters, storeCounters } from "./StoreCounters.ts"
import type { InboxOpened, InboxOpening, InboxOperations } from "./worker/messages.ts"

/**
 * An inbox in an SQLite file, owned by this process while the layer lives. Beside the file stand `.owner`, and
 * `.reserve`: 4 MiB that let records be removed when the disk is full.
 */
export interface Options {
  readonly file: string
  /** The file never grows beyond this many bytes; commits fail with "full" instead (default: the disk decides). */
  readonly fileLimitBytes?: number
  /** The write-ahead log's limit while another process keeps a read transaction open (default 256 MiB). */
  readonly logLimitBytes?: number
  /** Counts what is written. */
  readonly counters?: StoreCounters
}

export const layer = (options: Options): Layer.Layer<Inbox, StoreError> =>
  Layer.effect(
    Inbox,
    Effect.gen(function* () {
      const { counters = storeCounters(), file } = options
      const program = new URL("./worker/inboxThread.ts", import.meta.url)
      const thread = yield* openThread<InboxOperations, InboxOpened, InboxOpening>(program, {
        file,
        limits: { fileBytes: options.fileLimitBytes, logBytes: options.logLimitBytes }
      })
      const carrier = new Carrier()
      const readers = new Map<string, LogReader<StoreError>>()
      const readerOf = (input: string) => {
        const reader =
          readers.get(input) ?? new LogReader((after, enough) => thread.request("read", { input, after, enough }))
        readers.set(input, reader)
        return reader
      }
      return yield* makeInbox({ file, counters }, thread.opened, {
        transact: ({ intents, ...rest }) =>
          Effect.suspend(() => {
            const { buffers, bytes, sizes } = carrier.load(intents.map(({ batch }) => batch))
            const heads = intents.map(({ batch, ...head }) => ({
              ...head,
              first: batch.first,
              count: batch.sizes.length
            }))
            return thread.request("transact", { ...rest, intents: heads, bytes, sizes }, buffers)
          }).pipe(
            Effect.map((done) => {
              const release = () => carrier.comeBack(done.buffers)
              const piece = pieceOf(intents, done.progress, done.buffers)
              const reader = piece && readers.get(piece.input)
              if (reader === undefined) release()
              else reader.written(piece!, release)
              for (const [i, { input }] of rest.prunings.entries()) {
                readers.get(input)?.prune(done.progress.pruned[i]!.through)
              }
              return done.progress
            }),
            Effect.uninterruptible
          ),
        read: (input, after, bounds) => readerOf(input).read(after, bounds),
        consumerPosition: (input, consumer) => thread.request("consumerPosition", { input, consumer }),
        summaries: thread.request("summaries", undefined),
        ended: thread.ended
      })
    })
  )

/** What a transaction wrote, as one piece of a log: if it is one, and all of it was stored. */
const pieceOf = (
  intents: ReadonlyArray<StoreIntent>,
  { outcomes, positions }: InboxProgress,
  [bytes, sizes]: Carried
): (InboxPiece & { readonly input: string }) | undefined => {
  if (positions.length !== 1 || outcomes.some(({ _tag }) => _tag === "Conflict")) return undefined
  const [input, last] = positions[0]!
  const length = intents.reduce((sum, { batch }) => sum + batch.bytes.length, 0)
  const count = intents.reduce((sum, { batch }) => sum + batch.sizes.length, 0)
  const first = last - count + 1
  return {
    input,
    first,
    from: first,
    bytes: new Uint8Array(bytes, 0, length),
    sizes: new Uint32Array(sizes, 0, count),
    runs: intents.map(({ batch, source }) => [source, batch.first, batch.sizes.length] as const)
  }
}

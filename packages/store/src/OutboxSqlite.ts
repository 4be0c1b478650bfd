import { id64 } from "@pure-link/keys"
import { Entropy, Outbox, type StoreError } from "@pure-link/ports"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Carrier } from "./Carrier.ts"
import type { OutboxStream } from "./file/outboxFile.ts"
import { makeOutbox } from "./OutboxFront.ts"
import { fetchedBlock, PieceReader } from "./PieceReader.ts"
import { openThread } from "./StoreThread.ts"
import { type StoreCounters, storeCounters } from "./StoreCounters.ts"
import type { OutboxOpened, OutboxOpening, OutboxOperations } from "./worker/messages.ts"

/**
 * An outbox in an SQLite file, owned by this process while the layer lives. Beside the file stand `.owner`, and
 * `.reserve`: 4 MiB that let records be removed when the disk is full.
 */
export interface Options {
  readonly file: string
  /** What the outbox is for. A file to which another stream's records were appended is refused. */
  readonly stream: OutboxStream
  /** Appends wait while the records held have this many bytes (default 1 GiB). */
  readonly limitBytes?: number
  /** The file never grows beyond this many bytes; appends fail with "full" instead (default: the disk decides). */
  readonly fileLimitBytes?: number
  /** The write-ahead log's limit while another process keeps a read transaction open (default 256 MiB). */
  readonly logLimitBytes?: number
  /** Counts what is written. */
  readonly counters?: StoreCounters
}

export const defaultLimitBytes = 1_073_741_824

export const layer = (options: Options): Layer.Layer<Outbox, StoreError, Entropy> =>
  Layer.effect(
    Outbox,
    Effect.gen(function* () {
      const { counters = storeCounters(), file, limitBytes = defaultLimitBytes, stream } = options
      const entropy = yield* Entropy
      const { source, input, shape } = stream
      const program = new URL("./worker/outboxThread.ts", import.meta.url)
      const thread = yield* openThread<OutboxOperations, OutboxOpened, OutboxOpening>(program, {
        file,
        stream: { source, input, shape },
        newGeneration: id64(entropy),
        limits: { fileBytes: options.fileLimitBytes, logBytes: options.logLimitBytes }
      })
      const carrier = new Carrier()
      const reader = new PieceReader((from, enough) =>
        Effect.map(thread.request("read", { from, enough }), (blocks) => blocks.map(fetchedBlock(from)))
      )
      return yield* makeOutbox({ file, stream, limitBytes, life: id64(entropy), counters }, thread.opened, {
        transact: ({ chunks, ...rest }) =>
          Effect.suspend(() => {
            const { buffers, bytes, sizes } = carrier.load(chunks)
            return thread.request("transact", { ...rest, bytes, sizes }, buffers)
          }).pipe(
            Effect.map((done) => {
              carrier.comeBack(done.buffers)
              reader.dropThrough(rest.removed)
              return done.progress
            }),
            Effect.uninterruptible
          ),
        read: (from, bounds) =>
          Effect.map(reader.read(from, bounds), ({ bytes, sizes }) => ({ first: from, bytes, sizes })),
        ended: thread.ended
      })
    })
  )

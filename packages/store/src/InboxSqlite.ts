import { Inbox, type StoreError } from "@pure-link/ports"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { makeInbox } from "./InboxFront.ts"
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
      return yield* makeInbox({ file, counters }, thread.opened, {
        transact: (group) =>
          Effect.uninterruptible(
            thread.request("transact", group, [group.bytes.buffer as ArrayBuffer, group.sizes.buffer as ArrayBuffer])
          ),
        read: (input, after, bounds) => thread.request("read", { input, after, bounds }),
        consumerPosition: (input, consumer) => thread.request("consumerPosition", { input, consumer }),
        prune: (input, through) => thread.request("prune", { input, through }),
        summaries: thread.request("summaries", undefined),
        ended: thread.ended
      })
    })
  )

import { workerData } from "node:worker_threads"
import { InboxFile } from "../file/inboxFile.ts"
import type { InboxOpening, InboxOperations } from "./messages.ts"
import { serve } from "./serve.ts"

/** The thread of one inbox file. */
serve<InboxOperations>(() => {
  const { file, limits } = workerData as InboxOpening
  const inbox = new InboxFile(file, limits)
  return {
    opened: inbox.contents,
    operations: {
      transact: (group) => inbox.transact(group),
      read: ({ after, bounds, input }) => inbox.read(input, after, bounds),
      consumerPosition: ({ consumer, input }) => inbox.consumerPosition(input, consumer),
      prune: ({ input, through }) => inbox.prune(input, through),
      summaries: () => inbox.summaries()
    },
    transfer: (reply) =>
      typeof reply === "object" && "sizes" in reply
        ? [reply.bytes, reply.sizes, reply.positions, reply.numbers, reply.sourceIndexes].map(({ buffer }) => buffer)
        : [],
    close: () => inbox.close()
  }
})

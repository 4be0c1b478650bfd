import { workerData } from "node:worker_threads"
import { InboxFile } from "../file/inboxFile.ts"
import type { InboxOpening, InboxOperations } from "./messages.ts"
import { buffersOf, serve } from "./serve.ts"

/** The thread of one inbox file. */
serve<InboxOperations>(() => {
  const { file, limits } = workerData as InboxOpening
  const inbox = new InboxFile(file, limits)
  return {
    opened: inbox.contents,
    operations: {
      transact: (work) => ({ progress: inbox.transact(work), buffers: buffersOf(work) }),
      read: ({ after, enough, input }) => inbox.read(input, after, enough),
      consumerPosition: ({ consumer, input }) => inbox.consumerPosition(input, consumer),
      summaries: () => inbox.summaries()
    },
    transfer: (reply) => {
      if (typeof reply !== "object") return []
      if ("buffers" in reply) return reply.buffers
      return reply.flatMap((one) => ("sizes" in one ? buffersOf(one) : []))
    },
    close: () => inbox.close()
  }
})

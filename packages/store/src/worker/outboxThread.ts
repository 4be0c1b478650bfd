import { workerData } from "node:worker_threads"
import { OutboxFile } from "../file/outboxFile.ts"
import type { OutboxOpening, OutboxOperations } from "./messages.ts"
import { buffersOf, serve } from "./serve.ts"

/** The thread of one outbox file. */
serve<OutboxOperations>(() => {
  const { file, limits, newGeneration, stream } = workerData as OutboxOpening
  const outbox = new OutboxFile(file, stream, newGeneration, limits)
  return {
    opened: outbox.contents,
    operations: {
      transact: (work) => ({ progress: outbox.transact(work), buffers: buffersOf(work) }),
      read: ({ enough, from }) => outbox.read(from, enough)
    },
    transfer: (reply) => ("buffers" in reply ? reply.buffers : reply.flatMap(buffersOf)),
    close: () => outbox.close()
  }
})

import { workerData } from "node:worker_threads"
import { OutboxFile } from "../file/outboxFile.ts"
import type { OutboxOpening, OutboxOperations } from "./messages.ts"
import { serve } from "./serve.ts"

/** The thread of one outbox file. */
serve<OutboxOperations>(() => {
  const { file, limits, newGeneration, stream } = workerData as OutboxOpening
  const outbox = new OutboxFile(file, stream, newGeneration, limits)
  return {
    opened: outbox.contents,
    operations: {
      transact: (group) => outbox.transact(group),
      read: ({ bounds, from }) => outbox.read(from, bounds)
    },
    transfer: (reply) =>
      "sizes" in reply ? [reply.bytes.buffer as ArrayBuffer, reply.sizes.buffer as ArrayBuffer] : [],
    close: () => outbox.close()
  }
})

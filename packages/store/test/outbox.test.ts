import { outboxContract } from "@pure-link/ports/contract"
import * as Effect from "effect/Effect"
import { join } from "node:path"
import { outboxInFile, outboxInMemory, temporaryFolder } from "./places.ts"

outboxContract(
  "memory",
  Effect.sync(() => outboxInMemory())
)
outboxContract(
  "SQLite",
  Effect.map(temporaryFolder, (folder) => outboxInFile(join(folder, "orders.outbox"))),
  6
)

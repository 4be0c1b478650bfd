import { outboxContract } from "@pure-link/ports/contract"
import * as Effect from "effect/Effect"
import { join } from "node:path"
import { outboxInFile, outboxInMemory, slowDisk, temporaryFolder } from "./places.ts"

outboxContract(
  "memory",
  Effect.sync(() => outboxInMemory())
)
outboxContract(
  "memory behind a slow disk",
  Effect.sync(() => outboxInMemory(slowDisk))
)
outboxContract(
  "SQLite",
  Effect.map(temporaryFolder, (folder) => outboxInFile(join(folder, "orders.outbox"))),
  6
)

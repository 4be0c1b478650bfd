import { inboxContract } from "@pure-link/ports/contract"
import * as Effect from "effect/Effect"
import { join } from "node:path"
import { inboxInFile, inboxInMemory, slowDisk, temporaryFolder } from "./places.ts"

inboxContract(
  "memory",
  Effect.sync(() => inboxInMemory())
)
inboxContract(
  "memory behind a slow disk",
  Effect.sync(() => inboxInMemory(slowDisk))
)
inboxContract(
  "SQLite",
  Effect.map(temporaryFolder, (folder) => inboxInFile(join(folder, "node.inbox"))),
  6
)

import { memoContract } from "@pure-link/ports/contract"
import * as Effect from "effect/Effect"
import { join } from "node:path"
import { memoInFile, memoInMemory, temporaryFolder } from "./places.ts"

memoContract(
  "memory",
  Effect.sync(() => memoInMemory())
)
memoContract(
  "file",
  Effect.map(temporaryFolder, (folder) => memoInFile(join(folder, "node.memo"))),
  20
)

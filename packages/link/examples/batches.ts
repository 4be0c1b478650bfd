import { type Batch, Input } from "@pure-link/link"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { appendFileSync } from "node:fs"
import { readings } from "./readings.ts"

/** Appends every reading to a file of JSON lines as it was encoded by its sender, and prunes it. Runs until interrupted. */
export const exportLines = (file: string) =>
  Effect.gen(function* () {
    const input = yield* Input.open(readings)
    yield* input.batches({ consumer: "export" }).pipe(
      Stream.runForEach((batch) =>
        Effect.gen(function* () {
          appendFileSync(file, linesOf(batch)) // the batch is not kept: its bytes end with the pruning
          yield* batch.acknowledge
          yield* input.prune(batch.end)
        })
      )
    )
  }).pipe(Effect.scoped)

const linesOf = ({ bytes, sizes }: Batch): Uint8Array => {
  const lines = new Uint8Array(bytes.length + sizes.length).fill(0x0a)
  let offset = 0
  for (const [i, size] of sizes.entries()) lines.set(bytes.subarray(offset, (offset += size)), offset - size + i)
  return lines
}

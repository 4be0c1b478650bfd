import { Output } from "@pure-link/link"
import type { Address } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import { type Reading, readings } from "./readings.ts"

/** Appends readings and waits until the hub has them on disk. Needs a LinkNode and the Outbox of this stream. */
export const report = Effect.fn("report")(function* (
  hub: { readonly publicKey: Uint8Array; readonly address: Address },
  values: ReadonlyArray<Reading>
) {
  const output = yield* Output.open(readings, { source: "greenhouse-3", peer: hub })

  const receipt = yield* output.appendAll(values) // on this node's disk: a crash loses nothing from here on
  yield* Effect.log(`appended ${receipt.first} to ${receipt.last}`)

  const stored = yield* receipt.stored // on the hub's disk
  yield* Effect.log(`the hub holds everything up to ${stored.through}`)
  return stored.through
}, Effect.scoped)

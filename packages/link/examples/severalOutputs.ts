import { Output, type OutputOptions, type StreamType } from "@pure-link/link"
import { OutboxSqlite } from "@pure-link/store"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/**
 * Opens an output with an outbox file of its own; both are open until the scope closes. Call it once per output: all of
 * them share the LinkNode in the context.
 */
export const openOutput = Effect.fn("openOutput")(function* <A>(
  type: StreamType<A>,
  options: OutputOptions & { readonly file: string }
) {
  const stream = { source: options.source, input: type.input, shape: type.shape }
  const outbox = yield* Layer.build(OutboxSqlite.layer({ file: options.file, stream }))
  return yield* Output.open(type, options).pipe(Effect.provide(outbox))
})

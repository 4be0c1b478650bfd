import { Input } from "@pure-link/link"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { type Reading, readings } from "./readings.ts"

/** Hands every reading to `handle`; one that fails comes again when this is started again. Runs until interrupted. */
export const consume = <E, R>(handle: (reading: Reading) => Effect.Effect<void, E, R>) =>
  Effect.gen(function* () {
    const input = yield* Input.open(readings)
    yield* input
      .chunks({ consumer: "dashboard", maximumRecords: 100 })
      .pipe(
        Stream.runForEach((chunk) =>
          Effect.forEach(chunk.records, ({ value }) => handle(value), { discard: true }).pipe(
            Effect.andThen(chunk.acknowledge)
          )
        )
      )
  }).pipe(Effect.scoped)

import type { Output } from "@pure-link/link"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

/** Logs what is in an output's way, in words made for an operator, until everything appended so far is STORED. */
export const untilDrained = <A>(output: Output<A>) =>
  Effect.gen(function* () {
    const watching = output.changes.pipe(
      Stream.runForEach((state) => {
        switch (state._tag) {
          case "Idle":
          case "Sending":
            return Effect.logInfo(state._tag)
          case "Forked":
            return Effect.logError(state.error.message)
          case "Resolving":
            return Effect.logWarning(state.detail)
          default:
            return Effect.logWarning(state.remedy)
        }
      })
    )
    return yield* Effect.raceFirst(output.drained, Effect.andThen(watching, Effect.never))
  })

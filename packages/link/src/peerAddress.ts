/**
 * A peer whose address has to be looked up: looked up when needed, again and again until there is one, and again
 * whenever the peer falls silent, because it may have moved.
 */
import type { Address } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { NodeSeam } from "./LinkNode.ts"
import type { OutputLink } from "./OutputLink.ts"

/**
 * Finds the address of a peer, such as `resolveHost` of room `udp` does; the failure's message is shown to the
 * operator.
 */
export type LookUp = Effect.Effect<Address, { readonly message: string }>

/** A look-up that failed, or that did not end the silence, is repeated after 1 s, doubling to 64 s. */
const firstRetryMillis = 1_000
const longestRetryMillis = 64_000

/** Keeps an output's destination at what its peer's look-up says, until the application chooses another. */
export const followAddress = (lookUp: LookUp, seam: NodeSeam, link: OutputLink): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (let pause = firstRetryMillis; !link.isRedirected; pause = Math.min(2 * pause, longestRetryMillis)) {
      link.resolved(yield* find(lookUp, seam, link))
      yield* Effect.sleep(pause)
      if (!link.isSilent) pause = firstRetryMillis
      link.silence.closeUnsafe()
      yield* link.silence.await
    }
  })

const find = Effect.fnUntraced(function* (lookUp: LookUp, seam: NodeSeam, link: OutputLink) {
  for (let pause = firstRetryMillis; ; pause = Math.min(2 * pause, longestRetryMillis)) {
    const found = yield* Effect.result(lookUp)
    if (Result.isSuccess(found)) return found.success
    const detail = found.failure.message
    if (pause === firstRetryMillis) {
      const { input, source } = link.name
      const message = `"${source}" → "${input}" waits for its peer's address: ${detail}; it is looked up again`
      seam.journal.report({ _tag: "AddressUnknown", ...link.name, at: seam.now(), level: "warning", message })
    }
    link.unresolved(detail)
    yield* Effect.sleep(pause)
  }
})

import * as Effect from "effect/Effect"

/**
 * One line in the life of a process that says why it runs without the native path: whoever finds it out first, the socket
 * or the cryptography, tells it. Who turned the path off is told nothing.
 */
let isTold = false

export const tellFallback = (reason: string): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (isTold || process.env["PURE_LINK_NATIVE"] === "off") return Effect.void
    isTold = true
    return Effect.logWarning(
      `packets go through Node's own dgram and crypto, at several times the CPU (${reason}); see \`pure-link doctor\``
    )
  })

/**
 * What a node reports while a command runs, as JSON lines for a script: refusals with their reason and remedy, silence,
 * forks, stores in trouble. A person reads the same in the log.
 */
import { type LinkEvent, LinkNode } from "@pure-link/link"
import { formatAddress } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { printJson } from "./output.ts"

/** One notice as a script reads it; the name is that of the event in docs/library.md. */
export const noticeOf = (event: LinkEvent): Record<string, unknown> => {
  const { _tag, at: _at, ...rest } = event
  const address = "address" in event ? { address: formatAddress(event.address) } : {}
  return { event: "notice", notice: _tag, ...rest, ...address }
}

/** Tells of what happens until the scope closes; nothing without `--json`. */
export const tellNotices = (asJson: boolean): Effect.Effect<void, never, LinkNode | Scope.Scope> =>
  Effect.gen(function* () {
    if (!asJson) return
    const { events } = yield* LinkNode
    const worthTelling = Stream.filter(events, ({ level }) => level !== "debug")
    const telling = Stream.runForEach(worthTelling, (event) => printJson(noticeOf(event)))
    yield* Effect.forkScoped(telling, { startImmediately: true })
  })

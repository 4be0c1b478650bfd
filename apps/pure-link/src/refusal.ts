/**
 * What does not end by waiting, as `send` ends with it: the reason, the remedy, and that nothing is lost (spec §11.1).
 */
import type { OutputState } from "@pure-link/link"
import { RefusalReason } from "@pure-link/wire"
import { ExitCode, Failure } from "./failure.ts"

/** Reasons 4 and 5 say the same as the states Forked and InboxBehind (spec §11.1). */
const isFork = (reason: RefusalReason): boolean =>
  reason === RefusalReason.forkedOutbox || reason === RefusalReason.recordsGone

/** How the command ends in this state; undefined when it goes on. */
export const refusalOf = (state: OutputState): Failure | undefined => {
  switch (state._tag) {
    case "Refused":
      return new Failure({
        exit: isFork(state.reason) ? ExitCode.forked : ExitCode.refused,
        text: `refused (reason ${state.reason}): ${state.remedy}; everything is kept in the outbox`
      })
    case "InboxBehind":
      return new Failure({
        exit: ExitCode.forked,
        text: `the inbox is behind at ${state.n}: ${state.remedy}; everything is kept in the outbox`
      })
    case "Forked":
      return new Failure({ exit: ExitCode.forked, text: state.error.message })
    default:
      return undefined
  }
}

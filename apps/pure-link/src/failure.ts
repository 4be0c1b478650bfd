/**
 * What a command ends with when it cannot do what was asked: one line for a person that names the remedy, and an exit
 * code for a script (docs/cli.md).
 */
import * as Data from "effect/Data"

/** The exit codes of `pure-link`; documented in docs/cli.md. */
export const ExitCode = {
  /** A flag, argument, key, file or record is wrong. */
  badInput: 2,
  /** The receiver refuses the stream. */
  refused: 3,
  /** A store is locked, unreadable, full or not permitted. */
  store: 4,
  /** The outbox was restored or cloned, or the inbox is behind it. */
  forked: 5,
  /** The address cannot be bound or resolved, or nothing passes. */
  network: 6,
  /** Interrupted before everything was stored; what was appended waits in the outbox. */
  interrupted: 130
} as const

export class Failure extends Data.TaggedError("Failure")<{ readonly exit: number; readonly text: string }> {
  override get message(): string {
    return this.text
  }
}

export const badInput = (text: string): Failure => new Failure({ exit: ExitCode.badInput, text })

export const badNetwork = (text: string): Failure => new Failure({ exit: ExitCode.network, text })

const exitOf: Record<string, number> = {
  StoreError: ExitCode.store,
  OutboxFull: ExitCode.store,
  WrongOutbox: ExitCode.store,
  ForkedOutbox: ExitCode.forked,
  SocketError: ExitCode.network,
  EndpointError: ExitCode.network,
  RecordTooLong: ExitCode.badInput,
  InvalidName: ExitCode.badInput,
  InvalidPeerKey: ExitCode.badInput,
  UnusablePeer: ExitCode.badInput,
  InputConflict: ExitCode.badInput,
  ReceiverPresent: ExitCode.badInput
}

/** Every typed error of the rooms says what to do; here it gets its exit code. */
export const toFailure = (error: { readonly _tag: string; readonly message: string }): Failure =>
  error instanceof Failure ? error : new Failure({ exit: exitOf[error._tag] ?? 1, text: error.message })

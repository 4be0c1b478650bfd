/**
 * How the process ends: a first SIGINT or SIGTERM asks (commands drain and close), a second one forces. Errors become
 * one line on standard error and an exit code.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import { ExitCode, Failure } from "./failure.ts"
import { toJson, visible, watchOutput } from "./output.ts"

export class Shutdown extends Context.Service<
  Shutdown,
  {
    /** Succeeds when the process has been asked to end. */
    readonly requested: Effect.Effect<void>
    readonly isRequested: () => boolean
  }
>()("pure-link/Shutdown") {}

/** Runs the program to its end and exits with its code. */
export const runMain = <E>(program: Effect.Effect<void, E, Shutdown>): void => {
  watchOutput()
  // Keys and stores hold what is nobody else's business.
  process.umask(0o077)
  const asked = Latch.makeUnsafe(false)
  let signals = 0
  const onSignal = () => {
    signals += 1
    if (signals > 1) process.exit(ExitCode.interrupted)
    asked.openUnsafe()
  }
  process.on("SIGINT", onSignal)
  process.on("SIGTERM", onSignal)
  const shutdown = Shutdown.of({ requested: asked.await, isRequested: () => signals > 0 })
  const fiber = Effect.runFork(Effect.provideService(program, Shutdown, shutdown))
  fiber.addObserver((exit) => {
    process.exitCode = exitCodeOf(exit)
    // Nobody reads it any more, and an open pipe would keep the process.
    process.stdin.destroy()
    process.removeListener("SIGINT", onSignal)
    process.removeListener("SIGTERM", onSignal)
  })
}

const exitCodeOf = (exit: Exit.Exit<unknown, unknown>): number => {
  if (Exit.isSuccess(exit)) return 0
  const error = Cause.squash(exit.cause)
  if (error instanceof Failure) {
    process.stderr.write(`pure-link: ${visible(error.text)}\n`)
    if (process.argv.includes("--json")) {
      process.stdout.write(`${toJson({ event: "failed", exit: error.exit, message: error.text })}\n`)
    }
    return error.exit
  }
  if (isUsageError(error)) return ExitCode.badInput
  process.stderr.write(`pure-link: unexpected error, please report it:\n${Cause.pretty(exit.cause)}\n`)
  return 1
}

/** The command parser has shown its error and the help already. */
const isUsageError = (error: unknown): boolean =>
  typeof error === "object" &&
  error !== null &&
  "_tag" in error &&
  /^(ShowHelp|.*(Option|Flag|Argument|Value|Command|Subcommand).*)$/.test(String(error._tag))

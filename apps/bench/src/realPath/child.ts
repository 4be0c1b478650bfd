import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type ChildProcess, spawn } from "node:child_process"
import { EndFailed } from "../ends/endProcess.ts"

/**
 * A program that runs as long as a scope at most: what it says is kept, and when the scope closes it is asked to end and
 * then made to.
 */

export class Child {
  readonly pid: number
  readonly #name: string
  readonly #process: ChildProcess
  readonly #ended: Promise<number>
  #output = ""
  #errors = ""
  #isOver = false

  constructor(name: string, process: ChildProcess) {
    this.#name = name
    this.#process = process
    this.pid = process.pid ?? 0
    process.stdout?.on("data", (piece: Buffer) => (this.#output += piece.toString()))
    process.stderr?.on("data", (piece: Buffer) => (this.#errors += piece.toString()))
    process.stdin?.on("error", () => {})
    this.#ended = new Promise((resolve) => {
      process.on("error", (error) => this.#end(error.message, resolve, neverStarted))
      process.on("close", (code, signal) => this.#end(signal ?? "", resolve, code ?? killed))
    })
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** The exit code, once it has ended. */
  get ended(): Effect.Effect<number> {
    return Effect.promise(() => this.#ended)
  }

  /** All that it printed, once it has ended with one of these exit codes. */
  outputAfter(seconds: number, codes: ReadonlyArray<number> = [0]): Effect.Effect<string, EndFailed> {
    return this.ended.pipe(
      Effect.timeoutOrElse({ duration: seconds * 1_000, orElse: () => Effect.fail(this.failure("does not end")) }),
      Effect.flatMap((code) =>
        codes.includes(code) ? Effect.succeed(this.#output) : Effect.fail(this.failure(`ended with exit code ${code}`))
      )
    )
  }

  /** Fails when it does not say this on standard error in time. */
  heard(words: string, seconds: number): Effect.Effect<void, EndFailed> {
    return this.until(() => this.#errors.includes(words), seconds, `does not say "${words}"`)
  }

  /** Looks often until something about it holds; fails when it has ended, or in the end. */
  until(holds: () => boolean, seconds: number, otherwise: string): Effect.Effect<void, EndFailed> {
    return Effect.gen({ self: this }, function* () {
      const latest = performance.now() + seconds * 1_000
      while (!holds()) {
        if (this.#isOver) return yield* Effect.fail(this.failure("ended early"))
        if (performance.now() > latest) return yield* Effect.fail(this.failure(otherwise))
        yield* Effect.sleep(lookMillis)
      }
    })
  }

  write(text: string): void {
    this.#process.stdin?.write(text)
  }

  closeInput(): void {
    this.#process.stdin?.end()
  }

  signal(name: NodeJS.Signals): void {
    if (!this.#isOver) this.#process.kill(name)
  }

  failure(what: string): EndFailed {
    const last = this.#errors.trim().split("\n").at(-1)
    return new EndFailed(`${this.#name} ${what}${last ? `: ${last}` : ""}`)
  }

  #end(why: string, resolve: (code: number) => void, code: number): void {
    this.#isOver = true
    if (why !== "") this.#errors += `\n${why}`
    resolve(code)
  }
}

const neverStarted = 127
const killed = 137
const lookMillis = 2
const patienceSeconds = 5

/**
 * Starts a program; the scope's end asks it to end by `farewell`, and kills it when it does not. When this process exits
 * before that, as it does at a second signal, it is asked all the same.
 */
export const start = (
  name: string,
  [command, ...args]: readonly [string, ...ReadonlyArray<string>],
  farewell: (child: Child) => void = (child) => child.signal("SIGKILL")
): Effect.Effect<Child, never, Scope.Scope> =>
  Effect.gen(function* () {
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => new Child(name, spawn(command, args, { stdio: "pipe" }))),
      (child) => end(child, farewell)
    )
    yield* untilExit(() => farewell(child))
    return child
  })

const end = (child: Child, farewell: (child: Child) => void): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (child.isOver) return Effect.void
    farewell(child)
    return Effect.asVoid(child.ended).pipe(
      Effect.timeoutOrElse({
        duration: patienceSeconds * 1_000,
        orElse: () =>
          Effect.andThen(
            Effect.sync(() => child.signal("SIGKILL")),
            Effect.asVoid(child.ended)
          )
      })
    )
  })

/** Does this when the process exits while the scope is open. */
export const untilExit = (leave: () => void): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.sync(() => process.once("exit", leave)),
      () => Effect.sync(() => process.off("exit", leave))
    )
  )

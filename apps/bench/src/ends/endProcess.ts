import { type ChildProcess, fork } from "node:child_process"
import { join } from "node:path"
import type { EndEvent, EndSetting } from "./messages.ts"

/**
 * An end in a process of its own, as the command that started it sees it.
 */

export interface StartOptions {
  /** Where V8 leaves a CPU profile, `NAME.cpuprofile`. */
  readonly profile?: { readonly folder: string; readonly name: string } | undefined
  readonly environment?: NodeJS.ProcessEnv | undefined
}

type EventOf<Name extends EndEvent["event"]> = Extract<EndEvent, { readonly event: Name }>

/** An end did not do what it was started for. */
export class EndFailed extends Error {
  override readonly name = "EndFailed"
}

/** A command whose ends run ends with them, its files removed on the way out. */
const endAtOnce = (): void => process.exit(130)

const program = join(import.meta.dirname, "endMain.ts")

export class EndProcess {
  readonly name: string
  readonly #child: ChildProcess
  readonly #events: Array<EndEvent> = []
  readonly #waiting = new Set<() => void>()
  #failure: string | undefined

  constructor(setting: EndSetting, { environment, profile }: StartOptions = {}) {
    this.name = setting.order.role
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      if (!process.listeners(signal).includes(endAtOnce)) process.on(signal, endAtOnce)
    }
    const execArgv = profile
      ? ["--cpu-prof", `--cpu-prof-dir=${profile.folder}`, `--cpu-prof-name=${profile.name}.cpuprofile`]
      : []
    this.#child = fork(program, [JSON.stringify(setting)], {
      execArgv,
      env: { ...process.env, ...environment },
      stdio: ["ignore", 2, 2, "ipc"]
    })
    this.#child.on("message", (event: EndEvent) => {
      if (event.event === "failed") this.#failure = event.message
      this.#events.push(event)
      this.#wakeAll()
    })
    this.#child.on("exit", (code, signal) => {
      this.#failure ??= `it ended with ${signal ?? `exit code ${code}`}`
      this.#wakeAll()
    })
  }

  /** Takes the next event of a name. Fails when the process failed, or after so long. */
  async next<const Name extends EndEvent["event"]>(event: Name, withinMillis: number): Promise<EventOf<Name>> {
    const until = performance.now() + withinMillis
    for (;;) {
      const at = this.#events.findIndex((one) => one.event === event)
      if (at >= 0) return this.#events.splice(at, 1)[0] as EventOf<Name>
      if (this.#failure !== undefined) throw new EndFailed(`${this.name}: ${this.#failure}`)
      const left = until - performance.now()
      if (left <= 0) throw new EndFailed(`${this.name}: not ${event} within ${Math.round(withinMillis / 1_000)} s`)
      await this.#woken(left)
    }
  }

  #ask(request: "stop" | "status"): void {
    if (this.#child.connected) this.#child.send(request)
  }

  /** What it has done so far. */
  async status(withinMillis = 10_000): Promise<EventOf<"status">> {
    this.#ask("status")
    return this.next("status", withinMillis)
  }

  /** Asks it to end and waits for its report. */
  async stop(withinMillis = 20_000): Promise<EventOf<"ended">> {
    this.#ask("stop")
    const ended = await this.next("ended", withinMillis)
    await this.#exited()
    return ended
  }

  /** Ends it whatever it does. */
  kill(): void {
    this.#child.kill("SIGKILL")
  }

  #woken(millis: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer)
        this.#waiting.delete(wake)
        resolve()
      }
      const timer = setTimeout(wake, millis)
      this.#waiting.add(wake)
    })
  }

  #wakeAll(): void {
    for (const wake of Array.from(this.#waiting)) wake()
  }

  /** A profile is written on the way out. */
  async #exited(): Promise<void> {
    const until = performance.now() + 10_000
    while (this.#child.exitCode === null && this.#child.signalCode === null && performance.now() < until) {
      await this.#woken(200)
    }
  }
}

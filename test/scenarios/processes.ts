/**
 * Real `pure-link` processes for scenarios: each scenario has a folder of its own with keys and stores, starts
 * processes, kills them by their id, and leaves nothing running.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"

export const program = join(import.meta.dirname, "../../apps/pure-link/src/main.ts")

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly output: string
  readonly errors: string
}

/** A running process with everything it printed. */
export class Running {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  #output = ""
  #errors = ""
  readonly #listeners = new Set<(line: string) => void>()

  constructor(command: string, args: ReadonlyArray<string>) {
    this.child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] })
    createInterface({ input: this.child.stdout! }).on("line", (line) => {
      this.#output += `${line}\n`
      for (const listener of this.#listeners) listener(line)
    })
    this.child.stderr!.on("data", (text: Buffer) => {
      this.#errors += text.toString()
    })
    this.ended = once(this.child, "close").then(([code, signal]) => ({
      code: code as number | null,
      signal: signal as NodeJS.Signals | null,
      output: this.#output,
      errors: this.#errors
    }))
  }

  get output(): string {
    return this.#output
  }

  get errors(): string {
    return this.#errors
  }

  onLine(listener: (line: string) => void): void {
    this.#listeners.add(listener)
  }

  /** The first JSON line of an event, past or to come; fails when the process ends without it. */
  async event(name: string): Promise<Record<string, unknown>> {
    const found = (line: string) => line.startsWith("{") && (JSON.parse(line) as { event?: string }).event === name
    const past = this.#output.split("\n").find(found)
    if (past !== undefined) return JSON.parse(past) as Record<string, unknown>
    return Promise.race([
      new Promise<Record<string, unknown>>((resolve) => {
        this.onLine((line) => {
          if (found(line)) resolve(JSON.parse(line) as Record<string, unknown>)
        })
      }),
      this.ended.then((end) => {
        throw new Error(`the process ended (${end.code ?? end.signal}) before "${name}":\n${end.output}${end.errors}`)
      })
    ])
  }

  /** Ends it with a signal and waits. */
  async kill(signal: NodeJS.Signals): Promise<Ended> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill(signal)
    return this.ended
  }
}

export const input = "orders"

/** A folder, two key pairs, and the commands that use them. */
export class Scenario {
  readonly folder = mkdtempSync(join(tmpdir(), "pure-link-scenario-"))
  readonly program = program
  readonly serverKey: string
  readonly clientKey: string
  readonly #running = new Set<Running>()

  constructor() {
    this.serverKey = this.#keygen("server.key")
    this.clientKey = this.#keygen("client.key")
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  #keygen(file: string): string {
    const made = this.runToEnd("keygen", "--file", this.path(file))
    if (made.code !== 0) throw new Error(made.errors)
    return made.output.trim()
  }

  /** A short command, run to its end. */
  runToEnd(...args: ReadonlyArray<string>): {
    readonly code: number | null
    readonly output: string
    readonly errors: string
  } {
    const { status, stderr, stdout } = spawnSync(process.execPath, [program, ...args], {
      encoding: "utf8",
      maxBuffer: 2 ** 28
    })
    return { code: status, output: stdout, errors: stderr }
  }

  start(command: string, args: ReadonlyArray<string>): Running {
    const running = new Running(command, args)
    this.#running.add(running)
    void running.ended.then(() => this.#running.delete(running))
    return running
  }

  serveArguments(
    options: { readonly port?: number; readonly host?: string; readonly extra?: ReadonlyArray<string> } = {}
  ): Array<string> {
    return [
      "serve",
      "--json",
      "--key",
      this.path("server.key"),
      "--listen",
      `${options.host ?? "127.0.0.1"}:${options.port ?? 0}`,
      "--store",
      this.path("inbox.db"),
      "--input",
      input,
      "--allow",
      this.clientKey,
      ...(options.extra ?? [])
    ]
  }

  serve(options: Parameters<Scenario["serveArguments"]>[0] = {}): Running {
    return this.start(process.execPath, [program, ...this.serveArguments(options)])
  }

  sendArguments(to: string, file: string, extra: ReadonlyArray<string> = []): Array<string> {
    return [
      "send",
      "--json",
      "--key",
      this.path("client.key"),
      "--to",
      to,
      "--peer",
      this.serverKey,
      "--input",
      input,
      "--source",
      "till",
      "--outbox",
      this.path("outbox.db"),
      ...extra,
      file
    ]
  }

  send(to: string, file: string, extra: ReadonlyArray<string> = []): Running {
    return this.start(process.execPath, [program, ...this.sendArguments(to, file, extra)])
  }

  /** Everything in the inbox, as lines. */
  inboxLines(): Array<string> {
    const shown = this.runToEnd(
      "inbox",
      "show",
      "--store",
      this.path("inbox.db"),
      "--input",
      input,
      "--raw",
      "--count",
      "1000000"
    )
    if (shown.code !== 0) throw new Error(shown.errors)
    return shown.output.split("\n").slice(0, -1)
  }

  /** Kills what still runs and removes the folder. */
  async close(): Promise<void> {
    await Promise.all([...this.#running].map((running) => running.kill("SIGKILL")))
    rmSync(this.folder, { recursive: true, force: true })
  }
}

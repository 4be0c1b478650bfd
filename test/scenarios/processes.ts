/**
 * Real `pure-link` processes for scenarios: each scenario has a folder of its own with keys and stores, starts
 * processes, kills them by their id, and leaves nothing running.
 */
import { formatKeyFile, formatPublicKey, keyPair, nodeSuite, systemEntropy } from "@pure-link/keys"
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
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
  readonly #looks = new Set<() => void>()

  /** With a pipe as standard input, what is written to `child.stdin` is its input. */
  constructor(command: string, args: ReadonlyArray<string>, input: "none" | "pipe" = "none") {
    this.child = spawn(command, args, { stdio: [input === "pipe" ? "pipe" : "ignore", "pipe", "pipe"] })
    // A writer into a process that was killed learns of it from the process's end.
    this.child.stdin?.on("error", () => {})
    createInterface({ input: this.child.stdout! }).on("line", (line) => {
      this.#output += `${line}\n`
      for (const listener of this.#listeners) listener(line)
    })
    this.child.stderr!.on("data", (text: Buffer) => {
      this.#errors += text.toString()
      for (const look of this.#looks) look()
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

  /** All JSON lines of an event so far. */
  events(name: string): Array<Record<string, unknown>> {
    return this.#output
      .split("\n")
      .filter((line) => line.startsWith("{") && line.includes(`"${name}"`))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ event }) => event === name)
  }

  /** The first JSON line of an event, or a later one, past or to come; fails when the process ends without it. */
  async event(name: string, which = 1): Promise<Record<string, unknown>> {
    await this.#until(`"${name}"`, () => this.events(name).length >= which)
    return this.events(name)[which - 1]!
  }

  /** Waits for a JSON line of an event that meets a condition. */
  async eventWhere(name: string, meets: (event: Record<string, unknown>) => boolean): Promise<Record<string, unknown>> {
    await this.#until(`"${name}"`, () => this.events(name).some(meets))
    return this.events(name).find(meets)!
  }

  /** Waits until standard error says something. */
  said(text: RegExp): Promise<void> {
    return this.#until(String(text), () => text.test(this.#errors))
  }

  #until(what: string, condition: () => boolean): Promise<void> {
    if (condition()) return Promise.resolve()
    const met = new Promise<void>((resolve) => {
      const look = () => {
        if (!condition()) return
        this.#looks.delete(look)
        this.#listeners.delete(look)
        resolve()
      }
      this.#looks.add(look)
      this.onLine(look)
    })
    return Promise.race([
      met,
      this.ended.then((end) => {
        if (condition()) return
        throw new Error(`the process ended (${end.code ?? end.signal}) before ${what}:\n${end.output}${end.errors}`)
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

/** A body with a scenario of its own, which leaves nothing behind. */
export const withScenario = async (body: (scenario: Scenario) => Promise<void>): Promise<void> => {
  const scenario = new Scenario()
  try {
    await body(scenario)
  } finally {
    await scenario.close()
  }
}

/** Where a `serve` listens. */
export const portOf = async (serving: Running): Promise<number> =>
  Number(/:(\d+)$/.exec(String((await serving.event("listening")).address))![1])

/** "label 1", "label 2", …, each with a newline. */
export const numbered = (label: string, from: number, through: number): string =>
  Array.from({ length: through - from + 1 }, (_, i) => `${label} ${from + i}\n`).join("")

/** The arguments with another value of a flag. */
export const withFlag = (args: ReadonlyArray<string>, flag: string, value: string): Array<string> =>
  args.map((arg, index) => (args[index - 1] === flag ? value : arg))

/** A folder, two key pairs, and the commands that use them. */
export class Scenario {
  readonly folder = mkdtempSync(join(tmpdir(), "pure-link-scenario-"))
  readonly program = program
  readonly serverKey: string
  readonly clientKey: string
  readonly #running = new Set<Running>()

  constructor() {
    this.serverKey = this.keygen("server.key")
    this.clientKey = this.keygen("client.key")
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  /** Makes a key pair, as the command does but without a process, and returns its public key. */
  keygen(file: string): string {
    const keys = keyPair(nodeSuite, systemEntropy)
    writeFileSync(this.path(file), formatKeyFile(keys), { mode: 0o600, flag: "wx" })
    return formatPublicKey(keys.publicKey)
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

  start(command: string, args: ReadonlyArray<string>, input: "none" | "pipe" = "none"): Running {
    const running = new Running(command, args, input)
    this.#running.add(running)
    void running.ended.then(() => this.#running.delete(running))
    return running
  }

  /** Allows the client's key, or whom a file of peers allows. */
  serveArguments(
    options: {
      readonly port?: number
      readonly host?: string
      readonly peers?: string
      readonly extra?: ReadonlyArray<string>
    } = {}
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
      ...(options.peers === undefined ? ["--allow", this.clientKey] : ["--peers", options.peers]),
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

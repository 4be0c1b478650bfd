import { type ChildProcessByStdio, spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import type { Readable } from "node:stream"
import { type Command, ExitCode, printLine } from "../command.ts"
import { EndFailed, EndProcess } from "../ends/endProcess.ts"
import type { EndStatus } from "../ends/messages.ts"
import type { GivenFlags } from "../flags.ts"
import { begunWord } from "../garbage.ts"
import { loopbackReceiver, loopbackSender } from "../loopback.ts"
import type { Platform } from "../platform.ts"
import { type PairOptions, pairFlags, rateBounds, readPair, withFolder } from "../sharedFlags.ts"
import { sleepUntil } from "../sleepUntil.ts"
import { rounded } from "../verdict.ts"

/** An honest sender beside a flood of garbage on the same port: what it keeps of its speed, and how late timers are. */

const flags = {
  ...pairFlags(5, "each of before, during and after"),
  rate: { value: "R", help: "records a second of the honest sender (as fast as it can)" },
  kinds: { value: "LIST", help: "as in `bench flood`" },
  mbit: { value: "MBIT/S", help: "of the flood at most (as fast as it can)" }
}

interface FloodTestOptions extends PairOptions {
  readonly rate: number | undefined
  readonly kinds: string | undefined
  readonly mbit: number | undefined
}

const read = (given: GivenFlags): FloodTestOptions => ({
  ...readPair(given, 5),
  rate: given.number("rate", { least: 0.1, most: 1_000_000 }),
  kinds: given.text("kinds"),
  mbit: given.number("mbit", rateBounds)
})

export const floodTest: Command = {
  summary: "an honest sender beside a flood: its speed, and how late timers are",
  flags,
  notes:
    "Succeeds when timers are at most 50 ms late and the sender keeps half its speed. The flood takes CPU too: on two\n" +
    "cores three processes share them.",
  prepare: (given) => {
    const options = read(given)
    return () => withFolder(options.platform, (platform) => run(options, platform))
  }
}

const latestTimerMillis = 50
const leastOfSpeed = 0.5

const run = async (options: FloodTestOptions, platform: Platform): Promise<number> => {
  const { rate, seconds, size } = options
  const receiver = new EndProcess({ order: { role: "recv", options: loopbackReceiver(platform) } })
  let sender: EndProcess | undefined
  try {
    const { port } = await receiver.next("ready", 20_000)
    sender = new EndProcess({ order: { role: "send", options: { ...loopbackSender(platform, port, size), rate } } })
    await sender.next("ready", 20_000)
    await sleepUntil(performance.now() + 2_000)
    const before = await phase(sender, receiver, seconds)
    const { run_prefix } = await sender.status()
    const flooding = new Flood(options, platform, port, run_prefix)
    await flooding.begun
    const during = await phase(sender, receiver, seconds)
    const flood = await flooding.end()
    const after = await phase(sender, receiver, seconds)
    await sender.stop()
    const { report } = await receiver.stop()
    const kept = rounded(during.records_per_s / before.records_per_s, 3)
    const holds = kept >= leastOfSpeed && during.timer_late_ms.receive <= latestTimerMillis && report.bad === 0
    printLine({ event: "flood-test", size, holds, kept, before, during, after, flood, bad: report.bad })
    return holds ? ExitCode.done : ExitCode.failed
  } finally {
    sender?.kill()
    receiver.kill()
  }
}

interface Phase {
  readonly records_per_s: number
  readonly timer_late_ms: { readonly send: number; readonly receive: number }
  /** At the receiver: taken from the system, and lost because its buffer was full. */
  readonly datagrams_received_per_s: number
  readonly datagrams_dropped_per_s: number
}

const phase = async (sender: EndProcess, receiver: EndProcess, seconds: number): Promise<Phase> => {
  const from = await both(sender, receiver)
  await sleepUntil(performance.now() + seconds * 1_000)
  const to = await both(sender, receiver)
  const perSecond = (count: (status: EndStatus) => number, end: "send" | "receive"): number =>
    Math.round(((count(to[end]) - count(from[end])) / (to[end].at - from[end].at)) * 1_000)
  return {
    records_per_s: perSecond(({ records }) => records, "receive"),
    timer_late_ms: { send: to.send.timer_late_ms, receive: to.receive.timer_late_ms },
    datagrams_received_per_s: perSecond(({ datagrams_received }) => datagrams_received, "receive"),
    datagrams_dropped_per_s: perSecond(({ datagrams_dropped }) => datagrams_dropped, "receive")
  }
}

const both = async (sender: EndProcess, receiver: EndProcess) => {
  const [send, receive] = await Promise.all([sender.status(30_000), receiver.status(30_000)])
  return { send, receive }
}

/** `bench flood` in a process of its own, until it is ended. */
class Flood {
  readonly begun: Promise<void>
  readonly #child: ChildProcessByStdio<null, Readable, Readable>
  readonly #closed: Promise<unknown>
  #output = ""

  constructor({ kinds, mbit }: FloodTestOptions, { fallback }: Platform, port: number, runPrefix: number) {
    const given = ["flood", "--port", `${port}`, "--seconds", `${longestSeconds}`, "--run", `${runPrefix}`]
    if (kinds !== undefined) given.push("--kinds", kinds)
    if (mbit !== undefined) given.push("--mbit", `${mbit}`)
    if (fallback) given.push("--fallback")
    this.#child = spawn(process.execPath, [program, ...given], { stdio: ["ignore", "pipe", "pipe"] })
    this.#child.stdout.on("data", (piece: Buffer) => (this.#output += piece.toString()))
    this.#closed = once(this.#child, "close")
    let errors = ""
    this.begun = new Promise((resolve, reject) => {
      this.#child.stderr.on("data", (piece: Buffer) => {
        errors += piece.toString()
        if (errors.includes(begunWord)) resolve()
      })
      this.#child.on("close", () => reject(new EndFailed(`flood: ${errors.trim()}`)))
    })
  }

  /** Ends it and gives what it says. */
  async end(): Promise<unknown> {
    this.#child.kill("SIGINT")
    await this.#closed
    return JSON.parse(this.#output)
  }
}

const program = join(import.meta.dirname, "../../bin/bench.js")
/** A flood that nobody ends, because this process was killed, ends then. */
const longestSeconds = 600

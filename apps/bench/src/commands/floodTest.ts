import { spawn } from "node:child_process"
import { join } from "node:path"
import { type Command, ExitCode, printLine } from "../command.ts"
import { EndFailed, EndProcess } from "../ends/endProcess.ts"
import type { EndStatus } from "../ends/messages.ts"
import type { GivenFlags } from "../flags.ts"
import { loopbackReceiver, loopbackSender } from "../loopback.ts"
import type { Platform } from "../platform.ts"
import {
  jsonFlag,
  type PlatformChoice,
  platformFlags,
  readPlatform,
  secondsBounds,
  sizeBounds,
  withFolder
} from "../sharedFlags.ts"
import { rounded } from "../verdict.ts"
import { sleepUntil } from "./memory.ts"

/** An honest sender beside a flood of garbage on the same port: what it keeps of its speed, and how late timers are. */

const flags = {
  size: { value: "BYTES", help: "of every record (1,013)" },
  seconds: { value: "S", help: "each of before, during and after (5)" },
  rate: { value: "R", help: "records a second of the honest sender (as fast as it can)" },
  kinds: { value: "LIST", help: "as in `bench flood`" },
  ...platformFlags,
  ...jsonFlag
}

interface FloodTestOptions {
  readonly size: number
  readonly seconds: number
  readonly rate: number | undefined
  readonly kinds: string | undefined
  readonly platform: PlatformChoice
}

const read = (given: GivenFlags): FloodTestOptions => ({
  size: given.number("size", sizeBounds) ?? 1_013,
  seconds: given.number("seconds", secondsBounds) ?? 5,
  rate: given.number("rate", { least: 0.1, most: 1_000_000 }),
  kinds: given.text("kinds"),
  platform: readPlatform(given)
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
    const flooding = startFlood(options, platform, port, run_prefix)
    await sleepUntil(performance.now() + startMillis)
    const during = await phase(sender, receiver, seconds)
    const flood = await flooding
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
  readonly datagrams_received_per_s: number
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
    datagrams_received_per_s: perSecond(({ datagrams_received }) => datagrams_received, "receive")
  }
}

const both = async (sender: EndProcess, receiver: EndProcess) => {
  const [send, receive] = await Promise.all([sender.status(30_000), receiver.status(30_000)])
  return { send, receive }
}

/** The flood begins this long before its phase and lasts as much longer. */
const startMillis = 1_000

const startFlood = (
  { kinds, seconds }: FloodTestOptions,
  { fallback }: Platform,
  port: number,
  runPrefix: number
): Promise<unknown> => {
  const bench = join(import.meta.dirname, "../../bin/bench.js")
  const given = ["flood", "--port", `${port}`, "--seconds", `${seconds + startMillis / 500}`, "--run", `${runPrefix}`]
  if (kinds !== undefined) given.push("--kinds", kinds)
  if (fallback) given.push("--fallback")
  const child = spawn(process.execPath, [bench, ...given], { stdio: ["ignore", "pipe", "inherit"] })
  let text = ""
  child.stdout.on("data", (piece: Buffer) => (text += piece.toString()))
  return new Promise((resolve, reject) => {
    child.on("error", reject)
    child.on("close", (code) =>
      code === 0 ? resolve(JSON.parse(text)) : reject(new EndFailed(`flood: it ended with exit code ${code}`))
    )
  })
}

import { type Command, ExitCode, printLine } from "../command.ts"
import { EndProcess } from "../ends/endProcess.ts"
import type { EndStatus } from "../ends/messages.ts"
import { loopbackReceiver, loopbackSender } from "../loopback.ts"
import type { Platform } from "../platform.ts"
import { grouped, Progress } from "../progress.ts"
import { type PairOptions, pairFlags, readPair, withFolder } from "../sharedFlags.ts"
import { sleepUntil } from "../sleepUntil.ts"
import { median } from "../verdict.ts"

/**
 * Both ends under load for long: records a second that are durable on both sides, memory of each end and the size of
 * their files, second by second.
 */

const flags = pairFlags(60, "how long")

export const memory: Command = {
  summary: "both ends under load for long: durable records a second, memory, size of files",
  flags,
  notes: "`durable_per_s` counts what the sender knows to be STORED, so it is on both disks with --store sqlite.",
  prepare: (given) => {
    const options = readPair(given, 60)
    return () => withFolder(options.platform, (platform) => run(options, platform))
  }
}

/** What both ends said at the end of a second. */
interface Second {
  readonly send: EndStatus
  readonly receive: EndStatus
}

const run = async ({ seconds, size }: PairOptions, platform: Platform): Promise<number> => {
  const progress = new Progress("memory")
  const receiver = new EndProcess({ order: { role: "recv", options: loopbackReceiver(platform) } })
  let sender: EndProcess | undefined
  try {
    const { port } = await receiver.next("ready", 20_000)
    sender = new EndProcess({ order: { role: "send", options: loopbackSender(platform, port, size) } })
    await sender.next("ready", 20_000)
    const states = await watchFor(seconds, sender, receiver, ({ receive, send }) =>
      progress.show(() => `${grouped(send.records)} STORED, ${send.rss_mib} and ${receive.rss_mib} MiB`)
    )
    await sender.stop(60_000)
    const { report } = await receiver.stop(30_000)
    printLine({ event: "memory", size, store: platform.store, ...summarize(states), bad: report.bad })
    return report.bad > 0 ? ExitCode.failed : ExitCode.done
  } finally {
    sender?.kill()
    receiver.kill()
  }
}

/** Asks both ends once a second. */
const watchFor = async (
  seconds: number,
  sender: EndProcess,
  receiver: EndProcess,
  seen: (second: Second) => void
): Promise<ReadonlyArray<Second>> => {
  const states: Array<Second> = []
  const begun = performance.now()
  for (let second = 0; performance.now() - begun <= seconds * 1_000; second++) {
    await sleepUntil(begun + second * 1_000)
    const [send, receive] = await Promise.all([sender.status(30_000), receiver.status(30_000)])
    states.push({ send, receive })
    seen({ send, receive })
  }
  return states
}

export const summarize = (states: ReadonlyArray<Second>) => {
  const first = states[0]!
  const last = states.at(-1)!
  const seconds = (last.send.at - first.send.at) / 1_000
  const perSecond = states.slice(1).map(({ send }, i) => {
    const before = states[i]!.send
    return Math.round(((send.records - before.records) / (send.at - before.at)) * 1_000)
  })
  return {
    seconds: Math.round(seconds * 10) / 10,
    durable_per_s: Math.round((last.send.records - first.send.records) / seconds),
    appended_per_s: Math.round((last.send.appended - first.send.appended) / seconds),
    read_per_s: Math.round((last.receive.records - first.receive.records) / seconds),
    slowest_second_per_s: perSecond.length === 0 ? null : Math.min(...perSecond),
    median_second_per_s: perSecond.length === 0 ? null : median(perSecond),
    rss_max_mib: { send: last.send.rss_max_mib, receive: last.receive.rss_max_mib },
    store_max_mib: { send: last.send.store_max_mib, receive: last.receive.store_max_mib },
    timer_late_max_ms: {
      send: Math.max(...states.map(({ send }) => send.timer_late_ms)),
      receive: Math.max(...states.map(({ receive }) => receive.timer_late_ms))
    },
    durable_series: perSecond,
    rss_series_mib: {
      send: states.map(({ send }) => send.rss_mib),
      receive: states.map(({ receive }) => receive.rss_mib)
    }
  }
}

import { createSocket, type Socket } from "node:dgram"
import { type Command, ExitCode, printLine } from "../command.ts"
import { EndProcess } from "../ends/endProcess.ts"
import { type EndStatus, peaksOf } from "../ends/messages.ts"
import type { GivenFlags } from "../flags.ts"
import { loopbackReceiver, loopbackSender } from "../loopback.ts"
import type { Platform } from "../platform.ts"
import { grouped, Progress } from "../progress.ts"
import { jsonFlag, type PlatformChoice, platformFlags, readPlatform, sizeBounds, withFolder } from "../sharedFlags.ts"
import { sleepUntil } from "../sleepUntil.ts"

/**
 * A sender whose peer is away fills its outbox on disk to the limit, and then, with --drain, the peer comes back: memory
 * of each end, everything included.
 */

const { store: _, ...storeFlags } = platformFlags

const flags = {
  size: { value: "BYTES", help: "of every record (1,013)" },
  mib: { value: "MIB", help: "the outbox's limit (1,024)" },
  hold: { value: "S", help: "how long it stays full (5)" },
  drain: { help: "a receiver comes then and takes everything" },
  ...storeFlags,
  ...jsonFlag
}

interface FillOptions {
  readonly size: number
  readonly limitBytes: number
  readonly holdSeconds: number
  readonly drain: boolean
  readonly platform: PlatformChoice
}

const read = (given: GivenFlags): FillOptions => ({
  size: given.number("size", { ...sizeBounds, least: 1 }) ?? 1_013,
  limitBytes: (given.number("mib", { least: 1, most: 65_536 }) ?? 1_024) * 1_048_576,
  holdSeconds: given.number("hold", { least: 0, most: 3_600 }) ?? 5,
  drain: given.has("drain"),
  platform: { ...readPlatform(given), store: "sqlite" }
})

export const fill: Command = {
  summary: "fills an outbox on disk with no peer there, and drains it: memory of each end",
  flags,
  prepare: (given) => {
    const options = read(given)
    return () => withFolder(options.platform, (platform) => run(options, platform))
  }
}

const longestDrainMillis = 3_600_000

/** What a record counts against an outbox's limit beside its bytes; a little is left free for the last batch. */
const countedBeside = 32

const run = async ({ drain, holdSeconds, limitBytes, size }: FillOptions, platform: Platform): Promise<number> => {
  const progress = new Progress("fill")
  const silent = await bindSilent()
  const { port } = silent.address()
  const count = Math.floor(limitBytes / (size + countedBeside))
  const sender = new EndProcess({
    order: { role: "send", options: { ...loopbackSender(platform, port, size), count, limitBytes, drainSeconds: 0 } }
  })
  let receiver: EndProcess | undefined
  try {
    await sender.next("ready", 20_000)
    const begun = performance.now()
    await until(sender, progress, (status) => status.appended >= count)
    const filled = performance.now()
    await sleepUntil(filled + holdSeconds * 1_000)
    const full = await sender.status()
    silent.close()
    const result = {
      event: "fill",
      size,
      records: count,
      limit_mib: limitBytes / 1_048_576,
      fill_s: Math.round((filled - begun) / 100) / 10,
      full: { rss_mib: full.rss_mib, rss_max_mib: full.rss_max_mib, store_max_mib: full.store_max_mib }
    }
    if (!drain) {
      printLine(result)
      return ExitCode.done
    }
    receiver = new EndProcess({ order: { role: "recv", options: loopbackReceiver(platform, port) } })
    await receiver.next("ready", 20_000)
    const drainedFrom = performance.now()
    const sent = await sender.next("ended", longestDrainMillis)
    const drained = performance.now()
    const { report } = await receiver.stop()
    printLine({
      ...result,
      drain_s: Math.round((drained - drainedFrom) / 100) / 10,
      drained: { send: peaksOf(sent.report), receive: peaksOf(report) },
      bad: report.bad
    })
    return report.bad > 0 ? ExitCode.failed : ExitCode.done
  } finally {
    sender.kill()
    receiver?.kill()
  }
}

/** A port that is taken and never answers. */
const bindSilent = (): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = createSocket("udp4")
    socket.once("error", reject)
    socket.bind(0, "127.0.0.1", () => resolve(socket))
  })

const until = async (sender: EndProcess, progress: Progress, isDone: (status: EndStatus) => boolean): Promise<void> => {
  for (;;) {
    const status = await sender.status(60_000)
    if (isDone(status)) return
    progress.show(
      () => `${grouped(status.appended)} appended, ${grouped(status.records)} STORED, ${status.rss_mib} MiB`
    )
    await sleepUntil(performance.now() + 250)
  }
}

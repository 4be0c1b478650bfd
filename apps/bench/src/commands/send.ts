import { resolveHost } from "@pure-link/udp"
import * as Effect from "effect/Effect"
import { type Command, ExitCode, printLine } from "../command.ts"
import { send as sendEnd, type SendOptions } from "../ends/sendEnd.ts"
import type { GivenFlags } from "../flags.ts"
import { Interrupts } from "../interrupts.ts"
import type { Platform } from "../platform.ts"
import { grouped, Progress } from "../progress.ts"
import {
  countBounds,
  jsonFlag,
  platformFlags,
  portBounds,
  readPlatform,
  secondsBounds,
  sizeBounds,
  withFolder
} from "../sharedFlags.ts"
import { timeEnd } from "../pattern.ts"
import { UsageError } from "../usageError.ts"

/** The sending end by hand, on any path. */

const flags = {
  host: { value: "HOST", help: "where the receiving end is" },
  port: { value: "P", help: "its UDP port" },
  size: { value: "BYTES", help: "of every record" },
  count: { value: "N", help: "records; ends when all are STORED" },
  seconds: { value: "S", help: "appends so long, then waits until all is STORED" },
  rate: { value: "R", help: "records a second, each with its send time; without, as fast as the outbox takes them" },
  outbox: { value: "MIB", help: "what the outbox holds at most (32, sqlite 256)" },
  drain: { value: "S", help: "what is appended gets so long to be STORED after an interrupt (10)" },
  series: { help: "adds memory second by second" },
  ...platformFlags,
  ...jsonFlag
}

type SendChoice = Omit<SendOptions, keyof Platform | "to"> & { readonly host: string; readonly port: number }

const read = (given: GivenFlags): SendChoice => {
  const size = given.requiredNumber("size", sizeBounds)
  const rate = given.number("rate", { least: 0.001, most: 1_000_000 })
  const seconds = given.number("seconds", secondsBounds)
  const count = given.number("count", countBounds)
  if (seconds === undefined && count === undefined) throw new UsageError("--count or --seconds is missing")
  if (rate !== undefined && size < timeEnd) {
    throw new UsageError(`--rate needs records of ${timeEnd} B or more: the send time travels in them`)
  }
  const mib = given.number("outbox", { least: 1, most: 1_048_576 }) ?? (given.text("store") === "sqlite" ? 256 : 32)
  return {
    host: given.required("host"),
    port: given.requiredNumber("port", portBounds),
    size,
    rate,
    seconds,
    count,
    limitBytes: mib * 1_048_576,
    drainSeconds: given.number("drain", { least: 0, most: 86_400 }) ?? 10
  }
}

export const send: Command = {
  summary: "the sending end by hand",
  flags,
  notes:
    "`messages` are those STORED at the other end; `bad` are those that were appended and not STORED when it ended.",
  prepare: (given) => {
    const options = read(given)
    const choice = readPlatform(given)
    const series = given.has("series")
    return () => withFolder(choice, (platform) => run(options, platform, series))
  }
}

const run = async ({ host, port, ...options }: SendChoice, platform: Platform, series: boolean): Promise<number> => {
  const progress = new Progress("send")
  const to = await Effect.runPromise(resolveHost(host, port))
  const interrupts = new Interrupts()
  const { memorySeries, report } = await Effect.runPromise(
    sendEnd(
      { ...platform, ...options, to },
      {
        opened: () => {},
        progress: (appended, stored) =>
          progress.show(() => `${grouped(appended)} records appended, ${grouped(stored)} STORED`),
        until: interrupts.requested
      }
    )
  )
  interrupts.close()
  printLine({ event: "send", ...report, ...(series && { rss_mib: memorySeries }) })
  if (interrupts.count > 0) return ExitCode.interrupted
  return report.bad > 0 ? ExitCode.failed : ExitCode.done
}

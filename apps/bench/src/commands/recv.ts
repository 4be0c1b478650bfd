import * as Effect from "effect/Effect"
import { type Command, ExitCode, printLine } from "../command.ts"
import { receive, type ReceiveOptions } from "../ends/receiveEnd.ts"
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
  withFolder
} from "../sharedFlags.ts"

/** The receiving end by hand, on any path. */

const flags = {
  port: { value: "P", help: "UDP port to listen on" },
  host: { value: "ADDRESS", help: "address to listen on (0.0.0.0)" },
  count: { value: "N", help: "ends after so many records; without, at SIGINT or SIGTERM" },
  seconds: { value: "S", help: "ends after so long, whatever came" },
  skip: { value: "S", help: "`after_skip` leaves out so much after the first record (2)" },
  series: { help: "adds records and Mbit/s of each second, and memory" },
  sampled: { help: "compares one record in 64 whole, as `cpu` does, and of the others length, number and last byte" },
  ...platformFlags,
  ...jsonFlag
}

interface RecvOptions {
  readonly receive: Omit<ReceiveOptions, keyof Platform>
  readonly seconds: number | undefined
  readonly series: boolean
}

const read = (given: GivenFlags): RecvOptions => ({
  receive: {
    listen: { host: given.text("host") ?? "0.0.0.0", port: given.requiredNumber("port", portBounds) },
    count: given.number("count", countBounds),
    skipSeconds: given.number("skip", { least: 0, most: 86_400 }) ?? 2,
    strictness: given.has("sampled") ? "sampled" : "every"
  },
  seconds: given.number("seconds", secondsBounds),
  series: given.has("series")
})

export const recv: Command = {
  summary: "the receiving end by hand",
  flags,
  notes: "Latencies (p50_ms, p99_ms, max_ms) are those of a rated sender; they compare the clocks of both machines.",
  prepare: (given) => {
    const options = read(given)
    const choice = readPlatform(given)
    return () => withFolder(choice, (platform) => run(options, platform))
  }
}

const run = async ({ receive: options, seconds, series }: RecvOptions, platform: Platform): Promise<number> => {
  const progress = new Progress("recv")
  const interrupts = new Interrupts()
  const { requested } = interrupts
  const until = seconds === undefined ? requested : Effect.raceFirst(requested, Effect.sleep(seconds * 1_000))
  const { arrivals, memorySeries, report } = await Effect.runPromise(
    receive(
      { ...platform, ...options },
      {
        listening: (port) => process.stderr.write(`bench recv: listening on port ${port}\n`),
        progress: (messages) => progress.show(() => `${grouped(messages)} records`),
        until
      }
    )
  )
  interrupts.close()
  printLine({ event: "recv", ...report, ...(series && { series: arrivals.series, rss_mib: memorySeries }) })
  return report.bad > 0 ? ExitCode.failed : ExitCode.done
}

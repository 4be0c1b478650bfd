import { load } from "@pure-link/native"
import { mkdirSync } from "node:fs"
import { resolve } from "node:path"
import { type Command, ExitCode, printLine } from "../command.ts"
import { peaksOf } from "../ends/messages.ts"
import type { GivenFlags } from "../flags.ts"
import type { Window } from "../meter.ts"
import { type PairRun, runPair } from "../pairRun.ts"
import { loopbackReceiver, loopbackSender } from "../loopback.ts"
import type { Platform } from "../platform.ts"
import { Progress } from "../progress.ts"
import {
  countBounds,
  jsonFlag,
  platformFlags,
  type PlatformChoice,
  readPlatform,
  secondsBounds,
  sizeBounds,
  withFolder
} from "../sharedFlags.ts"
import { UsageError } from "../usageError.ts"
import { judgeFloor, median, rounded } from "../verdict.ts"

/**
 * CPU of both ends for a record on loopback, of the link and, in alternation with it, of the floor loop.
 */

interface CpuOptions {
  readonly size: number
  readonly platform: PlatformChoice
  readonly window: Window
  readonly floor: boolean
  readonly times: number
  readonly profile: string | undefined
}

const flags = {
  size: { value: "BYTES", help: "of every record" },
  seconds: { value: "S", help: "each measurement takes so long (2)" },
  count: { value: "N", help: "or so many records" },
  "warm-up": { value: "S", help: "before it, until what runs is compiled (15)" },
  floor: { help: "the floor loop in alternation, and the ratio to it" },
  alternations: { value: "N", help: "measurements of each (5 with --floor, else 1)" },
  profile: { value: "FOLDER", help: "a V8 CPU profile of each end; costs time itself" },
  ...platformFlags,
  ...jsonFlag
}

/** V8 compiles for so long what runs once per batch, in threads whose time counts (docs/bench.md). */
const warmUpSeconds = 15
/** What has to go through before it counts; records that are shorter than so much count as long. */
const warmUpBytes = 67_108_864
const leastCounted = 61

const read = (given: GivenFlags): CpuOptions => {
  given.exclusive("seconds", "count")
  const count = given.number("count", countBounds)
  const floor = given.has("floor")
  if (floor && given.has("fallback")) throw new UsageError("--floor is a loop of native code: leave --fallback away")
  const size = given.requiredNumber("size", sizeBounds)
  return {
    size,
    platform: readPlatform(given),
    window: {
      warmUpSeconds: given.number("warm-up", { least: 0, most: 600 }) ?? warmUpSeconds,
      warmUpRecords: Math.ceil(warmUpBytes / Math.max(size, leastCounted)),
      ...(count === undefined ? { seconds: given.number("seconds", secondsBounds) ?? 2 } : { count })
    },
    floor,
    times: given.number("alternations", { least: 1, most: 1_000, whole: true }) ?? (floor ? 5 : 1),
    profile: given.text("profile")
  }
}

export const cpu: Command = {
  summary: "CPU per record of both ends on loopback, and its ratio to the floor loop",
  flags,
  notes:
    "records_per_s, cpu_us_per_record and what follows are medians; `runs` has every measurement. With --floor,\n" +
    "`counts` is false when the floor itself took more than 1.7 times what docs/bench.md has for it.",
  prepare: (given) => {
    const options = read(given)
    return () => measure(options)
  }
}

const measure = async (options: CpuOptions): Promise<number> => {
  if (options.profile !== undefined) mkdirSync(options.profile, { recursive: true })
  const progress = new Progress("cpu")
  const links: Array<PairRun> = []
  const floors: Array<PairRun> = []
  for (let time = 1; time <= options.times; time++) {
    links.push(await withFolder(options.platform, (platform) => runLink(options, platform, time)))
    if (options.floor) floors.push(await runFloor(options, time))
    progress.show(() => `${time} of ${options.times} alternations`)
  }
  const result = resultOf(options, links, floors)
  printLine(result)
  return result.bad > 0 ? ExitCode.failed : ExitCode.done
}

/** One measurement of the real link. */
const runLink = ({ profile, size, times, window }: CpuOptions, platform: Platform, time: number): Promise<PairRun> =>
  runPair({
    receiver: {
      role: "recv",
      options: loopbackReceiver(platform)
    },
    sender: (port) => ({
      role: "send",
      options: loopbackSender(platform, port, size)
    }),
    window,
    profile: profileOf(profile, "link", times, time)
  })

const runFloor = ({ profile, size, times, window }: CpuOptions, time: number): Promise<PairRun> =>
  runPair({
    receiver: { role: "floor-recv", options: { size } },
    sender: (port) => ({ role: "floor-send", options: { size, port } }),
    window,
    profile: profileOf(profile, "floor", times, time)
  })

const profileOf = (folder: string | undefined, name: string, times: number, time: number) =>
  folder === undefined ? undefined : { folder: resolve(folder), name: times === 1 ? name : `${name}-${time}` }

const resultOf = (options: CpuOptions, links: ReadonlyArray<PairRun>, floors: ReadonlyArray<PairRun>) => {
  const bad = [...links, ...floors].reduce((sum, run) => sum + run.bad, 0)
  const cpuOf = (runs: ReadonlyArray<PairRun>) => runs.map((run) => run.cpu_us_per_record)
  return {
    event: "cpu",
    size: options.size,
    store: options.platform.store,
    path: pathOf(options.platform.fallback),
    node: process.version,
    warm_up_s: options.window.warmUpSeconds,
    ...medians(links),
    ...(options.floor && judgeFloor(options.size, cpuOf(links), cpuOf(floors), bad)),
    bad,
    rss_max_mib: { send: maximum(links, "send"), receive: maximum(links, "receive") },
    ...(options.floor && { floor: medians(floors) }),
    runs: links.map((link, i) => ({ link: brief(link), ...(floors[i] && { floor: brief(floors[i]) }) }))
  }
}

const pathOf = (fallback: boolean): "native" | "fallback" =>
  fallback || load().addon === undefined ? "fallback" : "native"

const medians = (runs: ReadonlyArray<PairRun>) => {
  const of = (value: (run: PairRun) => number | null): number | null => {
    const values = runs.map(value).filter((one) => one !== null)
    return values.length === 0 ? null : rounded(median(values), 4)
  }
  return {
    records_per_s: of((run) => run.records_per_s),
    cpu_us_per_record: of((run) => run.cpu_us_per_record),
    send_us_per_record: of((run) => run.send_us_per_record),
    receive_us_per_record: of((run) => run.receive_us_per_record),
    cpu_us_per_packet: of((run) => run.cpu_us_per_packet),
    busy: { send: of((run) => run.send.busy), receive: of((run) => run.receive.busy) },
    packets: of((run) => run.packets),
    gso: of((run) => run.gso),
    gro: of((run) => run.gro),
    packets_per_answer: of((run) => run.packets_per_answer)
  }
}

const maximum = (runs: ReadonlyArray<PairRun>, end: "send" | "receive"): number => {
  return Math.max(...runs.map(({ reports }) => peaksOf(reports[end])?.rss_max_mib ?? 0))
}

/** Without what the parts of it say elsewhere. */
const brief = ({
  memory: _memory,
  receive_allocation: _receive,
  reports: _reports,
  send_allocation: _send,
  ...run
}: PairRun) => run

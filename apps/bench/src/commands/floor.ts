import { mkdirSync } from "node:fs"
import { resolve } from "node:path"
import { type Command, ExitCode, printLine } from "../command.ts"
import type { GivenFlags } from "../flags.ts"
import { runPair } from "../pairRun.ts"
import { jsonFlag, secondsBounds, sizeBounds } from "../sharedFlags.ts"
import { guideMicros, rounded } from "../verdict.ts"

/** The floor alone: what this machine gives now, before the link is measured against it. */

const flags = {
  size: { value: "BYTES", help: "of every record (1,013)" },
  seconds: { value: "S", help: "measured for so long (2)" },
  profile: { value: "FOLDER", help: "a V8 CPU profile of each end" },
  ...jsonFlag
}

interface FloorOptions {
  readonly size: number
  readonly seconds: number
  readonly profile: string | undefined
}

const read = (given: GivenFlags): FloorOptions => ({
  size: given.number("size", { ...sizeBounds, least: 1 }) ?? 1_013,
  seconds: given.number("seconds", secondsBounds) ?? 2,
  profile: given.text("profile")
})

export const floor: Command = {
  summary: "the floor loop alone: what this machine gives now",
  flags,
  prepare: (given) => {
    const options = read(given)
    return () => run(options)
  }
}

const run = async ({ profile, seconds, size }: FloorOptions): Promise<number> => {
  if (profile !== undefined) mkdirSync(profile, { recursive: true })
  const pair = await runPair({
    receiver: { role: "floor-recv", options: { size } },
    sender: (port) => ({ role: "floor-send", options: { size, port } }),
    window: { warmUpSeconds: 0.7, seconds },
    profile: profile === undefined ? undefined : { folder: resolve(profile), name: "floor" }
  })
  const { memory: _memory, receive_allocation: _receive, reports: _reports, send_allocation: _send, ...result } = pair
  const guide = guideMicros.get(size)
  printLine({
    event: "floor",
    size,
    floor_to_guide: guide === undefined ? null : rounded(pair.cpu_us_per_record / guide, 3),
    ...result
  })
  return pair.bad > 0 ? ExitCode.failed : ExitCode.done
}

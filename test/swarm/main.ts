#!/usr/bin/env node
/**
 * `npm run swarm -- --seeds N --from S [--fault NAME]`: runs N random worlds and stops at the first broken guarantee,
 * with its seed. `--trace` tells what happens, `--tally` what all worlds went through.
 */
import { parseArgs } from "node:util"
import { caughtBy, type Fault, faults } from "./fault.ts"
import { Tally } from "./tally.ts"
import { Violation } from "./violation.ts"
import { World } from "./world.ts"

const usage = `usage: npm run swarm -- [--seeds N] [--from S] [--fault ${faults.join("|")}] [--trace] [--tally]
Runs N random worlds (1,000 by default) from seed S (1 by default) on. With --fault, breaks that rule on purpose and says which
seed noticed, by the check that guards the rule. Exit 0: nothing found (with --fault: the fault was caught); 1: a guarantee was broken; 2: bad usage.`

const whole = (text: string, flag: string): number => {
  const value = Number(text)
  if (Number.isSafeInteger(value) && value >= 0) return value
  console.error(`${flag} takes a whole number, not "${text}"\n${usage}`)
  process.exit(2)
}

const read = () => {
  try {
    return parseArgs({
      options: {
        seeds: { type: "string", default: "1000" },
        from: { type: "string", default: "1" },
        fault: { type: "string" },
        trace: { type: "boolean" },
        tally: { type: "boolean" },
        help: { type: "boolean", short: "h" }
      }
    }).values
  } catch (error) {
    console.error(`${(error as Error).message}\n${usage}`)
    process.exit(2)
  }
}

const flags = read()
if (flags.help) {
  console.log(usage)
  process.exit(0)
}
if (flags.fault !== undefined && !(faults as ReadonlyArray<string>).includes(flags.fault)) {
  console.error(`no fault is called "${flags.fault}"\n${usage}`)
  process.exit(2)
}
const from = whole(flags.from, "--from")
const seeds = whole(flags.seeds, "--seeds")
const fault = flags.fault as Fault | undefined
const tally = new Tally()

/** Runs one world; ends the process when it found what is looked for. */
const runOne = (seed: number): void => {
  const world = new World(seed, {
    ...(fault === undefined ? {} : { fault }),
    ...(flags.trace === true ? { note: (line) => console.log(line) } : {})
  })
  try {
    world.run()
    tally.addAll(world.tally)
  } catch (error) {
    const { message, stack } = error as Error
    if (fault === undefined) {
      const replay = `npm run swarm -- --trace --seeds 1 --from ${seed}`
      console.error(`seed ${seed}: ${stack}\nreplay: ${replay}`)
      process.exit(1)
    }
    if (!(error instanceof Violation) || !caughtBy[fault].test(message)) return
    console.log(`fault ${fault} caught by seed ${seed}: ${message}`)
    process.exit(0)
  }
}

for (let seed = from; seed < from + seeds; seed++) {
  runOne(seed)
  if ((seed - from + 1) % 500 === 0) console.error(`${seed - from + 1} of ${seeds} worlds`)
}
if (flags.tally === true) console.log(tally.toString())
if (fault !== undefined) {
  console.error(`fault ${fault} was not caught by ${seeds} seeds`)
  process.exit(1)
}
console.log(`${seeds} worlds, seeds ${from} to ${from + seeds - 1}: every guarantee held`)

#!/usr/bin/env node
/**
 * `npm run swarm -- --seeds N --from S [--fault NAME]`: runs N random worlds and stops at the first broken guarantee,
 * with its seed.
 */
import { parseArgs } from "node:util"
import { type Fault, faults, World } from "./world.ts"

const usage = `usage: npm run swarm -- [--seeds N] [--from S] [--fault ${faults.join("|")}]
Runs N random worlds (1,000 by default) from seed S (1 by default) on. With --fault, breaks that rule on purpose and says which
seed noticed. Exit 0: nothing found (with --fault: the fault was caught); 1: a guarantee was broken; 2: bad usage.`

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
for (let seed = from; seed < from + seeds; seed++) {
  try {
    new World(seed, fault === undefined ? {} : { fault }).run()
  } catch (error) {
    if (fault !== undefined) {
      console.log(`fault ${fault} caught by seed ${seed}: ${(error as Error).message}`)
      process.exit(0)
    }
    console.error(`seed ${seed}: ${(error as Error).stack}\nreplay: npm run swarm -- --seeds 1 --from ${seed}`)
    process.exit(1)
  }
  if ((seed - from + 1) % 500 === 0) console.error(`${seed - from + 1} of ${seeds} worlds`)
}
if (fault !== undefined) {
  console.error(`fault ${fault} was not caught by ${seeds} seeds`)
  process.exit(1)
}
console.log(`${seeds} worlds, seeds ${from} to ${from + seeds - 1}: every guarantee held`)

#!/usr/bin/env node
/**
 * `node test/fuzz/main.ts --target NAME --seconds N --seed S [--keep]`: searches for inputs that break a property, guided by
 * coverage. `--replay BASE64` runs one input.
 */
import { parseArgs } from "node:util"
import { loadCorpus, saveCorpus } from "./corpus.ts"
import { Coverage } from "./coverage.ts"
import { Search, tryInput } from "./search.ts"

const usage = `usage: node test/fuzz/main.ts [--target NAME|all] [--seconds N] [--seed S] [--keep] [--replay BASE64]
Runs mutants of the kept inputs of a target for N seconds (10 by default) each. --keep writes the inputs that reach something new
to test/fuzz/corpus. --replay runs one input of a target. Exit 0: nothing found; 1: a property is broken; 2: bad usage.`

const fail = (message: string): never => {
  console.error(`${message}\n${usage}`)
  process.exit(2)
}

const read = () => {
  try {
    return parseArgs({
      options: {
        target: { type: "string", default: "all" },
        seconds: { type: "string", default: "10" },
        seed: { type: "string", default: "1" },
        keep: { type: "boolean" },
        replay: { type: "string" },
        help: { type: "boolean", short: "h" }
      }
    }).values
  } catch (error) {
    return fail((error as Error).message)
  }
}

const flags = read()
if (flags.help) {
  console.log(usage)
  process.exit(0)
}
const seconds = Number(flags.seconds)
const seed = Number(flags.seed)
if (!(seconds > 0) || !Number.isSafeInteger(seed)) fail("--seconds and --seed take numbers")
// Before the rooms are loaded, or their blocks are not counted.
const coverage = flags.replay === undefined ? new Coverage() : undefined
const { targets } = await import("./targets.ts")
const chosen = targets.filter(({ name }) => flags.target === "all" || flags.target === name)
if (chosen.length === 0)
  fail(`no target is called "${flags.target}"; there are ${targets.map(({ name }) => name).join(", ")}`)

if (flags.replay !== undefined) {
  const input = new Uint8Array(Buffer.from(flags.replay, "base64"))
  for (const target of chosen) {
    const error = tryInput(target, input)
    console.log(`${target.name}: ${error?.stack ?? "holds"}`)
    if (error !== undefined) process.exitCode = 1
  }
} else {
  for (const target of chosen) {
    const search = new Search(target, coverage!, seed)
    search.begin([...loadCorpus(target.name), ...target.seeds()])
    const known = search.blocks
    const ends = performance.now() + 1_000 * seconds
    while (performance.now() < ends) search.step()
    const { runs, kept, blocks, slowest, findings } = search
    console.log(
      `${target.name}: seed ${seed}, ${runs} inputs in ${seconds} s, ${blocks} blocks (${known} known), ${kept.length} kept, slowest ${slowest.toFixed(1)} ms`
    )
    for (const { input, error } of findings) {
      const text = Buffer.from(input).toString("base64")
      console.error(`${error.stack}\nreplay: node test/fuzz/main.ts --target ${target.name} --replay ${text}`)
      process.exitCode = 1
    }
    if (flags.keep) {
      const minimized = search.minimized()
      saveCorpus(target.name, minimized)
      console.log(
        `${target.name}: ${minimized.length} inputs kept, ${minimized.reduce((sum, { length }) => sum + length, 0)} B`
      )
    }
  }
}
process.exit()

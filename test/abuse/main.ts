#!/usr/bin/env node
/**
 * `node test/abuse/main.ts [--packets N] [--only TEXT]`: what each attack of an allowed peer costs a receiver with default limits:
 * time per packet at the beginning and at the end (flat?), beside honest packets, and memory that stays.
 */
import { parseArgs } from "node:util"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { answerAttacks, Besieged } from "./answerAttacks.ts"
import { type DataAttack, dataAttacks, Hostile } from "./dataAttacks.ts"
import { Stage } from "./stage.ts"

const usage = `usage: node test/abuse/main.ts [--packets N] [--only TEXT]
Sends N packets (20,000 by default) of each attack whose name contains TEXT. Exit 1: some attack's packets cost more than ten times
an honest one's, or ten times as much at the end as at the beginning, or memory grew beyond the bound; 2: bad usage.`

/** Packets that are timed together. */
const inBatch = 64
/** How much dearer than an honest packet, or than at the beginning, a packet may be. */
const mostTimes = 10
/** What a hostile peer may make a process with default limits hold: the total, the reserve and the buffers' share. */
const mostMemory = 1.25 * (256 + 16) * 2 ** 20 + 64 * 2 ** 20

const { values: flags } = parseArgs({
  options: {
    packets: { type: "string", default: "20000" },
    only: { type: "string", default: "" },
    help: { type: "boolean", short: "h" }
  }
})
const packets = Number(flags.packets)
if (flags.help || !(packets >= 20 * inBatch)) {
  console.log(usage)
  process.exit(flags.help ? 0 : 2)
}

setFlagsFromString("--expose-gc")
const collectGarbage = runInNewContext("gc") as () => void
const memoryNow = (): number => {
  collectGarbage()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

const median = (values: ReadonlyArray<number>): number => values.toSorted((a, b) => a - b)[values.length >>> 1] ?? 0

interface Cost {
  readonly name: string
  /** Microseconds per packet: medians of the first and the last tenth, and the longest batch. */
  readonly first: number
  readonly last: number
  readonly longest: number
  readonly memory: number
}

/** Runs batches and measures them; `batch` prepares one and returns what is to be timed. */
const measure = (name: string, subject: unknown, batch: () => () => void): Cost => {
  const before = memoryNow()
  const times: Array<number> = []
  for (let sent = 0; sent < packets; sent += inBatch) {
    const run = batch()
    const began = performance.now()
    run()
    times.push(((performance.now() - began) * 1_000) / inBatch)
  }
  const memory = memoryNow() - before
  if (subject === undefined) throw new Error("the subject was collected")
  const tenth = Math.ceil(times.length / 10)
  return {
    name,
    // The first batches are those in which the code is compiled.
    first: median(times.slice(2, 2 + tenth)),
    last: median(times.slice(-tenth)),
    longest: Math.max(...times.slice(4)),
    memory
  }
}

const costOfData = (attack: DataAttack): Cost => {
  const stage = new Stage()
  const hostile = new Hostile(stage)
  const row = attack.packets(hostile)
  row.next()
  return measure(attack.name, stage, () => {
    const some = Array.from({ length: inBatch }, () => row.next().value as Uint8Array)
    stage.advance(1_000)
    return () => stage.hit(some, hostile.from)
  })
}

const costOfAnswers = (name: string, answers: (besieged: Besieged) => Generator<Uint8Array>): Cost => {
  const besieged = new Besieged()
  const row = answers(besieged)
  row.next()
  return measure(name, besieged, () => {
    const some = Array.from({ length: inBatch }, () => row.next().value as Uint8Array)
    besieged.advance(1_000)
    return () => besieged.hit(some)
  })
}

const show = ({ name, first, last, longest, memory }: Cost, honest: Cost): void => {
  const times = last / honest.last
  const grows = last / first
  const verdict = [
    times > mostTimes ? `DEAR: ${times.toFixed(1)} × an honest one` : "",
    grows > mostTimes ? `GROWS: ${grows.toFixed(1)} ×` : "",
    memory > mostMemory ? "MEMORY" : ""
  ].filter((text) => text !== "")
  if (verdict.length > 0) process.exitCode = 1
  const columns = [first, last, longest].map((value) => value.toFixed(1).padStart(9)).join(" ")
  console.log(
    `${columns} ${(memory / 2 ** 20).toFixed(1).padStart(8)}  ${name}${verdict.length > 0 ? `  ${verdict.join(", ")}` : ""}`
  )
}

console.log("µs/packet: first, last, longest batch; MiB kept")
const chosen = (name: string): boolean => name.includes(flags.only)
const honest = costOfData(dataAttacks[0]!)
show(honest, honest)
for (const attack of dataAttacks.slice(1)) if (chosen(attack.name)) show(costOfData(attack), honest)
const honestAnswers = costOfAnswers(answerAttacks[0]!.name, answerAttacks[0]!.answers)
show(honestAnswers, honestAnswers)
for (const { name, answers } of answerAttacks.slice(1))
  if (chosen(name)) show(costOfAnswers(name, answers), honestAnswers)

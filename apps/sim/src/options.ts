import { type Bytes, type Micros, never } from "@pure-link/wire"
import { parseArgs } from "node:util"
import { flagTable, groups } from "./flags.ts"
import { UsageError } from "./usageError.ts"
import { type Bounds, readNumber, readTuple } from "./values.ts"

/**
 * What a simulation is asked to do: argv → units of the house, every value within its bounds. `flags.ts` has the
 * flags, with what a person reads of them.
 */

export interface SimOptions {
  readonly rateBitsPerSecond: number
  readonly rttMicros: Micros
  readonly jitterMicros: Micros
  /** Probability that the path loses a datagram, forward, and on the way back. */
  readonly loss: number
  readonly answerLoss: number
  /** When random loss ends; never by default. */
  readonly lossUntil: Micros
  readonly burstLoss: BurstLoss | undefined
  readonly duplicate: number
  readonly corrupt: number
  readonly displace: Displacement | undefined
  readonly queueBytes: Bytes
  readonly recordBytes: Bytes
  /** Records of each flow; infinite when the run ends by time. */
  readonly records: number
  /** When the run ends; with `records` at the latest. */
  readonly end: Micros
  readonly skip: Micros
  /** Time between records of a rated flow; 0 when the outbox is kept full. */
  readonly every: Micros
  readonly blackHole: BlackHole | undefined
  readonly delayStep: DelayStep | undefined
  readonly idle: Span | undefined
  readonly blackout: Span | undefined
  readonly flows: number
  readonly tcpFlows: number
  /** When the TCP flows start. */
  readonly join: Micros
  readonly controller: "cubic" | "newreno"
  readonly lossDetection: "adaptive" | "fixed"
  readonly undo: boolean
  readonly tail: "none" | "once"
  readonly pacing: "paced" | "unpaced"
  readonly pathMtu: "discovery" | "without-black-holes" | "fixed"
  readonly seed: number
  readonly json: boolean
  /** Points of the series in the JSON result; 0 for none. */
  readonly series: number
  readonly traceFile: string | undefined
}

export interface BurstLoss {
  readonly enter: number
  readonly leave: number
  readonly loss: number
}

export interface Displacement {
  readonly micros: Micros
  readonly fraction: number
}

export interface BlackHole {
  readonly at: Micros | "growth"
  /** So long after the datagram grew; 0 for a time. */
  readonly after: Micros
  readonly mtu: Bytes
}

export interface Span {
  readonly at: Micros
  readonly duration: Micros
}

export interface DelayStep extends Span {
  readonly rttMicros: Micros
}

const second: Micros = 1_000_000
const millisecond: Micros = 1_000
const fraction: Bounds = { least: 0, most: 1, what: "a fraction from 0 to 1" }
const anyTime: Bounds = { least: 0, most: 86_400, what: "seconds from 0 to 86,400" }
const someTime: Bounds = { ...anyTime, least: 0.001, what: "seconds from 0.001 to 86,400" }
const anyRtt: Bounds = { least: 0.01, most: 60_000, what: "milliseconds from 0.01 to 60,000" }
const wholeTime: Bounds = { least: 0, most: 60_000, what: "milliseconds from 0 to 60,000" }
const anyMtu: Bounds = { least: 100, most: 65_507, whole: true, what: "whole bytes from 100 to 65,507" }

/** What argv says, or `undefined` when it asks for help. Throws a `UsageError` for anything it cannot take. */
export const readOptions = (argv: ReadonlyArray<string>): SimOptions | undefined => {
  const flags = new Flags(argv)
  if (flags.has("help")) return undefined
  const options = { ...readPath(flags), ...readTraffic(flags), ...readEvents(flags), ...readSender(flags) }
  const { traceFile, ...rest } = { ...options, ...readOutput(flags), traceFile: flags.text("trace") }
  check(rest, flags)
  return { ...rest, traceFile }
}

/** The help text. */
export const help = (): string => {
  const lines = groups.flatMap((group) => [
    `${group}:`,
    ...Object.entries(flagTable)
      .filter(([, flag]) => flag.group === group)
      .map(([name, flag]) => `  ${`--${name} ${flag.value ?? ""}`.padEnd(34)}${flag.help}`),
    ""
  ])
  return `usage: npm run --silent sim -- [option …]

Two real endpoints of Pure Link over a virtual path, in virtual time: forward a bottleneck with a drop-tail queue, then
delay, jitter and loss; the way back has delay, jitter and loss, and no bottleneck. The same seed gives the same run.
The last line of --json is one JSON object. Exit 0: done; 1: not all stored in time; 2: bad usage;
3: result or trace cannot be written. docs/measurements/README.md explains every field.

${lines.join("\n").trimEnd()}`
}

const readPath = (flags: Flags) => {
  const rate = flags.number("rate", { least: 0.01, most: 100_000, what: "Mbit/s from 0.01 to 100,000" }, 50)
  const rttMicros = Math.round(flags.number("rtt", anyRtt, 20) * millisecond)
  const oneRtt = Math.ceil(((rate / 8) * rttMicros) as Bytes)
  const loss = flags.number("loss", fraction, 0)
  const burst = flags.tuple("burst-loss", [fraction, fraction, fraction])
  const displace = flags.tuple("displace", [wholeTime, fraction])
  return {
    rateBitsPerSecond: rate * 1e6,
    rttMicros,
    jitterMicros: Math.round(flags.number("jitter", wholeTime, 0) * millisecond),
    loss,
    answerLoss: flags.number("answer-loss", fraction, loss),
    lossUntil: flags.has("loss-until") ? flags.number("loss-until", anyTime, 0) * second : never,
    burstLoss: burst && { enter: burst[0]!, leave: burst[1]!, loss: burst[2]! },
    duplicate: flags.number("duplicate", fraction, 0),
    corrupt: flags.number("corrupt", fraction, 0),
    displace: displace && { micros: displace[0]! * millisecond, fraction: displace[1]! },
    queueBytes: flags.number("queue", { least: 0, most: 1e10, whole: true, what: "whole bytes from 0 to 1e10" }, oneRtt)
  }
}

const readTraffic = (flags: Flags) => {
  const every = flags.number("every", { ...wholeTime, least: 0.01, what: "milliseconds from 0.01 to 60,000" }, 0)
  const timed = flags.has("seconds")
  const records = { least: 1, most: 1e9, whole: true, what: "a whole number from 1 to 1e9" }
  return {
    recordBytes: flags.number(
      "size",
      { least: 0, most: 16_777_216, whole: true, what: "whole bytes from 0 to 16,777,216" },
      1_013
    ),
    records: timed ? Infinity : flags.number("records", records, 30_000),
    end: Math.round(
      timed ? flags.number("seconds", someTime, 0) * second : flags.number("limit", someTime, 3_600) * second
    ),
    skip: Math.round(flags.number("skip", anyTime, 0) * second),
    every: Math.round(every * millisecond),
    flows: flags.number("flows", { least: 1, most: 64, whole: true, what: "a whole number from 1 to 64" }, 1),
    tcpFlows: flags.number("tcp", { least: 0, most: 64, whole: true, what: "a whole number from 0 to 64" }, 0),
    join: Math.round(flags.number("join", anyTime, 0) * second)
  }
}

const readEvents = (flags: Flags) => {
  const step = flags.tuple("delay-step", [anyTime, anyRtt, someTime])
  const span = (name: string): Span | undefined => {
    const found = flags.tuple(name, [anyTime, someTime])
    return found && { at: Math.round(found[0]! * second), duration: Math.round(found[1]! * second) }
  }
  return {
    blackHole: readBlackHole(flags),
    delayStep: step && {
      at: Math.round(step[0]! * second),
      rttMicros: Math.round(step[1]! * millisecond),
      duration: Math.round(step[2]! * second)
    },
    idle: span("idle"),
    blackout: span("blackout")
  }
}

const readBlackHole = (flags: Flags): BlackHole | undefined => {
  const text = flags.text("blackhole-at")
  if (text === undefined) return undefined
  const mtu = flags.number("blackhole-mtu", anyMtu, 1_300)
  const [start, more] = text.split("+")
  if (start !== "growth") return { at: flags.number("blackhole-at", anyTime, 0) * second, after: 0, mtu }
  const after = more === undefined ? 0 : readNumber("--blackhole-at growth+", text.slice("growth+".length), anyTime)
  return { at: "growth", after: Math.round(after * second), mtu }
}

const readSender = (flags: Flags) => {
  const pathMtu = flags.choice("path-mtu", ["discovery", "fixed"], "discovery")
  if (pathMtu === "fixed" && flags.has("no-blackhole-detection")) {
    throw new UsageError("--no-blackhole-detection means nothing with --path-mtu fixed; give one of them")
  }
  return {
    controller: flags.choice("controller", ["cubic", "newreno"], "cubic"),
    lossDetection: flags.choice("loss-detection", ["adaptive", "fixed"], "adaptive"),
    undo: !flags.has("no-undo"),
    tail: flags.choice("tail", ["none", "once"], "none"),
    pacing: flags.choice("pacing", ["paced", "unpaced"], "paced"),
    pathMtu: flags.has("no-blackhole-detection") ? ("without-black-holes" as const) : pathMtu
  }
}

const readOutput = (flags: Flags) => ({
  seed: flags.number("seed", { least: 0, most: 2 ** 32 - 1, whole: true, what: "a whole number below 2^32" }, 1),
  json: flags.has("json"),
  series: flags.number("series", { least: 0, most: 10_000, whole: true, what: "a whole number from 0 to 10,000" }, 0)
})

/** What no single flag shows to be wrong. */
const check = (options: Omit<SimOptions, "traceFile">, flags: Flags): void => {
  const { end, every, idle, jitterMicros, records, rttMicros, skip, tcpFlows } = options
  if (flags.has("records") && flags.has("seconds")) {
    throw new UsageError("--records and --seconds exclude each other; give one of them")
  }
  if (flags.has("limit") && flags.has("seconds")) {
    throw new UsageError("--limit bounds a run of --records; --seconds has its end already")
  }
  if (jitterMicros > rttMicros / 2) {
    throw new UsageError(
      `--jitter ${jitterMicros / millisecond} is more than half of --rtt: it would arrive before it left`
    )
  }
  if (skip >= end) throw new UsageError("--skip leaves nothing of the run to count; give less than --seconds")
  if (flags.has("blackhole-mtu") && !flags.has("blackhole-at")) {
    throw new UsageError("--blackhole-mtu needs --blackhole-at, which says when")
  }
  if (every > 0 && records === Infinity && every >= end) {
    throw new UsageError("--every is longer than the run: no record would be sent")
  }
  if (flags.has("join") && tcpFlows === 0) throw new UsageError("--join needs --tcp, whose flows it lets wait")
  if (idle !== undefined && every > 0) throw new UsageError("--idle is for a drain; --every says its pauses itself")
}

/** The flags of a command line, read once. */
class Flags {
  readonly #values: Readonly<Record<string, string | boolean | undefined>>

  constructor(argv: ReadonlyArray<string>) {
    const options = Object.fromEntries(
      Object.entries(flagTable).map(([name, { value }]) => [
        name,
        { type: value === undefined ? ("boolean" as const) : ("string" as const) }
      ])
    )
    try {
      this.#values = parseArgs({ args: [...argv], options, allowPositionals: false }).values as Record<string, string>
    } catch (error) {
      const message = (error as Error).message
      const negative = /^Option '(--[a-z-]+)' argument is ambiguous/.exec(message)?.[1]
      if (negative !== undefined) throw new UsageError(`${negative} takes no value that begins with a dash`)
      throw new UsageError(message.split(/\. |\n/)[0]!.replaceAll("'", ""))
    }
  }

  has(name: string): boolean {
    return this.#values[name] !== undefined
  }

  text(name: string): string | undefined {
    return this.#values[name] as string | undefined
  }

  number(name: string, bounds: Bounds, byDefault: number): number {
    const text = this.text(name)
    return text === undefined ? byDefault : readNumber(`--${name}`, text, bounds)
  }

  tuple(name: string, bounds: ReadonlyArray<Bounds>): ReadonlyArray<number> | undefined {
    const text = this.text(name)
    return text === undefined ? undefined : readTuple(`--${name} ${flagTable[name]!.value!}`, text, bounds)
  }

  choice<A extends string>(name: string, choices: ReadonlyArray<A>, byDefault: A): A {
    const text = this.text(name)
    if (text === undefined) return byDefault
    const chosen = choices.find((choice) => choice === text)
    if (chosen === undefined) throw new UsageError(`--${name} takes ${choices.join(" or ")}, not "${text}"`)
    return chosen
  }
}

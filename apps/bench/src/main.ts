import { type Command, ExitCode, printLine } from "./command.ts"
import { allocations } from "./commands/allocations.ts"
import { cpu } from "./commands/cpu.ts"
import { fill } from "./commands/fill.ts"
import { floor } from "./commands/floor.ts"
import { flood } from "./commands/flood.ts"
import { floodTest } from "./commands/floodTest.ts"
import { memory } from "./commands/memory.ts"
import { realPath } from "./commands/realPath.ts"
import { recv } from "./commands/recv.ts"
import { send } from "./commands/send.ts"
import { EndFailed } from "./ends/endProcess.ts"
import { flagHelp, readFlags } from "./flags.ts"
import { UsageError } from "./usageError.ts"

/** `bench` as a person or a script meets it: which command, what it prints when it cannot, and its exit code. */

const commands: Readonly<Record<string, Command>> = {
  cpu,
  recv,
  send,
  memory,
  fill,
  allocations,
  floor,
  flood,
  "flood-test": floodTest,
  "real-path": realPath
}

export const main = async (argv: ReadonlyArray<string>): Promise<number> => {
  try {
    const [name, ...rest] = argv
    if (name === undefined || name === "--help" || name === "help") {
      process.stdout.write(overview())
      return name === undefined ? ExitCode.badUsage : ExitCode.done
    }
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined
    if (command === undefined) throw new UsageError(`there is no command "${name}"`)
    if (rest.includes("--help")) {
      process.stdout.write(helpOf(name, command))
      return ExitCode.done
    }
    return await command.prepare(readFlags(command.flags, rest))()
  } catch (error) {
    return failure(error, argv)
  }
}

const failure = (error: unknown, argv: ReadonlyArray<string>): number => {
  if (!(error instanceof UsageError || error instanceof EndFailed || isTagged(error))) throw error
  const exit = error instanceof EndFailed ? ExitCode.failed : ExitCode.badUsage
  const hint = error instanceof UsageError ? "; see --help" : ""
  process.stderr.write(`bench: ${error.message}${hint}\n`)
  if (argv.includes("--json")) printLine({ event: "failed", exit, message: error.message })
  return exit
}

/** Typed errors of the rooms say what to do, such as a port that is taken. */
const isTagged = (error: unknown): error is Error => error instanceof Error && "_tag" in error

const overview = (): string =>
  "bench: measures two processes of the real link on real sockets (docs/bench.md)\n\n" +
  Object.entries(commands)
    .map(([name, { summary }]) => `  bench ${name.padEnd(12)} ${summary}\n`)
    .join("") +
  "\nbench COMMAND --help lists its flags. Each command ends with one line of JSON. The ends use fixed key pairs that\n" +
  "everybody knows: never for real data.\n"

const helpOf = (name: string, { flags, notes, summary }: Command): string =>
  `bench ${name}: ${summary}\n\n${flagHelp(flags)}\n${notes === undefined ? "" : `\n${notes}\n`}`

import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { execFileSync, spawnSync } from "node:child_process"
import { cpSync, chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { untilExit } from "./child.ts"
import { UsageError } from "../usageError.ts"

/**
 * The emulator and its TCP peer, built in a copy of their folder that is removed at the end.
 */

export interface Tools {
  readonly folder: string
  readonly emulator: string
  readonly peer: string
}

/** Fails with what is missing: none of it can be had without. */
export const checkMachine = (folder: string): void => {
  const why = missing(folder)
  if (why !== undefined) throw new UsageError(why)
}

const missing = (folder: string): string | undefined => {
  if (process.platform !== "linux" || process.getuid?.() !== 0)
    return "real-path needs root on Linux: it makes network namespaces"
  if (!existsSync("/dev/net/tun")) return "real-path needs /dev/net/tun"
  if (!has("ip", "-V")) return "real-path needs ip (iproute2)"
  if (!has("g++", "--version")) return "real-path needs g++: it builds the emulator"
  const sources = ["pathemu.cc", "nettool.cc"]
  const absent = sources.find((source) => !existsSync(join(folder, source)))
  return absent === undefined ? undefined : `--path ${folder} has no ${absent}`
}

const has = (program: string, argument: string): boolean => spawnSync(program, [argument]).error === undefined

export const buildTools = (from: string): Effect.Effect<Tools, UsageError, Scope.Scope> =>
  Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "pure-link-path-"))),
      (folder) => Effect.sync(() => remove(folder))
    )
    yield* untilExit(() => remove(folder))
    return yield* Effect.try({ try: () => build(from, folder), catch: cannotBuild })
  })

const remove = (folder: string): void => rmSync(folder, { recursive: true, force: true })

const build = (from: string, folder: string): Tools => {
  for (const name of readdirSync(from).filter((name) => name.endsWith(".cc"))) {
    cpSync(join(from, name), join(folder, name))
    chmodSync(join(folder, name), 0o644)
  }
  return { folder, emulator: compile(folder, "pathemu"), peer: compile(folder, "nettool") }
}

const compile = (folder: string, name: string): string => {
  const program = join(folder, name)
  execFileSync("g++", ["-std=c++17", "-O2", "-w", "-o", program, `${program}.cc`, "-lpthread"], { stdio: "pipe" })
  return program
}

const cannotBuild = (error: unknown): UsageError =>
  new UsageError(`the emulator cannot be built: ${(error as Error).message.split("\n")[0]}`)

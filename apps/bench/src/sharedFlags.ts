import { longestRecord } from "@pure-link/wire"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import type { Bounds, FlagTable, GivenFlags } from "./flags.ts"
import type { Platform } from "./platform.ts"
import { UsageError } from "./usageError.ts"

/** Flags that several commands have, and what they mean. */

export const platformFlags = {
  store: { value: "KIND", help: "memory or sqlite, at both ends (memory)" },
  dir: { value: "FOLDER", help: "where the files of --store sqlite go, removed at the end (the system's temporary)" },
  fallback: { help: "node:dgram and node:crypto instead of the native code" }
} satisfies FlagTable

export const jsonFlag = { json: { help: "what is wrong is told as a line of JSON too; the result always is one" } }

export const sizeBounds: Bounds = { least: 0, most: longestRecord, whole: true }
export const countBounds: Bounds = { least: 1, most: 1e12, whole: true }
export const secondsBounds: Bounds = { least: 0.05, most: 86_400 }
/** Mbit/s. */
export const rateBounds: Bounds = { least: 0.1, most: 1_000_000 }
export const portBounds: Bounds = { least: 1, most: 65_535, whole: true }

/** What a command is to run on, but for the folder of its files. */
export interface PlatformChoice {
  readonly fallback: boolean
  readonly store: "memory" | "sqlite"
  readonly parent: string
}

export const readPlatform = (given: GivenFlags): PlatformChoice => {
  const store = given.oneOf("store", ["memory", "sqlite"]) ?? "memory"
  if (given.has("dir") && store === "memory") throw new UsageError("--dir is for --store sqlite")
  return { fallback: given.has("fallback"), store, parent: resolve(given.text("dir") ?? tmpdir()) }
}

/** What is said to a command that runs both ends on loopback for a time. */
export interface PairOptions {
  readonly size: number
  readonly seconds: number
  readonly platform: PlatformChoice
}

export const pairFlags = (seconds: number, meaning: string) =>
  ({
    size: { value: "BYTES", help: "of every record (1,013)" },
    seconds: { value: "S", help: `${meaning} (${seconds})` },
    ...platformFlags,
    ...jsonFlag
  }) satisfies FlagTable

export const readPair = (given: GivenFlags, seconds: number): PairOptions => ({
  size: given.number("size", sizeBounds) ?? 1_013,
  seconds: given.number("seconds", secondsBounds) ?? seconds,
  platform: readPlatform(given)
})

/** Runs with a fresh folder for files, removed afterwards. */
export const withFolder = async <A>(
  { fallback, parent, store }: PlatformChoice,
  body: (platform: Platform) => Promise<A>
): Promise<A> => {
  if (store === "memory") return body({ fallback, store, folder: parent })
  const folder = newFolder(parent)
  const remove = () => rmSync(folder, { recursive: true, force: true })
  process.on("exit", remove)
  try {
    return await body({ fallback, store, folder })
  } finally {
    process.off("exit", remove)
    remove()
  }
}

const newFolder = (parent: string): string => {
  try {
    mkdirSync(parent, { recursive: true })
    return mkdtempSync(join(parent, "pure-link-bench-"))
  } catch (error) {
    throw new UsageError(`no folder can be made in ${parent} (${(error as NodeJS.ErrnoException).code}); give --dir`)
  }
}

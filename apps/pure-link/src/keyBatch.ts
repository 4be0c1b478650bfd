/**
 * Key pairs in bulk: numbered secret key files in one directory. All are on disk before the first public key is printed,
 * and none is written where a file of that name exists.
 */
import { type KeyPair, formatKeyFile } from "@pure-link/keys"
import * as Effect from "effect/Effect"
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readdirSync, unlinkSync, writeSync } from "node:fs"
import { open } from "node:fs/promises"
import { dirname, join, resolve } from "node:path"
import { badInput, type Failure } from "./failure.ts"

/** A key pair with the name that its file has without `.key`, which may be its source's name too. */
export interface NamedKeys {
  readonly name: string
  readonly file: string
  readonly keys: KeyPair
}

const fewestDigits = 4
/** Files that are brought to disk at once. */
const atOnce = 64

/** `node-0001`, `node-0002`, …: as many digits as the last needs, at least four. */
export const numberedNames = (prefix: string, count: number): Array<string> => {
  const digits = Math.max(fewestDigits, String(count).length)
  return Array.from({ length: count }, (_, index) => `${prefix}-${String(index + 1).padStart(digits, "0")}`)
}

/** Writes a key file for each name, with mode 0600, into a directory that is made if it does not exist. */
export const writeKeyBatch = (
  directory: string,
  names: ReadonlyArray<string>,
  makeKeys: () => KeyPair
): Effect.Effect<ReadonlyArray<NamedKeys>, Failure> =>
  Effect.gen(function* () {
    const present = yield* Effect.try({
      try: () => filesIn(directory),
      catch: (cause) => cannotWrite(directory, cause)
    })
    const taken = names.find((name) => present.has(`${name}.key`))
    if (taken !== undefined) {
      return yield* Effect.fail(
        badInput(
          `${join(directory, `${taken}.key`)} exists and is kept, and nothing was written; ` +
            "give another --directory or --name"
        )
      )
    }
    const made = names.map((name) => ({ name, file: join(directory, `${name}.key`), keys: makeKeys() }))
    yield* Effect.tryPromise({ try: () => writeAll(directory, made), catch: (cause) => cannotWrite(directory, cause) })
    return made
  })

const filesIn = (directory: string): Set<string> => {
  makeDirectory(resolve(directory))
  return new Set(readdirSync(directory))
}

/** Level by level: a recursive `mkdirSync` never ends where the system makes no directories, as in /proc. */
const makeDirectory = (path: string): void => {
  if (existsSync(path)) return
  makeDirectory(dirname(path))
  mkdirSync(path, { mode: 0o700 })
}

/** Written at once and synced afterwards, in which the disk finds most of them done already. */
const writeAll = async (directory: string, made: ReadonlyArray<NamedKeys>): Promise<void> => {
  let written = 0
  try {
    for (const { file, keys } of made) {
      const descriptor = openSync(file, "wx", 0o600)
      written += 1
      try {
        writeSync(descriptor, formatKeyFile(keys))
      } finally {
        closeSync(descriptor)
      }
    }
  } catch (cause) {
    // Nobody was told of these keys: without them the next try finds the names free.
    for (const { file } of made.slice(0, written)) unlinkSync(file)
    throw cause
  }
  for (let from = 0; from < made.length; from += atOnce) {
    await Promise.all(made.slice(from, from + atOnce).map(({ file }) => sync(file)))
  }
  const folder = openSync(directory, "r")
  fsyncSync(folder)
  closeSync(folder)
}

const sync = async (file: string): Promise<void> => {
  const handle = await open(file, "r+")
  await handle.sync()
  await handle.close()
}

const cannotWrite = (directory: string, cause: unknown): Failure => {
  const { code } = cause as NodeJS.ErrnoException
  return badInput(
    `cannot write key files into ${directory} (${code ?? String(cause)}), and none was kept; ` +
      (code === "ENOSPC" || code === "EDQUOT"
        ? "make room on the disk, or choose another one with --directory"
        : "choose a directory that you may write to with --directory")
  )
}

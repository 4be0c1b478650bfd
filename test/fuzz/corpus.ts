import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/** The kept inputs of a target: one per line in Base64, the shortest first, so that a change of one is one line. */

const fileOf = (target: string): string => join(import.meta.dirname, "corpus", `${target}.txt`)

export const loadCorpus = (target: string): ReadonlyArray<Uint8Array> =>
  existsSync(fileOf(target))
    ? readFileSync(fileOf(target), "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => new Uint8Array(Buffer.from(line, "base64")))
    : []

export const saveCorpus = (target: string, inputs: ReadonlyArray<Uint8Array>): void => {
  const lines = inputs.map((input) => Buffer.from(input).toString("base64"))
  lines.sort((a, b) => a.length - b.length || (a < b ? -1 : 1))
  mkdirSync(join(import.meta.dirname, "corpus"), { recursive: true })
  writeFileSync(fileOf(target), lines.map((line) => `${line}\n`).join(""))
}

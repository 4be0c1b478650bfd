import { createHash } from "node:crypto"
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"

/**
 * Names the code that a run is made of: a digest of all that runs in it, without tests. This folder is no part of it:
 * what it asks of a run stands in the raw result.
 */

const root = join(import.meta.dirname, "../../../..")
const sources = ["packages/*/src/**/*.ts", "apps/sim/src/**/*.ts"]
const digits = 12

export const codeDigest = (under = root): string => {
  const hash = createHash("sha256")
  const files = sources.flatMap((pattern) => globSync(pattern, { cwd: under }))
  for (const file of files.filter(isRun).toSorted())
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(under, file)))
      .update("\0")
  return hash.digest("hex").slice(0, digits)
}

const isRun = (file: string): boolean => !file.endsWith(".test.ts") && !file.startsWith("apps/sim/src/measure/")

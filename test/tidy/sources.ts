/**
 * The tree as data, for the rules that are ordinary tests: every source file of every room, with what it imports.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"

export const root = join(import.meta.dirname, "../..")

export interface Source {
  /** Path from the root of the repository. */
  readonly path: string
  /** `packages/wire` → `wire`; `apps/pure-link` → `pure-link`; else the top-level folder. */
  readonly room: string
  readonly isTest: boolean
  readonly text: string
  /** Module specifiers of all imports and re-exports. */
  readonly imports: ReadonlyArray<string>
}

const skipped = new Set(["node_modules", "dist", "build", ".git"])

const filesUnder = (folder: string): Array<string> =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (skipped.has(entry.name)) return []
    const path = join(folder, entry.name)
    return entry.isDirectory() ? filesUnder(path) : [path]
  })

const importsOf = (text: string): Array<string> =>
  [
    ...text.matchAll(
      /(?:^|\n)\s*(?:import|export)\b[^"'`;]*?from\s+"([^"]+)"|import\("([^"]+)"\)|(?:^|\n)import\s+"([^"]+)"/g
    )
  ].map((match) => match[1] ?? match[2] ?? match[3]!)

const roomOf = (path: string): string => {
  const [top, second] = path.split("/") as [string, string]
  return top === "packages" || top === "apps" ? second : top
}

const read = (path: string): Source => {
  const text = readFileSync(path, "utf8")
  const short = relative(root, path)
  const isTest = /\.test\.ts$|\/test\/|^test\/|\/contract\/|\/examples\//.test(short)
  return { path: short, room: roomOf(short), isTest, text, imports: importsOf(text) }
}

/** All TypeScript of the repository. */
export const sources: ReadonlyArray<Source> = ["packages", "apps", "native", "test"]
  .flatMap((folder) => filesUnder(join(root, folder)))
  .filter((path) => path.endsWith(".ts"))
  .map(read)

/** The C++ of the addon, and the JavaScript that builds and loads it. */
export const nativeSources: ReadonlyArray<{ readonly path: string; readonly text: string }> = filesUnder(
  join(root, "native")
)
  .filter((path) => /\.(cc|h|mjs|js)$/.test(path))
  .map((path) => ({ path: relative(root, path), text: readFileSync(path, "utf8") }))

/** All Markdown below docs, and the README. */
export const documents: ReadonlyArray<{ readonly path: string; readonly text: string }> = [
  join(root, "README.md"),
  ...filesUnder(join(root, "docs")).filter((path) => path.endsWith(".md"))
].map((path) => ({ path: relative(root, path), text: readFileSync(path, "utf8") }))

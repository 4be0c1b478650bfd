import { type Addon, load } from "@pure-link/native"
import { execFileSync } from "node:child_process"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"

/**
 * The test build of the addon, whose system calls fail when a test says so. It is built when first needed; the sanitizer
 * build, given by `PURE_LINK_NATIVE`, can do the same.
 */
export type FaultyAddon = Addon & Required<Pick<Addon, "injectFault" | "clearFaults">>

export const faultyAddon = (): { readonly addon: FaultyAddon; readonly path: string } => {
  const { addon, path: given } = load()
  if (addon?.injectFault !== undefined) return { addon: addon as FaultyAddon, path: given! }
  const require = createRequire(import.meta.url)
  const room = dirname(require.resolve("@pure-link/native"))
  execFileSync(process.execPath, [join(room, "build.mjs"), "--faults"], { stdio: "pipe" })
  const path = join(room, "build/faults/pure_link.node")
  return { addon: require(path) as FaultyAddon, path }
}

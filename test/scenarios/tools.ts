/**
 * System tools that some scenarios need. On a machine without them these scenarios are skipped, with a word; in CI they
 * must be there (.ci/run installs them), so that a skip can never hide a failure there.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const works = (command: string, args: ReadonlyArray<string>): boolean => {
  const tried = spawnSync(command, args, { stdio: "ignore" })
  return tried.status === 0
}

const judge = (tool: string, present: boolean): boolean => {
  if (present) return true
  if (process.env["CI"] === "true") throw new Error(`CI needs ${tool}; .ci/run installs it`)
  console.warn(`skipped: needs ${tool}`)
  return false
}

/** `strace` may trace a child of ours. */
export const canTrace = (): boolean => judge("strace", works("strace", ["-o", "/dev/null", "true"]))

/** We may mount a small file system of our own. */
export const canMount = (): boolean => {
  const folder = mkdtempSync(join(tmpdir(), "pure-link-mount-"))
  const present = works("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", folder])
  if (present) works("umount", [folder])
  rmSync(folder, { recursive: true })
  return judge("mount as root", present)
}

/** We may make and remove network namespaces. */
export const canMakeNamespaces = (): boolean => {
  const name = `pltest-${process.pid}`
  const present = works("ip", ["netns", "add", name])
  if (present) works("ip", ["netns", "del", name])
  return judge("ip netns as root", present)
}

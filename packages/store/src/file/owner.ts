import { basename, dirname, join } from "node:path"
import { realpathSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { failureOf, fail } from "./failure.ts"

/**
 * One owner per file. The right to write is an exclusive SQLite transaction on an empty file beside it, `<file>.owner`,
 * held as long as the file is open: the kernel ends it with the process, however that dies, and no stale lock can be
 * left. Readers do not touch it. Nobody may open the sidecar by other means: closing any descriptor of it would release
 * the lock (POSIX).
 */

/** How long a dying former owner is waited for. */
const patienceMillis = 250

/** The file's one true path, so that two links to it meet at one sidecar. */
export const truePath = (file: string): string => {
  try {
    return realpathSync(file)
  } catch {
    return join(realpathSync(dirname(file)), basename(file))
  }
}

/**
 * Takes the file for this process, or fails; `describeHolder` finds words for who has it. Close the result to release
 * it.
 */
export const takeOwnership = (path: string, describeHolder: () => string): DatabaseSync => {
  const owner = new DatabaseSync(`${path}.owner`, { timeout: patienceMillis })
  try {
    owner.exec("PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE") // no journal: a full disk has no room for one
    return owner
  } catch (cause) {
    owner.close()
    if (failureOf(cause).reason !== "locked") throw cause
    return fail(
      "locked",
      `${describeHolder()} owns the file`,
      "stop it, or give this process a file of its own; to look into the file, open it read-only"
    )
  }
}

import { statSync } from "node:fs"
import { fail, FileFailure } from "./failure.ts"

/**
 * Whether the paths of a database still lead to what was opened. Ownership stands on names (the file, its sidecar
 * `.owner`, its write-ahead log): a second name of the file, or a name taken away, would give one file two owners.
 * Nothing is opened for this, because closing a descriptor of a file releases SQLite's locks on it (POSIX).
 */

/** Refuses what cannot be a store's file, before anything is made beside it. */
export const judgePath = (path: string): void => {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isFile()) fail("permission", "this is a folder or a device, not a file", "name a file")
  if (found.nlink > 1) {
    fail(
      "locked",
      `the file has ${found.nlink} names (hard links), and under another one it could get a second owner`,
      `keep one name: find the others with \`find FOLDER -samefile ${path}\` and remove them, or copy the file`
    )
  }
}

/** What a path leads to: its device and inode. */
const identityOf = (path: string): string | undefined => {
  const found = statSync(path, { throwIfNoEntry: false, bigint: true })
  return found && `${found.dev}:${found.ino}`
}

export class PathWatch {
  readonly #opened: ReadonlyArray<readonly [path: string, identity: string]>
  #lost: FileFailure | undefined

  /** Remembers what the paths of a database that is open lead to. */
  constructor(path: string) {
    this.#opened = [path, `${path}.owner`, `${path}-wal`].flatMap((name) => {
      const identity = identityOf(name)
      return identity === undefined ? [] : [[name, identity] as const]
    })
  }

  /** Whether they lead there still; once they did not, never again. */
  get isSame(): boolean {
    for (const [name, identity] of this.#opened) {
      if (this.#lost !== undefined) break
      if (identityOf(name) !== identity) this.#lost = lost(name)
    }
    return this.#lost === undefined
  }

  /** Fails, and for ever after, when a path leads elsewhere: another process may own the file by now. */
  check(): void {
    if (!this.isSame) throw this.#lost
  }
}

const lost = (name: string): FileFailure =>
  new FileFailure({
    reason: "locked",
    detail: `${name} was removed, renamed or replaced while it was in use; another process may own the file by now`,
    remedy: "nothing more is written: end all processes that use the file, put its files back, and start again",
    isFinal: true
  })

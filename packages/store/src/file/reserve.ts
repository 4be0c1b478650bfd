import { existsSync, rmSync, writeFileSync } from "node:fs"

/**
 * Room kept beside a database for the day on which the disk is full: even a transaction that removes records, and even
 * the opening of the file, needs some for SQLite's log and its index. Best effort, for a disk has no better to offer.
 */
const reserveBytes = 4 * 1_048_576

export class Reserve {
  readonly #path: string
  /** The room was given away since the file was opened, and is not back. */
  isLent = false

  constructor(path: string) {
    this.#path = `${path}.reserve`
  }

  /** Gives the room to what makes more of it; false when there is none. */
  lend(): boolean {
    if (!existsSync(this.#path)) return false
    rmSync(this.#path, { force: true })
    return (this.isLent = true)
  }

  /** Takes the room, all of it or nothing; says whether it is there. */
  claim(): boolean {
    if (existsSync(this.#path)) return true
    try {
      writeFileSync(this.#path, new Uint8Array(reserveBytes))
      this.isLent = false
      return true
    } catch {
      rmSync(this.#path, { force: true })
      return false
    }
  }
}

import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  writeSync
} from "node:fs"
import { truePath } from "../file/owner.ts"
import { judgePath } from "../file/paths.ts"

/** What a memo does with a file: the few calls of the system that may fail, so that tests can let them. */
export interface RawFile {
  /** Reads from a position on, as far as the file goes; returns how many bytes. */
  read(bytes: Uint8Array, position: number): number
  /** Writes at a position; returns how many bytes. */
  write(bytes: Uint8Array, position: number): number
  size(): number
  truncate(length: number): void
  /** Lets nobody but the owner read it. */
  protect(): void
  sync(): void
  close(): void
}

/** Opens a file for reading and writing, or makes it; throws for what is no file. */
export const openRawFile = (name: string): RawFile => {
  const path = truePath(name)
  judgePath(path)
  let opened: number | undefined = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600)
  /** Once closed, the number may be another file's. */
  const file = (): number => {
    if (opened === undefined) throw new Error("the memo is closed")
    return opened
  }
  return {
    read: (bytes, position) => {
      let length = 0
      while (length < bytes.length) {
        const more = readSync(file(), bytes, length, bytes.length - length, position + length)
        if (more === 0) break
        length += more
      }
      return length
    },
    write: (bytes, position) => writeSync(file(), bytes, 0, bytes.length, position),
    size: () => fstatSync(file()).size,
    truncate: (length) => ftruncateSync(file(), length),
    protect: () => {
      if ((fstatSync(file()).mode & 0o777) !== 0o600) fchmodSync(file(), 0o600)
    },
    sync: () => fsyncSync(file()),
    close: () => {
      closeSync(file())
      opened = undefined
    }
  }
}

import type { InboxPlace, MemoPlace, OutboxPlace } from "@pure-link/ports/contract"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import {
  InboxMemory,
  InboxSqlite,
  makeMemoMemory,
  MemoFile,
  type MemoInMemory,
  MemoMemory,
  OutboxMemory,
  OutboxSqlite,
  storeCounters
} from "../src/index.ts"

/** Places for the contract suites: in memory, and files in a folder that goes with the test. */

/** A folder that is removed when the scope ends. */
export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "pure-link-store-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** Copies a database that nobody has open, without its owner's sidecar. */
export const copyFile = (file: string, to: string): void => {
  for (const suffix of ["", "-wal", "-shm"]) if (existsSync(file + suffix)) cpSync(file + suffix, to + suffix)
}

/** A disk whose transactions others have to wait for. */
export const slowDisk = { beforeCommit: Effect.yieldNow }

export const outboxInMemory = (
  disk: Partial<typeof slowDisk> = {},
  backing = new OutboxMemory.Backing()
): OutboxPlace => {
  const counters = storeCounters()
  return {
    layer: (options) => OutboxMemory.layer({ ...options, ...disk, backing, counters }),
    copy: Effect.sync(() => outboxInMemory(disk, backing.copy())),
    transactions: () => counters.transactions,
    isImmediate: disk.beforeCommit === undefined
  }
}

export const outboxInFile = (file: string): OutboxPlace => {
  const counters = storeCounters()
  return {
    layer: (options) => OutboxSqlite.layer({ ...options, file, counters }),
    copy: Effect.sync(() => {
      copyFile(file, `${file}.copy`)
      return outboxInFile(`${file}.copy`)
    }),
    transactions: () => counters.transactions
  }
}

export const inboxInMemory = (disk: Partial<typeof slowDisk> = {}, backing = new InboxMemory.Backing()): InboxPlace => {
  const counters = storeCounters()
  return {
    layer: () => InboxMemory.layer({ ...disk, backing, counters }),
    transactions: () => counters.transactions,
    isImmediate: disk.beforeCommit === undefined
  }
}

export const inboxInFile = (file: string): InboxPlace => {
  const counters = storeCounters()
  return { layer: () => InboxSqlite.layer({ file, counters }), transactions: () => counters.transactions }
}

/** Each opening reads what the one before left, as a restart reads a file. */
export const memoInMemory = (): MemoPlace => {
  let memory: MemoInMemory | undefined
  return {
    layer: (capacity) =>
      Layer.suspend(() => {
        memory = memory?.copy() ?? makeMemoMemory(capacity)
        return MemoMemory.layer({ memory })
      }),
    bytes: () => memory!.bytes()
  }
}

export const memoKey = new Uint8Array(32).fill(9)

export const memoInFile = (file: string): MemoPlace => ({
  layer: (capacity) => MemoFile.layer({ ...capacity, file, publicKey: memoKey }),
  bytes: () => readFileSync(file)
})

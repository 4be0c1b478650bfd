import { LinkNode, StreamType } from "@pure-link/link"
import { Cryptography, Entropy } from "@pure-link/ports"
import { Policies } from "@pure-link/recovery"
import { InboxMemory, InboxSqlite, OutboxMemory, OutboxSqlite } from "@pure-link/store"
import { CryptographySystem, DatagramSocketNode, DatagramSocketSystem } from "@pure-link/udp"
import * as Layer from "effect/Layer"
import { join } from "node:path"

/**
 * What both ends are made of: the layers of a production node, or with `fallback` those that need no native code; stores
 * in memory or in files.
 */

export interface Platform {
  /** Without native code, as on a machine where it cannot be built. */
  readonly fallback: boolean
  readonly store: "memory" | "sqlite"
  /** Where files go; needed for `sqlite`. */
  readonly folder: string
}

export const stream = StreamType.bytes("bench", "bench records")
export const source = "bench"

const outboxName = "bench.outbox"
const inboxName = "bench.inbox"

/** The file of an end's store, and its log beside it. */
export const storeFiles = ({ folder, store }: Platform, end: "send" | "recv"): ReadonlyArray<string> => {
  const file = join(folder, end === "send" ? outboxName : inboxName)
  return store === "memory" ? [] : [file, `${file}-wal`]
}

export const systemLayer = ({ fallback }: Pick<Platform, "fallback">) =>
  Layer.mergeAll(
    fallback ? Cryptography.layerNode : CryptographySystem.layer,
    fallback ? DatagramSocketNode.layer : DatagramSocketSystem.layer,
    Entropy.layerSystem,
    Policies.layerDefault
  )

export const outboxLayer = (platform: Platform, limitBytes: number) => {
  const options = { stream: { source, input: stream.input, shape: stream.shape }, limitBytes }
  return platform.store === "memory"
    ? OutboxMemory.layer(options)
    : OutboxSqlite.layer({ ...options, file: join(platform.folder, outboxName) })
}

export const inboxLayer = (platform: Platform) =>
  platform.store === "memory" ? InboxMemory.layer() : InboxSqlite.layer({ file: join(platform.folder, inboxName) })

export const nodeLayer = LinkNode.layer

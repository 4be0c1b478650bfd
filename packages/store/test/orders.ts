import { Inbox } from "@pure-link/ports"
import * as Effect from "effect/Effect"
import { join } from "node:path"
import { InboxSqlite } from "../src/index.ts"
import { temporaryFolder } from "./places.ts"

/** Records of one small stream, and the stores that they go to. */

export const stream = { source: "shop", input: "orders", shape: 1n }

export const records = (count: number, size: number) => ({
  bytes: new Uint8Array(count * size).fill(7),
  sizes: new Uint32Array(count).fill(size)
})

/** `count` records of one byte each, from number `first` on. */
export const intent = (first: number, count = 1) => ({
  source: "shop",
  input: "orders",
  generation: 1n,
  lives: [{ life: 7n, first: 1 }],
  batch: { first, ...records(count, 1) }
})

export const newFile = Effect.map(temporaryFolder, (folder) => join(folder, "store"))

export const withInbox = <A, E>(file: string, body: (inbox: Inbox["Service"]) => Effect.Effect<A, E>) =>
  Effect.provide(Effect.flatMap(Inbox, body), InboxSqlite.layer({ file }))

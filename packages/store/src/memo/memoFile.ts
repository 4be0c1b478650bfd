import { formatPublicKey } from "@pure-link/keys"
import { readUint32, writeUint32 } from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import { hash } from "node:crypto"
import { fail } from "../file/failure.ts"
import type { RawFile } from "./rawFile.ts"
import { slotLength } from "./slot.ts"
import { SlotFile } from "./slotFile.ts"
import { SlotTable } from "./slotTable.ts"
import { firstPeerPlace } from "./storage.ts"

/**
 * A memo's file (spec §12.1): a header in place 0, then its slots. Every write is one synchronous pwrite of one slot: from
 * its return on the bytes are the kernel's, and SIGKILL cannot take them back. Slots are not synced: a power cut may cost
 * peers a LOST and a fresh run each, which is less than a sync before every ACCEPT would cost, and a slot that reached the
 * disk in part reads as empty. A file that holds something else than a memo is never touched.
 *
 * Header: magic 8, version 4, peers 4, own public key 32, zeros, and the first 16 B of the SHA-256 of all before them.
 */
export interface MemoFileOptions {
  readonly publicKey: Uint8Array
  readonly peers: number
  readonly sideRuns: number
}

/** An open memo, and why what was there could not be used. */
export interface OpenMemoFile {
  readonly table: SlotTable
  readonly rebuilt: string | undefined
}

const magic = Uint8Array.of(0x89, 0x50, 0x4c, 0x6d, 0x65, 0x6d, 0x6f, 0x0a) // \x89 PLmemo \n
const version = 1
const at = { version: 8, peers: 12, publicKey: 16, digest: slotLength - 16 } as const

/** Makes a memo of what the file holds, or of nothing if that is a memo that cannot be used; throws for all else. */
export const openMemoFile = (file: RawFile, options: MemoFileOptions): OpenMemoFile => {
  const { peers, publicKey, sideRuns } = options
  assert(publicKey.length === 32, "a public key has 32 B")
  const found = examine(file, publicKey)
  file.protect()
  if (found._tag === "useless") file.truncate(0)
  const storage = new SlotFile(file, headerOf(publicKey, peers), found._tag === "memo")
  const table = new SlotTable(storage, { peers, sideRuns, owner: publicKey })
  if (found._tag !== "memo" || found.peers !== peers) storage.end(firstPeerPlace + peers)
  if (found._tag === "useless") return { table, rebuilt: `the memo was made anew: ${found.why}` }
  if (table.forgotten === 0) return { table, rebuilt: undefined }
  return { table, rebuilt: `the memo has room for ${peers} peers now and forgot ${table.forgotten} of those it held` }
}

type Found =
  | { readonly _tag: "nothing" }
  | { readonly _tag: "memo"; readonly peers: number }
  | { readonly _tag: "useless"; readonly why: string }

/** Tells a memo of this node from one that is of no use, and fails for what is no memo. */
const examine = (file: RawFile, publicKey: Uint8Array): Found => {
  const header = new Uint8Array(slotLength)
  const length = file.read(header, 0)
  if (length === 0) return { _tag: "nothing" }
  if (!isMemo(header.subarray(0, length))) {
    return fail(
      "unreadable",
      "the file is no memo of Pure Link",
      "name another file for the memo, or move this one away"
    )
  }
  const useless = (why: string): Found => ({ _tag: "useless", why })
  if (length < slotLength) return useless("it was cut off within its header")
  const foundVersion = readUint32(header, at.version)
  if (foundVersion !== version) return useless(`it is of version ${foundVersion}, and this program knows ${version}`)
  if (digestOf(header).compare(header, at.digest) !== 0) return useless("its header is damaged")
  const owner = header.subarray(at.publicKey, at.publicKey + 32)
  if (Buffer.compare(owner, publicKey) !== 0) {
    return useless(`it is of the node with public key ${formatPublicKey(owner)}, not of this one`)
  }
  return { _tag: "memo", peers: readUint32(header, at.peers) }
}

/** Whether it begins as memos do, as far as it goes; or is the zeros that a power cut may leave of a fresh header. */
const isMemo = (start: Uint8Array): boolean =>
  Buffer.compare(start.subarray(0, magic.length), magic.subarray(0, start.length)) === 0 ||
  (start.length < slotLength && start.every((byte) => byte === 0))

const headerOf = (publicKey: Uint8Array, peers: number): Uint8Array => {
  const header = new Uint8Array(slotLength)
  header.set(magic)
  writeUint32(header, at.version, version)
  writeUint32(header, at.peers, peers)
  header.set(publicKey, at.publicKey)
  header.set(digestOf(header), at.digest)
  return header
}

const digestOf = (header: Uint8Array): Buffer => hash("sha256", header.subarray(0, at.digest), "buffer").subarray(0, 16)

import type { Receiver } from "@pure-link/receiver"

/**
 * Everything that a receiver is, as one text: all fields of all objects below it, but for what a packet without effect may
 * change, which is named here. Two equal texts are one state.
 */

/** What a packet may change all the same: scratch of the packet path, caches, and buckets of what strangers may cause. */
const apart: Readonly<Record<string, ReadonlyArray<string>>> = {
  Receiver: ["packet", "now", "target", "admission", "lost"],
  Outgoing: ["target", "lost"],
  BodyReader: ["cursor", "reader", "admission"],
  Peer: ["secret", "isRefused", "isRecalled", "lost", "lostToldAt", "allowances"],
  ReceiverEpochs: ["lists", "answerReplyRun", "cachedAnswerKey"],
  EpochUse: ["forged"],
  NodePacketKey: ["nonce"]
}

/** What objects of every class were given and share: no state of theirs. */
const shared = new Set(["counters", "notices", "suite", "entropy", "cursors", "faults"])

const isApart = (owner: object, name: string): boolean =>
  shared.has(name) || (apart[owner.constructor.name]?.includes(name) ?? false)

export const standingOf = (receiver: Receiver): string => {
  const seen = new Map<object, number>()
  const write = (value: unknown): unknown => {
    if (typeof value === "bigint") return `${value}n`
    if (typeof value === "number" && !Number.isFinite(value)) return String(value)
    if (typeof value === "function") return "function"
    if (typeof value !== "object" || value === null) return value
    const known = seen.get(value)
    if (known !== undefined) return `object ${known}`
    seen.set(value, seen.size)
    if (ArrayBuffer.isView(value))
      return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64")
    if (value instanceof Map) return [...value].map((entry) => entry.map(write))
    if (value instanceof Set) return [...value].map(write)
    if (Array.isArray(value)) return value.map(write)
    const fields = Object.entries(value).filter(([name]) => !isApart(value, name))
    return Object.fromEntries(fields.map(([name, field]) => [name, write(field)]))
  }
  return JSON.stringify(write(receiver))
}

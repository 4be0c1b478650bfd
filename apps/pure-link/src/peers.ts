/**
 * Who may send, as flags and files say it: `KEY`, `KEY=source,source`, or lines of `KEY source,source` and `KEY *`; and
 * what a list that is read again changes.
 */
import { formatPublicKey, keyIdOf } from "@pure-link/keys"
import type { InputsOptions } from "@pure-link/link"
import { longestName } from "@pure-link/wire"
import * as Effect from "effect/Effect"
import { readFileSync } from "node:fs"
import { badInput, type Failure } from "./failure.ts"
import { readPublicKey } from "./keyFile.ts"
import { suite } from "./options.ts"

/** A peer who may send. */
export type AllowedPeer = InputsOptions["peers"][number]

/** So many allowed keys of one key id are told apart (spec §3.4). */
const mostEqualKeyIds = 4

const sourcesOf = (text: string): AllowedPeer["sources"] =>
  text === "*"
    ? "any"
    : text
        .split(",")
        .map((source) => source.trim())
        .filter((source) => source !== "")

/** What is wrong with the sources, if anything is; `form` is how they are to be written. */
const problemOf = (sources: AllowedPeer["sources"], form: string): string | undefined => {
  if (sources === "any") return undefined
  if (sources.length === 0) return `names no source; ${form}`
  const long = sources.find((source) => Buffer.byteLength(source) > longestName)
  return long === undefined ? undefined : `names the source "${long}", which is longer than ${longestName} B of UTF-8`
}

/** One `--allow` flag. */
export const parseAllow = (text: string): Effect.Effect<AllowedPeer, Failure> => {
  const at = text.indexOf("=")
  const key = at < 0 ? text : text.slice(0, at)
  const sources = at < 0 ? "any" : sourcesOf(text.slice(at + 1))
  const problem = problemOf(sources, "write KEY, or KEY=SOURCE,SOURCE")
  if (problem !== undefined) return Effect.fail(badInput(`--allow ${text} ${problem}`))
  return Effect.map(readPublicKey(key), (publicKey) => ({ publicKey, sources }))
}

/** A `--peers` file; an error names its line. */
export const readPeersFile = (path: string): Effect.Effect<ReadonlyArray<AllowedPeer>, Failure> =>
  Effect.gen(function* () {
    const text = yield* Effect.try({
      try: () => readFileSync(path, "utf8"),
      catch: (cause) =>
        badInput(`cannot read the peers file ${path} (${(cause as NodeJS.ErrnoException).code}); check its path`)
    })
    const peers: Array<AllowedPeer> = []
    for (const [index, line] of text.split("\n").entries()) {
      const words = line.replace(/#.*/, "").split(/\s+/).filter(Boolean)
      if (words.length === 0) continue
      const place = `${path} line ${index + 1}`
      if (words.length !== 2) return yield* Effect.fail(badInput(`${place}: write "KEY source,source" or "KEY *"`))
      const sources = sourcesOf(words[1]!)
      const problem = problemOf(sources, "write names, or * for any")
      if (problem !== undefined) return yield* Effect.fail(badInput(`${place} ${problem}`))
      const publicKey = yield* Effect.mapError(readPublicKey(words[0]!), (error) => badInput(`${place}: ${error.text}`))
      peers.push({ publicKey, sources })
    }
    return peers
  })

/** One entry a key: what several flags and lines allow it adds up. */
export const mergePeers = (peers: ReadonlyArray<AllowedPeer>): ReadonlyArray<AllowedPeer> => {
  const merged = new Map<string, AllowedPeer>()
  for (const peer of peers) {
    const key = formatPublicKey(peer.publicKey)
    const former = merged.get(key)?.sources ?? []
    const sources = former === "any" || peer.sources === "any" ? "any" : [...new Set([...former, ...peer.sources])]
    merged.set(key, { publicKey: peer.publicKey, sources })
  }
  return [...merged.values()]
}

/** Everybody whom flags and the file allow, in a list that a receiver takes as a whole. */
export const allPeers = (
  named: ReadonlyArray<AllowedPeer>,
  file: string | undefined
): Effect.Effect<ReadonlyArray<AllowedPeer>, Failure> =>
  Effect.gen(function* () {
    const peers = mergePeers([...named, ...(file === undefined ? [] : yield* readPeersFile(file))])
    if (peers.length === 0) {
      return yield* Effect.fail(
        badInput(
          file === undefined
            ? "nobody may send: give --allow KEY or --peers FILE with the public keys of senders"
            : `nobody may send: ${file} names no key; write a line of "KEY *" or "KEY source,source" for each sender`
        )
      )
    }
    const crowded = crowdedKey(peers)
    if (crowded === undefined) return peers
    return yield* Effect.fail(
      badInput(
        `more than ${mostEqualKeyIds} of the allowed keys have the key id of ${formatPublicKey(crowded.publicKey)}; ` +
          "make a new key pair for it with `pure-link keygen`"
      )
    )
  })

/** The first peer whose key id as many others before it have as can be told apart. */
const crowdedKey = (peers: ReadonlyArray<AllowedPeer>): AllowedPeer | undefined => {
  const counts = new Map<number, number>()
  return peers.find(({ publicKey }) => {
    const keyId = keyIdOf(suite, publicKey)
    const count = (counts.get(keyId) ?? 0) + 1
    counts.set(keyId, count)
    return count > mostEqualKeyIds
  })
}

/** What makes one list of peers out of another. */
export interface PeersChange {
  readonly added: ReadonlyArray<AllowedPeer>
  /** Allowed before and after, as other sources. */
  readonly changed: ReadonlyArray<AllowedPeer>
  readonly removed: ReadonlyArray<AllowedPeer>
}

/** The difference between two merged lists. */
export const changeOf = (former: ReadonlyArray<AllowedPeer>, next: ReadonlyArray<AllowedPeer>): PeersChange => {
  const before = new Map(former.map((peer) => [formatPublicKey(peer.publicKey), peer]))
  const added: Array<AllowedPeer> = []
  const changed: Array<AllowedPeer> = []
  for (const peer of next) {
    const key = formatPublicKey(peer.publicKey)
    const known = before.get(key)
    before.delete(key)
    if (known === undefined) added.push(peer)
    else if (!sameSources(known.sources, peer.sources)) changed.push(peer)
  }
  return { added, changed, removed: [...before.values()] }
}

const sameSources = (a: AllowedPeer["sources"], b: AllowedPeer["sources"]): boolean => {
  if (a === "any" || b === "any") return a === b
  const names = new Set(a)
  return names.size === new Set(b).size && b.every((name) => names.has(name))
}

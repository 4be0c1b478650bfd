/**
 * Who may send, as flags and files say it: `KEY`, `KEY=source,source`, or lines of `KEY source,source` and `KEY *`.
 */
import { formatPublicKey } from "@pure-link/keys"
import type { InputsOptions } from "@pure-link/link"
import * as Effect from "effect/Effect"
import { readFileSync } from "node:fs"
import { badInput, type Failure } from "./failure.ts"
import { readPublicKey } from "./keyFile.ts"

/** A peer who may send. */
export type AllowedPeer = InputsOptions["peers"][number]

const sourcesOf = (text: string): AllowedPeer["sources"] =>
  text === "*"
    ? "any"
    : text
        .split(",")
        .map((source) => source.trim())
        .filter((source) => source !== "")

/** One `--allow` flag. */
export const parseAllow = (text: string): Effect.Effect<AllowedPeer, Failure> => {
  const at = text.indexOf("=")
  const key = at < 0 ? text : text.slice(0, at)
  const sources = at < 0 ? "any" : sourcesOf(text.slice(at + 1))
  if (sources.length === 0)
    return Effect.fail(badInput(`--allow ${text} names no source; write KEY, or KEY=SOURCE,SOURCE`))
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
      const words = line
        .replace(/#.*/, "")
        .trim()
        .split(/\s+/)
        .filter((word) => word !== "")
      if (words.length === 0) continue
      if (words.length !== 2) {
        return yield* Effect.fail(badInput(`${path} line ${index + 1}: write "KEY source,source" or "KEY *"`))
      }
      const sources = sourcesOf(words[1]!)
      if (sources.length === 0) {
        return yield* Effect.fail(badInput(`${path} line ${index + 1} names no source; write names, or * for any`))
      }
      const publicKey = yield* readPublicKey(words[0]!).pipe(
        Effect.mapError((error) => badInput(`${path} line ${index + 1}: ${error.text}`))
      )
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

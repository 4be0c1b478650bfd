/**
 * Secret keys as people meet them: a file that only its owner may read, with the public key in a comment so that it can
 * be looked up without a tool.
 */
import { type CryptoSuite, formatKeyFile, type KeyPair, parseKeyFile, parsePublicKey } from "@pure-link/keys"
import * as Effect from "effect/Effect"
import { closeSync, fsyncSync, openSync, readFileSync, statSync, writeSync } from "node:fs"
import { badInput, type Failure } from "./failure.ts"
import { say } from "./output.ts"

/** Reads a public key as `keygen` prints it. */
export const readPublicKey = (text: string): Effect.Effect<Uint8Array, Failure> => {
  const key = parsePublicKey(text.trim())
  return key === undefined
    ? Effect.fail(
        badInput(
          `"${text}" is not a public key; it is what \`pure-link keygen\` prints on the other node: pk and 43 characters`
        )
      )
    : Effect.succeed(key)
}

/** Writes a new key file with mode 0600; an existing file is never overwritten. */
export const writeKeyFile = (path: string, keys: KeyPair): Effect.Effect<void, Failure> =>
  Effect.try({
    try: () => {
      const file = openSync(path, "wx", 0o600)
      writeSync(file, formatKeyFile(keys))
      fsyncSync(file)
      closeSync(file)
    },
    catch: (cause) => {
      const code = (cause as NodeJS.ErrnoException).code
      return badInput(
        code === "EEXIST"
          ? `${path} exists and is kept; name another file with --file, or move it away first`
          : `cannot write ${path} (${code}); choose a folder that exists and that you may write to with --file`
      )
    }
  })

/** Reads a key file that `keygen` wrote. */
export const readKeyFile = (suite: CryptoSuite, path: string): Effect.Effect<KeyPair, Failure> =>
  Effect.gen(function* () {
    const { mode, text } = yield* Effect.try({
      try: () => ({ mode: statSync(path).mode, text: readFileSync(path, "utf8") }),
      catch: (cause) =>
        badInput(
          `cannot read the key file ${path} (${(cause as NodeJS.ErrnoException).code}); ` +
            `make one with \`pure-link keygen --file ${path}\``
        )
    })
    const keys = parseKeyFile(suite, text)
    if (keys === undefined) {
      return yield* Effect.fail(badInput(`${path} is not a key file of pure-link; make one with \`pure-link keygen\``))
    }
    if ((mode & 0o077) !== 0) yield* say(`${path} can be read by others; make it yours alone: chmod 600 ${path}`)
    return keys
  })

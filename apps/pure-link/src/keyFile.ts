/**
 * Keys as people meet them: a public key is 43 characters of base64url; a secret key is a file that only its owner may read, with
 * the public key in a comment so that it can be looked up without a tool.
 */
import { type CryptoSuite, isAcceptable, type KeyPair } from "@pure-link/keys"
import * as Effect from "effect/Effect"
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs"
import { badInput, type Failure } from "./failure.ts"

const header = "pure-link secret key, version 1; keep this file private"

export const formatKey = (key: Uint8Array): string => Buffer.from(key).toString("base64url")

/** Reads a public key as `keygen` prints it. */
export const parsePublicKey = (text: string): Effect.Effect<Uint8Array, Failure> => {
  const bytes = Buffer.from(text.trim(), "base64url")
  return /^[A-Za-z0-9_-]{43}$/.test(text.trim()) && isAcceptable(bytes)
    ? Effect.succeed(new Uint8Array(bytes))
    : Effect.fail(badInput(
      `"${text}" is not a public key; a key is the 43 characters that \`pure-link keygen\` prints on the other node`
    ))
}

/** Writes a new key file with mode 0600; an existing file is never overwritten. */
export const writeKeyFile = (path: string, keys: KeyPair): Effect.Effect<void, Failure> =>
  Effect.try({
    try: () => {
      const file = openSync(path, "wx", 0o600)
      writeSync(file, `# ${header}\n# public key: ${formatKey(keys.publicKey)}\n${formatKey(keys.privateKey)}\n`)
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
  Effect.gen(function*() {
    const text = yield* Effect.try({
      try: () => readFileSync(path, "utf8"),
      catch: (cause) =>
        badInput(
          `cannot read the key file ${path} (${(cause as NodeJS.ErrnoException).code}); make one with \`pure-link keygen --file ${path}\``
        )
    })
    const lines = text.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("#"))
    if (lines.length !== 1 || !/^[A-Za-z0-9_-]{43}$/.test(lines[0]!.trim())) {
      return yield* Effect.fail(badInput(`${path} is not a key file of pure-link; make one with \`pure-link keygen\``))
    }
    const privateKey = new Uint8Array(Buffer.from(lines[0]!.trim(), "base64url"))
    return { privateKey, publicKey: suite.agreement.publicKey(privateKey) }
  })

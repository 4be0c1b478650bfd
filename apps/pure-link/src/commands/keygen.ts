/**
 * `pure-link keygen`: makes the key pair that a node is known by.
 */
import { formatPublicKey, keyPair, systemEntropy } from "@pure-link/keys"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { writeKeyFile } from "../keyFile.ts"
import { json, suite } from "../options.ts"
import { print, printJson, say } from "../output.ts"

const file = Flag.String("file").pipe(
  Flag.withDescription("Where to write the secret key; must not exist"),
  Flag.withDefault("pure-link.key")
)

export const keygen = Command.make(
  "keygen",
  { file, json },
  Effect.fnUntraced(function* (flags) {
    const keys = keyPair(suite, systemEntropy)
    yield* writeKeyFile(flags.file, keys)
    const publicKey = formatPublicKey(keys.publicKey)
    if (flags.json) return yield* printJson({ publicKey, file: flags.file })
    yield* say(`secret key written to ${flags.file} (mode 0600); the public key, to give to peers:`)
    yield* print(publicKey)
  })
).pipe(Command.withDescription("Make a key pair: the secret into a file, the public key on standard output"))

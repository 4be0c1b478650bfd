/**
 * `pure-link keygen`: makes the key pair that a node is known by, or many of them for as many nodes.
 */
import { formatPublicKey, keyPair, systemEntropy } from "@pure-link/keys"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { badInput, type Failure } from "../failure.ts"
import { type NamedKeys, numberedNames, writeKeyBatch } from "../keyBatch.ts"
import { writeKeyFile } from "../keyFile.ts"
import { json, sourceName, suite } from "../options.ts"
import { grouped, print, printJson, say } from "../output.ts"

const flags = {
  file: Flag.String("file").pipe(
    Flag.withDescription("Where to write the secret key; must not exist (default: pure-link.key)"),
    Flag.optional
  ),
  count: Flag.Int("count").pipe(
    Flag.withDescription("Make this many key pairs, NAME-0001.key and so on, in --directory"),
    Flag.optional
  ),
  directory: Flag.String("directory").pipe(
    Flag.withDescription("With --count: where the secret key files go; made when it does not exist"),
    Flag.optional
  ),
  name: Flag.String("name").pipe(
    Flag.withDescription("With --count: how the files' names begin (default: node)"),
    Flag.withDefault("node")
  ),
  peerLines: Flag.Boolean("peer-lines").pipe(
    Flag.withDescription(
      "Print lines for `serve --peers`: each public key, and as its source the file's name without .key"
    ),
    Flag.withDefault(false)
  ),
  json
}

const defaultFile = "pure-link.key"
const mostAtOnce = 100_000

interface Asked {
  readonly file: Option.Option<string>
  readonly count: Option.Option<number>
  readonly directory: Option.Option<string>
  readonly name: string
  readonly peerLines: boolean
  readonly json: boolean
}

const makeKeys = () => keyPair(suite, systemEntropy)

const makeOne = Effect.fnUntraced(function* (file: string, asJson: boolean) {
  const keys = makeKeys()
  yield* writeKeyFile(file, keys)
  const publicKey = formatPublicKey(keys.publicKey)
  if (asJson) return yield* printJson({ publicKey, file })
  yield* say(`secret key written to ${file} (mode 0600); the public key, to give to peers:`)
  yield* print(publicKey)
})

const makeMany = Effect.fnUntraced(function* (asked: Asked, count: number) {
  if (Option.isNone(asked.directory)) {
    return yield* Effect.fail(badInput("--count needs --directory DIR, where the secret key files are to go"))
  }
  if (count < 1 || count > mostAtOnce) {
    return yield* Effect.fail(badInput(`--count takes a number from 1 to ${grouped(mostAtOnce)}, not ${count}`))
  }
  const names = numberedNames(asked.name, count)
  yield* usableName(asked.name, names[0]!)
  const made = yield* writeKeyBatch(asked.directory.value, names, makeKeys)
  yield* say(
    `${grouped(count)} secret key files written to ${asked.directory.value} (mode 0600); their public keys, to give to peers:`
  )
  for (const keys of made) yield* printNamed(keys, asked)
})

const usableName = (prefix: string, first: string): Effect.Effect<unknown, Failure> =>
  /[/\\,#\s]|^\.|^$/.test(prefix)
    ? Effect.fail(badInput(`--name "${prefix}" cannot begin file and source names; use letters, digits, - and _`))
    : sourceName(first)

const printNamed = ({ file, keys, name }: NamedKeys, asked: Asked): Effect.Effect<void> => {
  const publicKey = formatPublicKey(keys.publicKey)
  if (asked.json) return printJson({ file, publicKey })
  return print(asked.peerLines ? `${publicKey} ${name}` : publicKey)
}

export const keygen = Command.make(
  "keygen",
  flags,
  Effect.fnUntraced(function* (asked: Asked) {
    if (Option.isNone(asked.count)) {
      const stray = Option.isSome(asked.directory) || asked.peerLines || asked.name !== "node"
      if (stray) return yield* Effect.fail(badInput("--directory, --name and --peer-lines need --count"))
      return yield* makeOne(
        Option.getOrElse(asked.file, () => defaultFile),
        asked.json
      )
    }
    if (Option.isSome(asked.file)) {
      return yield* Effect.fail(badInput("--file is for one key pair; with --count give --directory"))
    }
    if (asked.peerLines && asked.json) {
      return yield* Effect.fail(badInput("--peer-lines and --json exclude each other; give one of them"))
    }
    yield* makeMany(asked, asked.count.value)
  })
).pipe(Command.withDescription("Make a key pair: the secret into a file, the public key on standard output; or many"))

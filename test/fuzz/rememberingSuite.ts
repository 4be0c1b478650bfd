import { type CryptoSuite, nodeSuite, type PacketKey } from "@pure-link/keys"

/**
 * The real suite with a memory. Fuzzed worlds begin alike, so that most of their key computations were made before; a
 * search is several times faster for it, and every bit is what it would be without.
 */

const mostRemembered = 20_000

const remember = <A>(compute: (key: string) => A): ((key: string) => A) => {
  const known = new Map<string, A>()
  return (key) => {
    let value = known.get(key)
    if (value === undefined) {
      if (known.size >= mostRemembered) known.clear()
      value = compute(key)
      known.set(key, value)
    }
    return value
  }
}

const textOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1")
const bytesOf = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, "latin1"))
/** Several byte strings as one key, the lengths of all but the last in front. */
const join = (...parts: ReadonlyArray<Uint8Array>): string =>
  parts.map((part) => part.length).join(",") + ";" + parts.map(textOf).join("")
const split = (key: string): ReadonlyArray<Uint8Array> => {
  const lengths = key.slice(0, key.indexOf(";")).split(",").map(Number)
  let at = key.indexOf(";") + 1
  return lengths.map((length) => bytesOf(key.slice(at, (at += length))))
}

const { agreement, derivation } = nodeSuite
const publicKey = remember((key) => agreement.publicKey(bytesOf(key)))
/** In an object, because no shared secret is an answer too. */
const shared = remember((key) => ({ secret: agreement.shared(split(key)[0]!, split(key)[1]!) }))
const extract = remember((key) => derivation.extract(split(key)[0]!, split(key)[1]!))
const expand = remember((key) => {
  const [prk, info, length] = split(key)
  return derivation.expand(prk!, info!, length!.length)
})
const sha256 = remember((key) => derivation.sha256(bytesOf(key)))
const packetKey = remember((key): PacketKey => nodeSuite.packetKey(bytesOf(key)))

/** Results are copies: the machines erase what they are given. */
export const rememberingSuite: CryptoSuite = {
  name: nodeSuite.name,
  agreement: {
    publicKey: (privateKey) => publicKey(textOf(privateKey)).slice(),
    shared: (privateKey, other) => shared(join(privateKey, other)).secret?.slice()
  },
  derivation: {
    extract: (salt, material) => extract(join(salt, material)).slice(),
    expand: (prk, info, length) => expand(join(prk, info, new Uint8Array(length))).slice(),
    sha256: (bytes) => sha256(textOf(bytes)).slice()
  },
  // A fresh object each time: machines tell keys apart by identity.
  packetKey: (material) => Object.create(packetKey(textOf(material))) as PacketKey
}

/**
 * Keys as people meet them. A public key is "pk" and 43 characters of base64url: the prefix says what it is, and keeps
 * a key from ever beginning with a dash, which a command line would take for a flag. A key pair is the text of a file
 * to be kept private, with the public key in a comment so that it can be looked up without a tool.
 */
import { type CryptoSuite, keyLength, type KeyPair } from "./cryptoSuite.ts"
import { isAcceptable } from "./publicKey.ts"

const prefix = "pk"
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
const encodedLength = 43
const fileHeader = "pure-link secret key, version 1; keep this file private"

/** A public key as text, 45 characters. */
export const formatPublicKey = (publicKey: Uint8Array): string => prefix + encodeKey(publicKey)

/** Reads what `formatPublicKey` wrote; `undefined` for anything else, and for keys that spec §6.1 refuses. */
export const parsePublicKey = (text: string): Uint8Array | undefined => {
  if (!text.startsWith(prefix)) return undefined
  const key = decodeKey(text.slice(prefix.length))
  return key !== undefined && isAcceptable(key) ? key : undefined
}

/** The text of a secret key file: comments that name it and its public key, and one line with the private key. */
export const formatKeyFile = ({ privateKey, publicKey }: KeyPair): string =>
  `# ${fileHeader}\n# public key: ${formatPublicKey(publicKey)}\n${encodeKey(privateKey)}\n`

/**
 * Reads what `formatKeyFile` wrote: one line with a private key, among blank lines and comments that begin with `#`;
 * `undefined` for anything else. The public key is computed, whatever the comment says.
 */
export const parseKeyFile = (suite: CryptoSuite, text: string): KeyPair | undefined => {
  const lines = text.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("#"))
  const privateKey = lines.length === 1 ? decodeKey(lines[0]!.trim()) : undefined
  return privateKey && { privateKey, publicKey: suite.agreement.publicKey(privateKey) }
}

/** 32 B as base64url without padding, 43 characters. */
export const encodeKey = (key: Uint8Array): string => {
  let text = ""
  let bits = 0
  let held = 0
  for (const byte of key) {
    held = (held << 8) | byte
    for (bits += 8; bits >= 6;) text += alphabet[(held >> (bits -= 6)) & 63]
    held &= (1 << bits) - 1
  }
  return bits > 0 ? text + alphabet[(held << (6 - bits)) & 63] : text
}

/** Reads 32 B of base64url; `undefined` unless the text is exactly what `encodeKey` writes. */
export const decodeKey = (text: string): Uint8Array | undefined => {
  if (text.length !== encodedLength) return undefined
  const key = new Uint8Array(keyLength)
  let bits = 0
  let held = 0
  let at = 0
  for (const character of text) {
    const value = alphabet.indexOf(character)
    if (value < 0) return undefined
    held = (held << 6) | value
    bits += 6
    if (bits >= 8) {
      key[at++] = (held >> (bits -= 8)) & 255
      held &= (1 << bits) - 1
    }
  }
  return held === 0 ? key : undefined
}

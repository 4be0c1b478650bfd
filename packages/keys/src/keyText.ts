/**
 * Keys as people copy them: "pk" and 43 characters of base64url. The prefix says what it is, and keeps a key from ever
 * beginning with a dash, which a command line would take for a flag.
 */
import { keyLength } from "./cryptoSuite.ts"
import { isAcceptable } from "./publicKey.ts"

const prefix = "pk"
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
const encodedLength = 43

/** A public key as text, 45 characters. */
export const formatPublicKey = (publicKey: Uint8Array): string => prefix + encodeKey(publicKey)

/** Reads what `formatPublicKey` wrote; `undefined` for anything else, and for keys that spec §6.1 refuses. */
export const parsePublicKey = (text: string): Uint8Array | undefined => {
  if (!text.startsWith(prefix)) return undefined
  const key = decodeKey(text.slice(prefix.length))
  return key !== undefined && isAcceptable(key) ? key : undefined
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

import { keyLength } from "./cryptoSuite.ts"

/**
 * Which public keys may be used at all (spec §6.1). X25519 itself accepts several encodings of one point; a key id and
 * a key schedule that bind the encoding must not, so that every point has exactly one name.
 */

/** Whether 32 B are, read little-endian with bit 255 included, below 2^255 − 19. */
export const isCanonical = (publicKey: Uint8Array): boolean => {
  if (publicKey.length !== keyLength) return false
  if (publicKey[31]! !== 0x7f) return publicKey[31]! < 0x7f
  for (let i = 30; i >= 1; i--) if (publicKey[i]! !== 0xff) return true
  return publicKey[0]! < 0xed
}

/** Whether every byte is zero: a public key or shared secret that spec §6.1 refuses. */
export const isAllZero = (bytes: Uint8Array): boolean => {
  let seen = 0
  for (let i = 0; i < bytes.length; i++) seen |= bytes[i]!
  return seen === 0
}

/**
 * Whether spec §6.1 lets a public key in: canonical and not zero. Points of low order are refused by their shared
 * secret.
 */
export const isAcceptable = (publicKey: Uint8Array): boolean => isCanonical(publicKey) && !isAllZero(publicKey)

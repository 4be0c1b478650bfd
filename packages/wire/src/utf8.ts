import * as Schema from "effect/Schema"
import { longestName } from "./limits.ts"

/**
 * Names of sources and inputs: 1 to 64 B of well-formed UTF-8 after one byte of length (spec §4.3). Validation looks at
 * the bytes only; the decoder keeps a leading U+FEFF, so that equal bytes and equal names are the same thing.
 */

const encoder = new TextEncoder()
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** The bytes of a name, its length byte apart. */
export const nameLength = (name: string): number => encoder.encode(name).length

export const NameField = Schema.String.check(
  Schema.isBetweenLength(1, longestName),
  Schema.makeFilter((name: string) => name.isWellFormed() && nameLength(name) <= longestName, {
    expected: `1 to ${longestName} B of UTF-8`
  })
)

/** The offset after the name whose length byte is at `offset`, or −1 when it is not a name. */
export const endOfName = (bytes: Uint8Array, offset: number, end: number): number => {
  if (offset >= end) return -1
  const length = bytes[offset]!
  const nameEnd = offset + 1 + length
  if (length === 0 || length > longestName || nameEnd > end) return -1
  return isUtf8(bytes, offset + 1, nameEnd) ? nameEnd : -1
}

/** The name whose length byte is at a validated offset. */
export const readNameBytes = (bytes: Uint8Array, offset: number): string =>
  decoder.decode(bytes.subarray(offset + 1, offset + 1 + bytes[offset]!))

export const writeNameBytes = (out: Uint8Array, offset: number, name: string): number => {
  const encoded = encoder.encode(name)
  out[offset] = encoded.length
  out.set(encoded, offset + 1)
  return offset + 1 + encoded.length
}

/** Whether the bytes are well-formed UTF-8: the Unicode Standard, table 3-7. */
const isUtf8 = (bytes: Uint8Array, start: number, end: number): boolean => {
  let offset = start
  while (offset < end) {
    const first = bytes[offset]!
    const length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0
    if (length === 0 || offset + length > end) return false
    if (length > 1 && !isSecondByte(first, bytes[offset + 1]!)) return false
    for (let i = 2; i < length; i++) if ((bytes[offset + i]! & 0xc0) !== 0x80) return false
    offset += length
  }
  return true
}

/** The second byte excludes overlong forms, surrogates, and what lies beyond U+10FFFF. */
const isSecondByte = (first: number, second: number): boolean => {
  const least = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80
  const most = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf
  return second >= least && second <= most
}

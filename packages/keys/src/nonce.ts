import type { PacketNumber } from "@pure-link/wire"

/**
 * The nonce of a packet: the IV XOR (4 zero bytes ‖ the full packet number as 8 B), as RFC 8446 §5.3 builds it (spec
 * §6.5).
 */
export const nonceLength = 12

/** Writes the nonce of `number` under `iv` to `out`. */
export const writeNonce = (out: Uint8Array, iv: Uint8Array, number: PacketNumber): void => {
  let high = Math.floor(number / 0x1_0000_0000)
  let low = number >>> 0
  for (let i = 0; i < 4; i++) out[i] = iv[i]!
  for (let i = 7; i >= 4; i--) {
    out[i] = iv[i]! ^ (high & 0xff)
    high >>>= 8
  }
  for (let i = 11; i >= 8; i--) {
    out[i] = iv[i]! ^ (low & 0xff)
    low >>>= 8
  }
}

import { type CryptoSuite, nodeSuite, type PacketKey, type SealedPackets } from "@pure-link/keys"
import { type Aead, load } from "@pure-link/native"
import type { PacketNumber } from "@pure-link/wire"

/**
 * The suite of node:crypto with packet keys of the native addon, which seals and opens in place: a packet costs a tenth,
 * and a train or a table is one call. Keys and secrets, which are few, stay with node:crypto.
 */

/** The native suite, or one line that says why this process has none. */
export const loadNativeSuite = ():
  | { readonly suite: CryptoSuite; readonly reason?: undefined }
  | { readonly suite?: undefined; readonly reason: string } => {
  const { addon, reason } = load()
  if (addon === undefined) return { reason }
  const { aead, aeadReason } = addon
  return aead === undefined ? { reason: `no native AES-128-GCM: ${aeadReason}` } : { suite: suiteOf(aead) }
}

const suiteOf = (aead: Aead): CryptoSuite => ({
  ...nodeSuite,
  name: "native",
  packetKey: (material) => new NativePacketKey(aead, material)
})

/** The addon holds the key, and erases it when this object is collected. */
class NativePacketKey implements PacketKey {
  private readonly aead: Aead
  private readonly handle: number

  constructor(aead: Aead, material: Uint8Array) {
    this.aead = aead
    this.handle = aead.createKey(this, material)
  }

  seal(bytes: Uint8Array, start: number, bodyStart: number, bodyEnd: number, number: PacketNumber): void {
    this.aead.seal(this.handle, bytes, start, bodyStart, bodyEnd, number)
  }

  open(bytes: Uint8Array, start: number, bodyStart: number, end: number, number: PacketNumber): boolean {
    return this.aead.open(this.handle, bytes, start, bodyStart, end, number)
  }

  sealTrain(
    slab: Uint8Array,
    stride: number,
    lengths: Uint32Array,
    from: number,
    to: number,
    headerLength: number,
    first: PacketNumber
  ): void {
    this.aead.sealTrain(this.handle, slab, stride, lengths, from, to, headerLength, first)
  }

  openAll(bytes: Uint8Array, packets: SealedPackets, from: number, to: number, headerLength: number): void {
    const { starts, ends, numbers, opened } = packets
    this.aead.openAll(this.handle, bytes, starts, ends, numbers, opened, from, to, headerLength)
  }
}

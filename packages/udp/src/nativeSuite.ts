import {
  type CryptoSuite,
  type KeyDerivation,
  nodeSuite,
  type PacketKey,
  packetKeyMaterialLength,
  type SealedPackets
} from "@pure-link/keys"
import { type Aead, type Derivation, load } from "@pure-link/native"
import type { PacketNumber } from "@pure-link/wire"

/**
 * The suite of node:crypto with packet keys and derivations of the native addon: a packet costs a tenth, a train or a table
 * is one call, and a key that is tried once, for a packet that a stranger may have made up, costs a few microseconds. Key
 * agreement, which is rare, stays with node:crypto.
 */

/** The native suite, or one line that says why this process has none. */
export const loadNativeSuite = ():
  | { readonly suite: CryptoSuite; readonly reason?: undefined }
  | { readonly suite?: undefined; readonly reason: string } => {
  const { addon, reason } = load()
  if (addon === undefined) return { reason }
  const { aead, aeadReason, derivation } = addon
  return aead === undefined ? { reason: `no native AES-128-GCM: ${aeadReason}` } : { suite: suiteOf(aead, derivation) }
}

const suiteOf = (aead: Aead, derivation: Derivation | undefined): CryptoSuite => {
  const slots = new KeySlots(aead)
  return {
    ...nodeSuite,
    name: "native",
    derivation: derivation === undefined ? nodeSuite.derivation : derivationOf(derivation),
    packetKey: (material) => new NativePacketKey(aead, slots, slots.take(material))
  }
}

/**
 * The addon writes to memory of its own, which is copied out: V8 keeps short arrays on its heap until somebody asks where
 * their bytes are, and makes a buffer for each that was asked for.
 */
const derivationOf = ({ expand, hmac, sha256 }: Derivation): KeyDerivation => {
  const out = new Uint8Array(64)
  const takeOut = (length: number): Uint8Array => {
    const taken = out.slice(0, length)
    out.fill(0)
    return taken
  }
  return {
    extract: (salt, inputKeyMaterial) => {
      hmac(salt, inputKeyMaterial, out)
      return takeOut(32)
    },
    expand: (pseudoRandomKey, info, length) => {
      if (length > out.length) {
        const long = new Uint8Array(length)
        expand(pseudoRandomKey, info, long, length)
        return long
      }
      expand(pseudoRandomKey, info, out, length)
      return takeOut(length)
    },
    sha256: (bytes) => {
      sha256(bytes, out)
      return takeOut(32)
    }
  }
}

/** A key's place in the addon, which erases and frees it when this object is collected. */
interface KeySlot {
  handle: number
}

/** Slots of released keys that wait for the next ones: one that has its contexts is much cheaper than a new one. */
const spareSlots = 64

class KeySlots {
  private readonly aead: Aead
  private readonly spare: Array<KeySlot> = []
  private readonly material = new Uint8Array(packetKeyMaterialLength)

  constructor(aead: Aead) {
    this.aead = aead
  }

  take(material: Uint8Array): KeySlot {
    if (material.length !== packetKeyMaterialLength) throw new RangeError("material must be 28 bytes")
    this.material.set(material)
    const slot = this.spare.pop() ?? { handle: 0 }
    if (slot.handle === 0) slot.handle = this.aead.createKey(slot, this.material)
    else this.aead.renewKey(slot.handle, this.material)
    this.material.fill(0)
    return slot
  }

  /** Erases the key at once. */
  giveBack(slot: KeySlot): void {
    if (this.spare.length < spareSlots) {
      this.aead.renewKey(slot.handle, this.material)
      this.spare.push(slot)
    } else this.aead.freeKey(slot.handle)
  }
}

/** No key has this handle: the addon refuses it. */
const released = 0

class NativePacketKey implements PacketKey {
  private readonly aead: Aead
  private readonly slots: KeySlots
  private slot: KeySlot | undefined
  private handle: number

  constructor(aead: Aead, slots: KeySlots, slot: KeySlot) {
    this.aead = aead
    this.slots = slots
    this.slot = slot
    this.handle = slot.handle
  }

  release(): void {
    if (this.slot === undefined) return
    this.slots.giveBack(this.slot)
    this.slot = undefined
    this.handle = released
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

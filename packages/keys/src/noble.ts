import { gcm } from "@noble/ciphers/aes.js"
import { x25519 } from "@noble/curves/ed25519.js"
import { expand, extract } from "@noble/hashes/hkdf.js"
import { sha256 } from "@noble/hashes/sha2.js"
import { type PacketNumber, tagLength } from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import { type CryptoSuite, keyLength, packetKeyMaterialLength } from "./cryptoSuite.ts"
import { nonceLength, writeNonce } from "./nonce.ts"
import { isAcceptable, isAllZero } from "./publicKey.ts"
import { SinglePacketKey } from "./singlePacketKey.ts"

/**
 * The readable reference: audited JavaScript that runs anywhere. Slow (an X25519 takes a millisecond or more), and the
 * yardstick for every other suite.
 */
export const nobleSuite: CryptoSuite = {
  name: "noble",
  agreement: {
    publicKey: (privateKey) => x25519.getPublicKey(privateKey),
    shared: (privateKey, publicKey) => {
      assert(privateKey.length === keyLength)
      if (!isAcceptable(publicKey)) return undefined
      try {
        const shared = x25519.getSharedSecret(privateKey, publicKey)
        return isAllZero(shared) ? undefined : shared
      } catch {
        return undefined // noble throws where the result would be zero: a point of low order
      }
    }
  },
  derivation: {
    extract: (salt, inputKeyMaterial) => extract(sha256, inputKeyMaterial, salt),
    expand: (pseudoRandomKey, info, length) => expand(sha256, pseudoRandomKey, info, length),
    sha256: (bytes) => sha256(bytes)
  },
  packetKey: (material) => new NoblePacketKey(material)
}

class NoblePacketKey extends SinglePacketKey {
  private readonly key: Uint8Array
  private isOver = false
  private readonly iv: Uint8Array
  private readonly nonce = new Uint8Array(nonceLength)

  constructor(material: Uint8Array) {
    super()
    assert(material.length === packetKeyMaterialLength)
    this.key = material.slice(0, 16)
    this.iv = material.slice(16)
  }

  seal(bytes: Uint8Array, start: number, bodyStart: number, bodyEnd: number, number: PacketNumber): void {
    assert(!this.isOver && bodyEnd + tagLength <= bytes.length)
    writeNonce(this.nonce, this.iv, number)
    const header = bytes.subarray(start, bodyStart)
    bytes.set(gcm(this.key, this.nonce, header).encrypt(bytes.slice(bodyStart, bodyEnd)), bodyStart)
  }

  open(bytes: Uint8Array, start: number, bodyStart: number, end: number, number: PacketNumber): boolean {
    assert(!this.isOver)
    if (end - bodyStart < tagLength) return false
    writeNonce(this.nonce, this.iv, number)
    const header = bytes.subarray(start, bodyStart)
    try {
      bytes.set(gcm(this.key, this.nonce, header).decrypt(bytes.slice(bodyStart, end)), bodyStart)
      return true
    } catch {
      return false // the tag did not verify
    }
  }

  release(): void {
    this.key.fill(0)
    this.isOver = true
  }
}

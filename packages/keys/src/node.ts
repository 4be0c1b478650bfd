import { type PacketNumber, tagLength } from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import {
  createCipheriv,
  createDecipheriv,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  diffieHellman,
  hash,
  type KeyObject
} from "node:crypto"
import { type CryptoSuite, keyLength, packetKeyMaterialLength } from "./cryptoSuite.ts"
import { nonceLength, writeNonce } from "./nonce.ts"
import { isAcceptable, isAllZero } from "./publicKey.ts"
import { SinglePacketKey } from "./singlePacketKey.ts"

/**
 * The suite on OpenSSL through node:crypto, the default on Node. X25519 keys are raw bytes here and DER there: a fixed
 * prefix (RFC 8410) makes one of the other. A packet key is a KeyObject, imported once and used for every packet.
 */
export const nodeSuite: CryptoSuite = {
  name: "node",
  agreement: {
    publicKey: (privateKey) => {
      const der = createPublicKey(importPrivateKey(privateKey)).export({ format: "der", type: "spki" })
      return new Uint8Array(der.subarray(publicPrefix.length))
    },
    shared: (privateKey, publicKey) => {
      const own = importPrivateKey(privateKey)
      if (!isAcceptable(publicKey)) return undefined
      try {
        const shared = new Uint8Array(diffieHellman({ privateKey: own, publicKey: importPublicKey(publicKey) }))
        return isAllZero(shared) ? undefined : shared
      } catch {
        return undefined // OpenSSL fails where the result would be zero: a point of low order
      }
    }
  },
  derivation: {
    extract: (salt, inputKeyMaterial) => hmac(salt, inputKeyMaterial),
    expand,
    sha256: (bytes) => sha256(bytes)
  },
  packetKey: (material) => new NodePacketKey(material)
}

const privatePrefix = Buffer.from("302e020100300506032b656e04220420", "hex")
const publicPrefix = Buffer.from("302a300506032b656e032100", "hex")

const importPrivateKey = (raw: Uint8Array): KeyObject => {
  assert(raw.length === keyLength)
  const key = Buffer.concat([privatePrefix, raw])
  const imported = createPrivateKey({ key, format: "der", type: "pkcs8" })
  key.fill(0)
  return imported
}

const importPublicKey = (raw: Uint8Array): KeyObject =>
  createPublicKey({ key: Buffer.concat([publicPrefix, raw]), format: "der", type: "spki" })

const sha256 = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => new Uint8Array(hash("sha256", bytes, "buffer"))

const blockLength = 64
const hashLength = 32

/**
 * RFC 2104 in two calls of node:crypto, at a fifth of what a Hmac object and a key object cost: whoever makes up a run has
 * one computed here.
 */
const hmac = (key: Uint8Array, ...parts: ReadonlyArray<Uint8Array>): Uint8Array<ArrayBuffer> => {
  const { length } = key
  if (length > blockLength) return hmac(sha256(key), ...parts)
  const inner = new Uint8Array(parts.reduce((sum, part) => sum + part.length, blockLength)).fill(0x36, 0, blockLength)
  const outer = new Uint8Array(blockLength + hashLength).fill(0x5c, 0, blockLength)
  for (let i = 0; i < length; i++) {
    inner[i]! ^= key[i]!
    outer[i]! ^= key[i]!
  }
  let offset = blockLength
  for (const part of parts) {
    inner.set(part, offset)
    offset += part.length
  }
  outer.set(hash("sha256", inner, "buffer"), blockLength)
  const digest = sha256(outer)
  inner.fill(0)
  outer.fill(0)
  return digest
}

/** RFC 5869 §2.3: T(i) = HMAC(key, T(i − 1) ‖ info ‖ i), cut to `length`. */
function expand(pseudoRandomKey: Uint8Array, info: Uint8Array, length: number): Uint8Array {
  assert(length <= 255 * hashLength)
  const out = new Uint8Array(length)
  let block = new Uint8Array(0)
  for (let written = 0, i = 1; written < length; i++) {
    block = hmac(pseudoRandomKey, block, info, Uint8Array.of(i))
    out.set(block.subarray(0, length - written), written)
    written += block.length
  }
  return out
}

const algorithm = "aes-128-gcm"
const withTag = { authTagLength: tagLength }

class NodePacketKey extends SinglePacketKey {
  /** Undefined once it is over. */
  private key: KeyObject | undefined
  private readonly iv: Uint8Array
  private readonly nonce = new Uint8Array(nonceLength)

  constructor(material: Uint8Array) {
    super()
    assert(material.length === packetKeyMaterialLength)
    this.key = createSecretKey(material.subarray(0, 16))
    this.iv = material.slice(16)
  }

  seal(bytes: Uint8Array, start: number, bodyStart: number, bodyEnd: number, number: PacketNumber): void {
    assert(bodyEnd + tagLength <= bytes.length)
    assert(this.key !== undefined)
    writeNonce(this.nonce, this.iv, number)
    const cipher = createCipheriv(algorithm, this.key, this.nonce)
    cipher.setAAD(bytes.subarray(start, bodyStart))
    bytes.set(cipher.update(bytes.subarray(bodyStart, bodyEnd)), bodyStart)
    cipher.final()
    bytes.set(cipher.getAuthTag(), bodyEnd)
  }

  open(bytes: Uint8Array, start: number, bodyStart: number, end: number, number: PacketNumber): boolean {
    const bodyEnd = end - tagLength
    assert(this.key !== undefined)
    if (bodyEnd < bodyStart) return false
    writeNonce(this.nonce, this.iv, number)
    const decipher = createDecipheriv(algorithm, this.key, this.nonce, withTag)
    decipher.setAAD(bytes.subarray(start, bodyStart))
    decipher.setAuthTag(bytes.subarray(bodyEnd, end))
    const body = decipher.update(bytes.subarray(bodyStart, bodyEnd))
    try {
      decipher.final()
    } catch {
      return false // the tag did not verify; the plaintext is dropped unread
    }
    bytes.set(body, bodyStart)
    return true
  }

  /** OpenSSL erases the key when the object is collected. */
  release(): void {
    this.key = undefined
  }
}

import { type PacketNumber, tagLength } from "@pure-link/wire"
import { ok as assert } from "node:assert/strict"
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
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
    sha256: (bytes) => new Uint8Array(hash("sha256", bytes, "buffer"))
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

const hmac = (key: Uint8Array, bytes: Uint8Array): Uint8Array =>
  new Uint8Array(createHmac("sha256", key).update(bytes).digest())

/** RFC 5869 §2.3: T(i) = HMAC(key, T(i − 1) ‖ info ‖ i), cut to `length`. */
function expand(pseudoRandomKey: Uint8Array, info: Uint8Array, length: number): Uint8Array {
  assert(length <= 255 * 32)
  const out = new Uint8Array(length)
  let block = new Uint8Array(0)
  for (let written = 0, i = 1; written < length; i++) {
    const digest = createHmac("sha256", pseudoRandomKey).update(block).update(info).update(Uint8Array.of(i)).digest()
    block = new Uint8Array(digest)
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

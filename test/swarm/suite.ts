import { type CryptoSuite, nodeSuite } from "@pure-link/keys"
import { hash } from "node:crypto"

/**
 * What the machines of a world compute keys with. Packets are sealed by AES-128-GCM as ever; agreement and derivation
 * are stand-ins made of one hash each, a tenth of the cost, for worlds rotate epochs all the time and nobody in them
 * can do more with a public key than copy it. The real ones are tested in `packages/keys`.
 */
export const suite: CryptoSuite = {
  name: "swarm",
  agreement: {
    publicKey: (privateKey) => {
      const key = digest(privateKey)
      key[31]! &= 0x3f
      return key
    },
    shared: (privateKey, publicKey) => {
      const own = suite.agreement.publicKey(privateKey)
      return Buffer.compare(own, publicKey) < 0 ? digest(own, publicKey) : digest(publicKey, own)
    }
  },
  derivation: {
    extract: (salt, inputKeyMaterial) => digest(salt, inputKeyMaterial),
    expand: (pseudoRandomKey, info, length) => digest(pseudoRandomKey, info).subarray(0, length),
    sha256: (bytes) => digest(bytes)
  },
  packetKey: nodeSuite.packetKey
}

const digest = (...parts: ReadonlyArray<Uint8Array>): Uint8Array =>
  new Uint8Array(hash("sha256", parts.length === 1 ? parts[0]! : Buffer.concat(parts), "buffer"))

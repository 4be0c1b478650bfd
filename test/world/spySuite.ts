import { type CryptoSuite, nodeSuite } from "@pure-link/keys"

/**
 * A suite that keeps a copy of every secret that passes through it, beside the buffer itself: what was a secret once,
 * and whether it is still in memory.
 */
export interface Secret {
  readonly copy: Uint8Array
  readonly buffer: Uint8Array
}

export class SpySuite implements CryptoSuite {
  readonly name = "spy"
  readonly packetKey = nodeSuite.packetKey
  readonly publicKeys: Array<Uint8Array> = []
  readonly #secrets = { private: new Array<Secret>(), expand: new Array<Secret>() }

  secretsOf(kind: "private" | "expand"): ReadonlyArray<Secret> {
    return this.#secrets[kind]
  }

  readonly agreement = {
    publicKey: (privateKey: Uint8Array) => {
      const publicKey = nodeSuite.agreement.publicKey(privateKey)
      this.publicKeys.push(publicKey.slice())
      this.#secrets.private.push({ copy: privateKey.slice(), buffer: privateKey })
      return publicKey
    },
    shared: nodeSuite.agreement.shared
  }

  readonly derivation = {
    extract: nodeSuite.derivation.extract,
    sha256: nodeSuite.derivation.sha256,
    expand: (pseudoRandomKey: Uint8Array, info: Uint8Array, length: number) => {
      const secret = nodeSuite.derivation.expand(pseudoRandomKey, info, length)
      if (length === 32) this.#secrets.expand.push({ copy: secret.slice(), buffer: secret })
      return secret
    }
  }
}

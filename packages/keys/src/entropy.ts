import { type Id64, readId64 } from "@pure-link/wire"
import { randomFillSync } from "node:crypto"
import { type CryptoSuite, keyLength, type KeyPair } from "./cryptoSuite.ts"

/**
 * Where random bytes come from: the system's generator in production, a seeded one in tests and simulations, which then
 * give the same result to the byte.
 */
export interface Entropy {
  /** Fills all of `bytes`. */
  fill(bytes: Uint8Array): void
}

/** The operating system's generator. */
export const systemEntropy: Entropy = { fill: (bytes) => void randomFillSync(bytes) }

/** A repeatable generator (sfc32) for tests: equal seeds give equal bytes. Never for keys that protect anything. */
export const seededEntropy = (seed: number): Entropy => {
  let a = seed >>> 0
  let b = Math.floor(seed / 0x1_0000_0000) >>> 0
  let c = 0x9e3779b9
  let counter = 1
  const next = (): number => {
    const mixed = (a + b + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (((c << 21) | (c >>> 11)) + mixed) | 0
    return mixed
  }
  for (let i = 0; i < 16; i++) next()
  return {
    fill: (bytes) => {
      for (let i = 0; i < bytes.length; i += 4) {
        const word = next()
        for (let j = 0; j < 4 && i + j < bytes.length; j++) bytes[i + j] = word >>> (8 * j)
      }
    }
  }
}

/** Eight random bytes as a run, reply run, generation, life or token; never 0, which stands for none. */
export const id64 = (entropy: Entropy): Id64 => {
  const bytes = new Uint8Array(8)
  for (;;) {
    entropy.fill(bytes)
    const id = readId64(bytes, 0)
    if (id !== 0n) return id
  }
}

/** A fresh X25519 key pair. */
export const keyPair = (suite: CryptoSuite, entropy: Entropy): KeyPair => {
  const privateKey = new Uint8Array(keyLength)
  entropy.fill(privateKey)
  return { privateKey, publicKey: suite.agreement.publicKey(privateKey) }
}

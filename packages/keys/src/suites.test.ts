import { assert, describe, it } from "@effect/vitest"
import { cryptoSuiteContract } from "./contract/CryptoSuite.ts"
import { agreements, bytesOf, hexOf, lowOrder, notCanonical, random, zeroKey } from "./contract/vectors.ts"
import { id64, seededEntropy, systemEntropy } from "./entropy.ts"
import { nobleSuite } from "./noble.ts"
import { nodeSuite } from "./node.ts"
import { isAcceptable, isAllZero, isCanonical } from "./publicKey.ts"

/** Both suites of this room against the contract, and what they are made of. */

cryptoSuiteContract(nobleSuite, { isFast: false })
cryptoSuiteContract(nodeSuite, { isFast: true })

describe("public keys", () => {
  it("are canonical below 2^255 − 19 only", () => {
    for (const key of [zeroKey, ...lowOrder]) assert.isTrue(isCanonical(bytesOf(key)), key)
    for (const key of notCanonical) assert.isFalse(isCanonical(bytesOf(key)), key)
    assert.isTrue(isCanonical(bytesOf("00".repeat(31) + "7f")))
    assert.isTrue(isCanonical(bytesOf("ff00" + "ff".repeat(29) + "7f")))
    assert.isFalse(isCanonical(new Uint8Array(31)))
  })

  it("are acceptable when canonical and not zero", () => {
    assert.isFalse(isAcceptable(bytesOf(zeroKey)))
    assert.isFalse(isAcceptable(bytesOf(notCanonical[0]!)))
    assert.isTrue(isAcceptable(bytesOf(agreements[0]!.point)))
    assert.isFalse(isAllZero(bytesOf("00".repeat(31) + "01")))
  })
})

describe("entropy", () => {
  it("repeats from equal seeds and differs between seeds", () => {
    assert.deepStrictEqual(random(1, 100), random(1, 100))
    const first = Array.from({ length: 100 }, (_, seed) => hexOf(random(seed, 8)))
    assert.strictEqual(new Set(first).size, 100)
    assert.notDeepEqual(random(5, 8), random(5 + 2 ** 32, 8))
  })

  it("fills every byte, from the system too", () => {
    for (const entropy of [systemEntropy, seededEntropy(3)]) {
      const met = new Uint8Array(37)
      const bytes = new Uint8Array(37)
      for (let i = 0; i < 20; i++) {
        entropy.fill(bytes)
        for (let j = 0; j < 37; j++) met[j]! |= bytes[j]!
      }
      assert.isFalse(met.includes(0))
    }
  })

  it("draws ids again when they are 0", () => {
    let calls = 0
    assert.strictEqual(id64({ fill: (bytes) => void bytes.fill(calls++ === 0 ? 0 : 1) }), 0x0101010101010101n)
  })
})

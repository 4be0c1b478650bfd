import { assert, describe, it } from "@effect/vitest"
import { encodeKey, decodeKey, formatPublicKey, parsePublicKey } from "./keyText.ts"
import { nodeSuite } from "./node.ts"
import { seededEntropy } from "./entropy.ts"

describe("keys as text", () => {
  const entropy = seededEntropy(7)
  const random = () => {
    const bytes = new Uint8Array(32)
    entropy.fill(bytes)
    return bytes
  }

  it("are base64url as everybody writes it", () => {
    for (let i = 0; i < 200; i++) {
      const key = random()
      assert.strictEqual(encodeKey(key), Buffer.from(key).toString("base64url"))
      assert.deepStrictEqual(decodeKey(encodeKey(key)), key)
    }
  })

  it("public keys read back, and never begin with a dash", () => {
    for (let i = 0; i < 200; i++) {
      const key = nodeSuite.agreement.publicKey(random())
      assert.match(formatPublicKey(key), /^pk/)
      assert.deepStrictEqual(parsePublicKey(formatPublicKey(key)), key)
    }
  })

  it("anything else is refused: other lengths, characters, loose last bits, keys of spec §6.1", () => {
    const good = formatPublicKey(nodeSuite.agreement.publicKey(random()))
    const last = good.slice(-1)
    const loose = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".indexOf(last) | 1
    const wrong = [
      "",
      "pk",
      good.slice(2),
      good.slice(0, -1),
      `${good}A`,
      good.replace(/.$/, "="),
      good.replace(/.$/, "Aé"),
      good.slice(0, -1) + "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[loose],
      formatPublicKey(new Uint8Array(32)),
      formatPublicKey(new Uint8Array(32).fill(255))
    ]
    for (const text of wrong) assert.isUndefined(parsePublicKey(text), text)
  })
})

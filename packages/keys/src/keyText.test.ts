import { assert, describe, it } from "@effect/vitest"
import { encodeKey, decodeKey, formatKeyFile, formatPublicKey, parseKeyFile, parsePublicKey } from "./keyText.ts"
import { nodeSuite } from "./node.ts"
import { keyPair, seededEntropy } from "./entropy.ts"

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

  it("a key file has its public key in a comment and its private key on the one other line", () => {
    const pair = { privateKey: new Uint8Array(32).fill(1), publicKey: nodeSuite.agreement.publicKey(random()) }
    assert.strictEqual(
      formatKeyFile(pair),
      "# pure-link secret key, version 1; keep this file private\n" +
        `# public key: ${formatPublicKey(pair.publicKey)}\n` +
        "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE\n"
    )
  })

  it("key files read back, with other comments, blank lines and line ends too; the public key is computed", () => {
    for (let i = 0; i < 20; i++) {
      const pair = keyPair(nodeSuite, entropy)
      const secret = encodeKey(pair.privateKey)
      const texts = [
        formatKeyFile(pair),
        formatKeyFile(pair).replaceAll("\n", "\r\n"),
        formatKeyFile({ ...pair, publicKey: random() }),
        secret,
        `\n# mine\n \n  ${secret}  \n#`
      ]
      for (const text of texts) assert.deepStrictEqual(parseKeyFile(nodeSuite, text), pair, text)
    }
  })

  it("what is no key file is refused: no key, two keys, a public key, a damaged key", () => {
    const { privateKey, publicKey } = keyPair(nodeSuite, entropy)
    const secret = encodeKey(privateKey)
    const wrong = [
      "",
      "# a comment\n",
      `${secret}\n${secret}\n`,
      formatPublicKey(publicKey),
      secret.slice(1),
      ` #\n${secret}`
    ]
    for (const text of wrong) assert.isUndefined(parseKeyFile(nodeSuite, text), text)
  })
})

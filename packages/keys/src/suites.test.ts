import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { id64, keyPair, seededEntropy, systemEntropy } from "./entropy.ts"
import { nobleSuite } from "./noble.ts"
import { nodeSuite } from "./node.ts"
import { isAcceptable, isAllZero, isCanonical } from "./publicKey.ts"

/** Both suites against the published vectors, the refusals of spec §6.1, and each other. */

const bytesOf = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, "hex"))
const hexOf = (bytes: Uint8Array | undefined): string | undefined => bytes && Buffer.from(bytes).toString("hex")
const counting = (first: number, length: number): Uint8Array => Uint8Array.from({ length }, (_, i) => first + i)
const join = (...parts: ReadonlyArray<Uint8Array>): Uint8Array => new Uint8Array(Buffer.concat(parts))
const random = (seed: number, length: number): Uint8Array => {
  const bytes = new Uint8Array(length)
  seededEntropy(seed).fill(bytes)
  return bytes
}

// RFC 7748 §5.2 (the second point with its bit 255 cleared, as X25519 itself reads it), then §6.1 from both sides.
const agreements = [
  {
    scalar: "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
    point: "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
    shared: "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"
  },
  {
    scalar: "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
    point: "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a413",
    shared: "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957"
  },
  {
    scalar: "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
    point: "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f",
    shared: "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"
  },
  {
    scalar: "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
    point: "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
    shared: "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"
  }
]

// RFC 5869 appendix A.1 to A.3.
const derivations = [
  {
    ikm: new Uint8Array(22).fill(0x0b),
    salt: counting(0x00, 13),
    info: counting(0xf0, 10),
    prk: "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
    okm: "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
  },
  {
    ikm: counting(0x00, 80),
    salt: counting(0x60, 80),
    info: counting(0xb0, 80),
    prk: "06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244",
    okm:
      "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09" +
      "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87"
  },
  {
    ikm: new Uint8Array(22).fill(0x0b),
    salt: new Uint8Array(0),
    info: new Uint8Array(0),
    prk: "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04",
    okm: "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"
  }
]

// The AES-128 cases 1 to 4 of the GCM submission to NIST (number 0: the nonce is the IV), then RFC 9001 A.3 (number 1).
const packets = [
  {
    key: "00000000000000000000000000000000",
    iv: "000000000000000000000000",
    number: 0,
    header: "",
    body: "",
    sealed: "58e2fccefa7e3061367f1d57a4e7455a"
  },
  {
    key: "00000000000000000000000000000000",
    iv: "000000000000000000000000",
    number: 0,
    header: "",
    body: "00000000000000000000000000000000",
    sealed: "0388dace60b6a392f328c2b971b2fe78ab6e47d42cec13bdf53a67b21257bddf"
  },
  {
    key: "feffe9928665731c6d6a8f9467308308",
    iv: "cafebabefacedbaddecaf888",
    number: 0,
    header: "",
    body:
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72" +
      "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255",
    sealed:
      "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e" +
      "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091473f5985" +
      "4d5c2af327cd64a62cf35abd2ba6fab4"
  },
  {
    key: "feffe9928665731c6d6a8f9467308308",
    iv: "cafebabefacedbaddecaf888",
    number: 0,
    header: "feedfacedeadbeeffeedfacedeadbeefabaddad2",
    body:
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72" +
      "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
    sealed:
      "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e" +
      "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091" +
      "5bc94fbc3221a5db94fae95ae7121a47"
  },
  {
    key: "cf3a5331653c364c88f0f379b6067e37",
    iv: "0ac1493ca1905853b0bba03e",
    number: 1,
    header: "c1000000010008f067a5502a4262b50040750001",
    body:
      "02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf73988cfc79825df566dc5430b9a045a1200" +
      "130100002e00330024001d00209d3c940d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a002b00020304",
    sealed:
      "5a482cd0991cd25b0aac406a5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c3ec2493a1839b3dbcba3f6" +
      "ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84022f8ef4cdd93795d77d06edbb7aaf2f58891850" +
      "abbdca3d20398c276456cbc42158407dd074ee"
  }
]

// The points of low order whose encoding is canonical, but for 0 (all of https://cr.yp.to/ecdh.html#validate).
const lowOrder = [
  "0100000000000000000000000000000000000000000000000000000000000000",
  "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
  "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"
]
// 2^255 − 19 and above, and small numbers with bit 255 set.
const notCanonical = [
  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "0900000000000000000000000000000000000000000000000000000000000080",
  "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
  "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
]
const zeroKey = "00".repeat(32)

for (const suite of [nobleSuite, nodeSuite]) {
  const { agreement, derivation } = suite
  describe(`the ${suite.name} suite`, () => {
    it("agrees on keys as RFC 7748 says", () => {
      for (const { point, scalar, shared } of agreements) {
        assert.strictEqual(hexOf(agreement.shared(bytesOf(scalar), bytesOf(point))), shared)
      }
      assert.strictEqual(hexOf(agreement.publicKey(bytesOf(agreements[2]!.scalar))), agreements[3]!.point)
      assert.strictEqual(hexOf(agreement.publicKey(bytesOf(agreements[3]!.scalar))), agreements[2]!.point)
    })

    it("iterates X25519 as RFC 7748 §5.2 says", () => {
      const iterations = suite === nodeSuite ? 1_000 : 1 // noble would take seconds
      let scalar = bytesOf("09" + "00".repeat(31))
      let point = scalar
      for (let i = 0; i < iterations; i++) {
        const next = agreement.shared(scalar, point)
        assert.isDefined(next)
        point = scalar
        scalar = next
      }
      assert.strictEqual(
        hexOf(scalar),
        suite === nodeSuite
          ? "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51"
          : "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"
      )
    })

    it("derives as RFC 5869 says", () => {
      for (const { ikm, info, okm, prk, salt } of derivations) {
        assert.strictEqual(hexOf(derivation.extract(salt, ikm)), prk)
        assert.strictEqual(hexOf(derivation.expand(bytesOf(prk), info, okm.length / 2)), okm)
      }
    })

    it("hashes as FIPS 180-4 says", () => {
      assert.strictEqual(
        hexOf(derivation.sha256(new TextEncoder().encode("abc"))),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
      )
    })

    it("returns plain bytes that own their buffer", () => {
      const { point, scalar } = agreements[0]!
      for (const bytes of [
        agreement.publicKey(bytesOf(scalar)),
        agreement.shared(bytesOf(scalar), bytesOf(point))!,
        derivation.extract(bytesOf(scalar), bytesOf(point)),
        derivation.expand(bytesOf(scalar), bytesOf(point), 32),
        derivation.sha256(bytesOf(point))
      ]) {
        assert.strictEqual(Object.getPrototypeOf(bytes), Uint8Array.prototype)
        assert.strictEqual(bytes.buffer.byteLength, bytes.length)
      }
    })

    it("seals and opens in place as the GCM vectors and RFC 9001 A.3 say, touching nothing around", () => {
      for (const { body, header, iv, key, number, sealed } of packets) {
        const packetKey = suite.packetKey(bytesOf(key + iv))
        const before = bytesOf("a1a2a3")
        const after = bytesOf("b1b2")
        const clear = join(before, bytesOf(header), bytesOf(body), new Uint8Array(16), after)
        const packet = join(before, bytesOf(header), bytesOf(sealed), after)
        const start = before.length
        const bodyStart = start + header.length / 2
        const bodyEnd = bodyStart + body.length / 2
        packetKey.seal(clear, start, bodyStart, bodyEnd, number)
        assert.strictEqual(hexOf(clear), hexOf(packet))
        assert.isTrue(packetKey.open(packet, start, bodyStart, bodyEnd + 16, number))
        assert.strictEqual(hexOf(packet.subarray(bodyStart, bodyEnd)), body)
        assert.strictEqual(hexOf(packet.subarray(0, start)), hexOf(before))
        assert.strictEqual(hexOf(packet.subarray(bodyEnd + 16)), hexOf(after))
      }
    })

    it("does not open, and leaves the bytes unchanged, after a change of any byte, the number or the end", () => {
      const packetKey = suite.packetKey(counting(1, 28))
      const sealed = join(counting(0x40, 12), new TextEncoder().encode("twenty bytes of body"), new Uint8Array(16))
      packetKey.seal(sealed, 0, 12, 32, 7)
      const fails = (bytes: Uint8Array, end: number, number: number): void => {
        const original = bytes.slice()
        assert.isFalse(packetKey.open(bytes, 0, 12, end, number))
        assert.deepStrictEqual(bytes, original)
      }
      for (let i = 0; i < sealed.length; i++) {
        const tampered = sealed.slice()
        tampered[i]! ^= 1 << (i % 8)
        fails(tampered, tampered.length, 7)
      }
      fails(sealed, sealed.length, 6)
      fails(sealed, sealed.length, 7 + 2 ** 32)
      for (let end = 0; end < sealed.length; end++) fails(sealed, end, 7)
      assert.isTrue(packetKey.open(sealed, 0, 12, sealed.length, 7))
    })

    it("uses all 53 bits of the number", () => {
      const packetKey = suite.packetKey(counting(1, 28))
      const numbers = [0, 1, 255, 256, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 40 + 3, 2 ** 52, 2 ** 53 - 1]
      const tags = numbers.map((number) => {
        const tag = new Uint8Array(16)
        packetKey.seal(tag, 0, 0, 0, number)
        return hexOf(tag)
      })
      assert.strictEqual(new Set(tags).size, numbers.length)
    })

    it("refuses public keys that are zero, not canonical or of low order (spec §6.1)", () => {
      const own = counting(7, 32)
      for (const key of [zeroKey, ...notCanonical, ...lowOrder]) {
        assert.isUndefined(agreement.shared(own, bytesOf(key)), key)
      }
      assert.isUndefined(agreement.shared(own, new Uint8Array(31).fill(9)))
      assert.isUndefined(agreement.shared(own, new Uint8Array(33).fill(9)))
    })
  })
}

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

describe("the two suites", () => {
  it.prop(
    "agree on public keys, shared secrets and derivations",
    [Schema.Natural],
    ([seed]) => {
      const own = random(seed, 32)
      const peer = keyPair(nodeSuite, seededEntropy(seed + 1))
      assert.deepStrictEqual(nobleSuite.agreement.publicKey(own), nodeSuite.agreement.publicKey(own))
      const shared = nodeSuite.agreement.shared(own, peer.publicKey)
      assert.isDefined(shared)
      assert.deepStrictEqual(nobleSuite.agreement.shared(own, peer.publicKey), shared)
      const length = 1 + (seed % 100)
      assert.deepStrictEqual(nobleSuite.derivation.extract(own, shared), nodeSuite.derivation.extract(own, shared))
      assert.deepStrictEqual(
        nobleSuite.derivation.expand(shared, own, length),
        nodeSuite.derivation.expand(shared, own, length)
      )
    },
    { arbitrary: { runs: 40, seed: 1 } }
  )

  it.prop(
    "agree on raw points, which neither may have chosen",
    [Schema.Natural],
    ([seed]) => {
      const own = random(seed, 32)
      const point = random(seed + 1, 32)
      assert.deepStrictEqual(nobleSuite.agreement.shared(own, point), nodeSuite.agreement.shared(own, point))
    },
    { arbitrary: { runs: 40, seed: 2 } }
  )

  it.prop(
    "seal alike and open each other's packets",
    [Schema.Natural, Schema.Uint8Array],
    ([seed, body]) => {
      const material = random(seed, 28)
      const headerLength = seed % 26
      const number = seed * 4_194_301
      const packet = join(random(seed + 1, headerLength), body, new Uint8Array(16))
      const twin = packet.slice()
      const end = packet.length
      nobleSuite.packetKey(material).seal(packet, 0, headerLength, end - 16, number)
      nodeSuite.packetKey(material).seal(twin, 0, headerLength, end - 16, number)
      assert.deepStrictEqual(packet, twin)
      assert.isTrue(nobleSuite.packetKey(material).open(twin, 0, headerLength, end, number))
      assert.isTrue(nodeSuite.packetKey(material).open(packet, 0, headerLength, end, number))
      assert.deepStrictEqual(packet.subarray(headerLength, end - 16), body)
      assert.deepStrictEqual(twin.subarray(headerLength, end - 16), body)
    },
    { arbitrary: { runs: 200, seed: 3 } }
  )
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

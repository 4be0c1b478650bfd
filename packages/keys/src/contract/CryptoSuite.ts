import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import type { CryptoSuite, SealedPackets } from "../cryptoSuite.ts"
import { keyPair, seededEntropy } from "../entropy.ts"
import { nobleSuite } from "../noble.ts"
import {
  agreements,
  bytesOf,
  counting,
  derivations,
  hexOf,
  join,
  lowOrder,
  notCanonical,
  packets,
  random,
  zeroKey
} from "./vectors.ts"

/**
 * What every `CryptoSuite` promises, as tests: the published vectors, the refusals of spec §6.1, packets one by one and
 * in batches, and the same bytes as the readable reference. An implementation calls this from a test of its own.
 */
export const cryptoSuiteContract = (suite: CryptoSuite, { isFast }: { readonly isFast: boolean }): void => {
  const { agreement, derivation } = suite
  describe(`CryptoSuite contract: ${suite.name}`, () => {
    it("agrees on keys as RFC 7748 says", () => {
      for (const { point, scalar, shared } of agreements) {
        assert.strictEqual(hexOf(agreement.shared(bytesOf(scalar), bytesOf(point))), shared)
      }
      assert.strictEqual(hexOf(agreement.publicKey(bytesOf(agreements[2]!.scalar))), agreements[3]!.point)
      assert.strictEqual(hexOf(agreement.publicKey(bytesOf(agreements[3]!.scalar))), agreements[2]!.point)
    })

    it("iterates X25519 as RFC 7748 §5.2 says", () => {
      const iterations = isFast ? 1_000 : 1 // noble would take seconds
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
        isFast
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

    it("gives a key no more service after its release, and the next key its own", () => {
      const slot = new Uint8Array(40)
      for (let i = 0; i < 100; i++) {
        const key = suite.packetKey(counting(i, 28))
        const other = suite.packetKey(counting(i + 1, 28))
        const packet = random(i, 60)
        const twin = packet.slice()
        key.seal(packet, 0, 12, 44, i)
        nobleSuite.packetKey(counting(i, 28)).seal(twin, 0, 12, 44, i)
        assert.deepStrictEqual(packet, twin)
        assert.isFalse(other.open(packet, 0, 12, 60, i))
        assert.isTrue(key.open(packet, 0, 12, 60, i))
        key.release()
        key.release()
        assert.throws(() => key.seal(slot, 0, 12, 24, i + 1))
        assert.throws(() => key.open(twin, 0, 12, 60, i))
        if (i % 3 > 0) other.release()
      }
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

    it("seals a train as it would seal each packet, touching nothing around", () => {
      const { lengths, slab, stride } = train(9, 30)
      const twin = slab.slice()
      const first = 2 ** 32 - 4 // carries into the high half in the middle of the train
      suite.packetKey(material).sealTrain(slab, stride, lengths, 2, 8, headerLength, first)
      const key = nobleSuite.packetKey(material)
      for (let i = 2; i < 8; i++) {
        const start = i * stride
        key.seal(twin, start, start + headerLength, start + lengths[i]! - 16, first + i - 2)
      }
      assert.deepStrictEqual(slab, twin)
      suite.packetKey(material).sealTrain(slab, stride, lengths, 8, 8, headerLength, 2 ** 53 - 1)
      assert.deepStrictEqual(slab, twin)
    })

    it("opens a table as it would open each packet, and leaves those that do not verify as they were", () => {
      const { lengths, slab, stride } = train(12, 31)
      const clear = slab.slice()
      const key = suite.packetKey(material)
      const first = 2 ** 53 - 1 - lengths.length + 1 // the last is the largest number there is
      key.sealTrain(slab, stride, lengths, 0, lengths.length, headerLength, first)
      slab[3 * stride]! ^= 1 // a header
      slab[5 * stride + headerLength + 1]! ^= 128 // a body
      slab[6 * stride + lengths[6]! - 1]! ^= 4 // a tag
      const table = tableOf(lengths, stride, first)
      table.numbers[7]! -= 1
      table.ends[8] = table.starts[8]! + headerLength + 15 // no room for a tag
      table.ends[9] = table.starts[9]! // nothing at all
      const expected = slab.slice()
      const opening = new Set([1, 2, 4, 10])
      for (const i of opening) {
        const bodyEnd = i * stride + lengths[i]! - 16
        expected.set(clear.subarray(i * stride, bodyEnd), i * stride)
      }
      key.openAll(slab, table, 1, 11, headerLength)
      assert.deepStrictEqual(slab, expected)
      const noted = Array.from(lengths, (_, i) => (i < 1 || i >= 11 ? 7 : opening.has(i) ? 1 : 0))
      assert.deepStrictEqual([...table.opened], noted)
    })

    it("opens with another key what the first key left", () => {
      const [one, other] = [suite.packetKey(material), suite.packetKey(counting(90, 28))]
      const { lengths, slab, stride } = train(20, 32)
      const clear = slab.slice()
      for (let i = 0; i < lengths.length; i++) {
        ;(i % 3 === 0 ? other : one).sealTrain(slab, stride, lengths, i, i + 1, headerLength, i)
      }
      const table = tableOf(lengths, stride, 0)
      one.openAll(slab, table, 0, lengths.length, headerLength)
      for (let i = 0; i < lengths.length; i++) {
        assert.strictEqual(table.opened[i], i % 3 === 0 ? 0 : 1)
        const start = i * stride
        const end = start + lengths[i]!
        if (i % 3 === 0) assert.isTrue(other.open(slab, start, start + headerLength, end, i))
        assert.deepStrictEqual(slab.subarray(start, end - 16), clear.subarray(start, end - 16))
      }
    })

    it.prop(
      "seals as the reference does, and opens what it sealed",
      [Schema.Natural, Schema.Uint8Array],
      ([seed, body]) => {
        const keyMaterial = random(seed, 28)
        const header = seed % 26
        const number = seed * 4_194_301
        const packet = join(random(seed + 1, header), body, new Uint8Array(16))
        const twin = packet.slice()
        const end = packet.length
        nobleSuite.packetKey(keyMaterial).seal(packet, 0, header, end - 16, number)
        suite.packetKey(keyMaterial).seal(twin, 0, header, end - 16, number)
        assert.deepStrictEqual(packet, twin)
        assert.isTrue(nobleSuite.packetKey(keyMaterial).open(twin, 0, header, end, number))
        assert.isTrue(suite.packetKey(keyMaterial).open(packet, 0, header, end, number))
        assert.deepStrictEqual(packet.subarray(header, end - 16), body)
        assert.deepStrictEqual(twin.subarray(header, end - 16), body)
      },
      { arbitrary: { runs: 200, seed: 3 } }
    )

    if (suite === nobleSuite) return // what follows compares with it

    it.prop(
      "agrees with the reference on public keys, shared secrets and derivations",
      [Schema.Natural],
      ([seed]) => {
        const own = random(seed, 32)
        const peer = keyPair(suite, seededEntropy(seed + 1))
        assert.deepStrictEqual(agreement.publicKey(own), nobleSuite.agreement.publicKey(own))
        const shared = agreement.shared(own, peer.publicKey)
        assert.isDefined(shared)
        assert.deepStrictEqual(shared, nobleSuite.agreement.shared(own, peer.publicKey))
        const length = 1 + (seed % 100)
        assert.deepStrictEqual(derivation.extract(own, shared), nobleSuite.derivation.extract(own, shared))
        assert.deepStrictEqual(
          derivation.expand(shared, own, length),
          nobleSuite.derivation.expand(shared, own, length)
        )
      },
      { arbitrary: { runs: 40, seed: 1 } }
    )

    it.prop(
      "agrees with the reference on raw points, which neither may have chosen",
      [Schema.Natural],
      ([seed]) => {
        const own = random(seed, 32)
        const point = random(seed + 1, 32)
        assert.deepStrictEqual(agreement.shared(own, point), nobleSuite.agreement.shared(own, point))
      },
      { arbitrary: { runs: 40, seed: 2 } }
    )
  })
}

const material = counting(1, 28)
const headerLength = 12
/** Of bodies: none, short, just below, at and above whole blocks of AES, a full datagram. */
const bodyLengths = [100, 0, 1, 15, 16, 17, 31, 64, 255, 1_024, 1_424]

/** Clear packets in a slab, with room for a tag each, and bytes between them that are nobody's. */
const train = (count: number, seed: number) => {
  const stride = 1_460
  const lengths = Uint32Array.from(
    { length: count },
    (_, i) => headerLength + bodyLengths[i % bodyLengths.length]! + 16
  )
  return { slab: random(seed, count * stride), stride, lengths }
}

const tableOf = (lengths: Uint32Array, stride: number, first: number): SealedPackets => ({
  starts: Uint32Array.from(lengths, (_, i) => i * stride),
  ends: Uint32Array.from(lengths, (length, i) => i * stride + length),
  numbers: Float64Array.from(lengths, (_, i) => first + i),
  opened: new Uint8Array(lengths.length).fill(7)
})

import { assert, describe, it } from "@effect/vitest"
import {
  answerKey,
  type CryptoSuite,
  dataKey,
  epochSecret,
  keyIdOf,
  lostKey,
  nobleSuite,
  nodeSuite,
  type PacketKey,
  packetKeyMaterialLength,
  staticSecret
} from "@pure-link/keys"
import vectors from "./keys.json" with { type: "json" }

/** The frozen vectors of the key schedule (spec §6, §19), for both suites and from both ends. */

const bytesOf = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, "hex"))
const hexOf = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString("hex")

/** What a packet key is made from, seen on its way into the suite. */
const materialOf = (suite: CryptoSuite, derive: (watched: CryptoSuite) => PacketKey): string => {
  let material = ""
  derive({
    ...suite,
    packetKey: (bytes) => {
      assert.strictEqual(bytes.length, packetKeyMaterialLength)
      material = hexOf(bytes)
      return suite.packetKey(bytes)
    }
  })
  return material
}

const { epoch0, epochs, receiver, sender } = vectors
const pair = { sender: bytesOf(sender.publicKey), receiver: bytesOf(receiver.publicKey) }
const run = BigInt(`0x${vectors.run}`)
const replyRun = BigInt(`0x${vectors.replyRun}`)

for (const suite of [nodeSuite, nobleSuite]) {
  describe(`keys.json, by the ${suite.name} suite`, () => {
    it("gives the public keys and key ids", () => {
      for (const node of [sender, receiver]) {
        assert.strictEqual(hexOf(suite.agreement.publicKey(bytesOf(node.privateKey))), node.publicKey)
        assert.strictEqual(keyIdOf(suite, bytesOf(node.publicKey)), Number.parseInt(node.keyId, 16))
      }
    })

    it("gives E0 from both ends, and its packet keys", () => {
      const secret = staticSecret(suite, bytesOf(sender.privateKey), pair.receiver, pair)!
      assert.strictEqual(hexOf(secret), epoch0.secret)
      assert.deepStrictEqual(staticSecret(suite, bytesOf(receiver.privateKey), pair.sender, pair), secret)
      assert.strictEqual(
        materialOf(suite, (watched) => dataKey(watched, secret, pair, run, 0)),
        epoch0.data
      )
      assert.strictEqual(
        materialOf(suite, (watched) => answerKey(watched, secret, pair, run, 0, replyRun)),
        epoch0.answer
      )
      assert.strictEqual(
        materialOf(suite, (watched) => lostKey(watched, secret, pair, replyRun)),
        epoch0.lost
      )
    })

    for (const vector of epochs) {
      it(`gives epoch ${vector.epoch}, offered under ${vector.carrier}, from both ends, and its packet keys`, () => {
        const { carrier, epoch } = vector
        const carrierSecret = bytesOf(carrier === 0 ? epoch0.secret : epochs.find((e) => e.epoch === carrier)!.secret)
        const offerKey = bytesOf(vector.offerKey)
        const acceptKey = bytesOf(vector.acceptKey)
        const common = { carrierSecret, pair, run, epoch, offerKey, acceptKey }
        const secret = epochSecret(suite, {
          ...common,
          ownPrivate: bytesOf(vector.offerPrivateKey),
          peerPublic: acceptKey
        })!
        assert.strictEqual(hexOf(secret), vector.secret)
        assert.deepStrictEqual(
          epochSecret(suite, { ...common, ownPrivate: bytesOf(vector.acceptPrivateKey), peerPublic: offerKey }),
          secret
        )
        assert.strictEqual(hexOf(suite.agreement.publicKey(bytesOf(vector.offerPrivateKey))), vector.offerKey)
        assert.strictEqual(
          materialOf(suite, (watched) => dataKey(watched, secret, pair, run, epoch)),
          vector.data
        )
        assert.strictEqual(
          materialOf(suite, (watched) => answerKey(watched, secret, pair, run, epoch, replyRun)),
          vector.answer
        )
      })
    }
  })
}

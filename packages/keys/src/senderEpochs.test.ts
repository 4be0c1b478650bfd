import { assert, describe, it } from "@effect/vitest"
import { epochBitsOf, never } from "@pure-link/wire"
import { Dialogue } from "../test/dialogue.ts"
import { keyPair, seededEntropy } from "./entropy.ts"
import { formerEpochLife } from "./epochKeys.ts"
import { type EpochLimits, epochLimits } from "./epochLimits.ts"
import { nodeSuite } from "./node.ts"
import { staticSecret } from "./schedule.ts"
import { SenderEpochs } from "./senderEpochs.ts"

/** When a sender offers the next epoch, and when a key has done all that it may (spec §7.6). */

const second = 1_000_000
const timeout = 60_000

/** A sender in epoch 1, which began at `began`, with these limits; its peer is played by hand. */
const inEpochOne = (limits: Partial<EpochLimits> = {}, began = second): SenderEpochs => {
  const [own, peer] = [1, 2].map((seed) => keyPair(nodeSuite, seededEntropy(seed))) as [
    ReturnType<typeof keyPair>,
    never
  ]
  const pair = { sender: own.publicKey, receiver: peer["publicKey"] }
  const epochs = new SenderEpochs({
    suite: nodeSuite,
    entropy: seededEntropy(3),
    pair,
    run: 7n,
    staticSecret: staticSecret(nodeSuite, own.privateKey, pair.receiver, pair)!,
    limits: epochLimits(limits)
  })
  accept(epochs, began)
  return epochs
}

/** The peer accepts whatever is offered in the present epoch. */
const accept = (epochs: SenderEpochs, now: number): void => {
  const { epoch, publicKey } = epochs.offer(epochs.epoch)
  const echo = new DataView(publicKey.buffer, publicKey.byteOffset).getUint32(0)
  assert.isTrue(epochs.handleAccept(now, epoch, echo, keyPair(nodeSuite, seededEntropy(epoch + 50)).publicKey))
}

describe("the next epoch (spec §7.6)", () => {
  it("is offered when the present one is a lifetime old, and not before", () => {
    const epochs = inEpochOne({ lifetimeMicros: 10 * second })
    assert.isTrue(epochs.handleOpened(2 * second, 1))
    assert.isFalse(epochs.wantsOffer(11 * second - 1, timeout))
    assert.isTrue(epochs.wantsOffer(11 * second, timeout))
  })

  it("is offered after so many packets, and not before", () => {
    const epochs = inEpochOne({ packets: 5 })
    epochs.handleOpened(2 * second, 1)
    for (let i = 0; i < 4; i++) epochs.handleSealed(1)
    for (let i = 0; i < 9; i++) epochs.handleSealed(0)
    assert.isFalse(epochs.wantsOffer(3 * second, timeout))
    epochs.handleSealed(1)
    assert.isTrue(epochs.wantsOffer(3 * second, timeout))
  })

  it("is offered after half of the forged answers that a key may meet, of those that claim its epoch", () => {
    const epochs = inEpochOne({ mostForged: 5 })
    epochs.handleOpened(2 * second, 1)
    for (let i = 0; i < 2; i++) epochs.handleForged(epochBitsOf(1))
    for (let i = 0; i < 9; i++) epochs.handleForged(epochBitsOf(2))
    assert.isFalse(epochs.wantsOffer(3 * second, timeout))
    epochs.handleForged(epochBitsOf(1))
    assert.isTrue(epochs.wantsOffer(3 * second, timeout))
  })

  it("is not offered sooner than three probe timeouts after the first answer under the present one", () => {
    const epochs = inEpochOne({ packets: 1 })
    for (let i = 0; i < 9; i++) epochs.handleSealed(1)
    assert.isFalse(epochs.wantsOffer(60 * second, timeout), "not confirmed")
    assert.isFalse(epochs.handleOpened(60 * second, 0), "an answer in epoch 0 confirms nothing")
    assert.isTrue(epochs.handleOpened(60 * second, 1))
    assert.isFalse(epochs.handleOpened(61 * second, 1), "only the first one does")
    assert.isFalse(epochs.wantsOffer(60 * second + 3 * timeout - 1, timeout))
    assert.isTrue(epochs.wantsOffer(60 * second + 3 * timeout, timeout))
  })

  it("is offered for an old one that was never confirmed, three probe timeouts after it began", () => {
    const epochs = inEpochOne({ lifetimeMicros: 100_000 })
    assert.isFalse(epochs.wantsOffer(second + 100_000, timeout))
    assert.isTrue(epochs.wantsOffer(second + 3 * timeout, timeout))
  })

  it("stays offered until ACCEPT, and then counts anew", () => {
    const epochs = inEpochOne({ packets: 2 })
    epochs.handleOpened(second, 1)
    for (let i = 0; i < 2; i++) epochs.handleSealed(1)
    const offer = epochs.offer(1)
    assert.isTrue(epochs.wantsOffer(second, timeout), "although it is too soon for a new one")
    assert.strictEqual(epochs.offer(1), offer)
    accept(epochs, 2 * second)
    assert.deepStrictEqual([epochs.epoch, epochs.hasOffer], [2, false])
    epochs.handleOpened(2 * second, 2)
    assert.isFalse(epochs.wantsOffer(9 * second, timeout))
    epochs.handleSealed(2)
    assert.isFalse(epochs.wantsOffer(9 * second, timeout))
    epochs.handleSealed(2)
    assert.isTrue(epochs.wantsOffer(9 * second, timeout))
  })

  it("is not meant by an OFFER of silent recovery, which epoch 0 carries", () => {
    const epochs = inEpochOne()
    epochs.handleOpened(second, 1)
    epochs.offer(0)
    assert.isFalse(epochs.wantsOffer(2 * second, timeout))
  })
})

describe("a key that has done all that it may", () => {
  it("is spent after its most packets, each epoch by its own count", () => {
    const epochs = inEpochOne({ packets: 2, mostPackets: 4 })
    for (let i = 0; i < 3; i++) epochs.handleSealed(1)
    assert.isFalse(epochs.isSpent(1))
    epochs.handleSealed(1)
    assert.deepStrictEqual([epochs.isSpent(1), epochs.isSpent(0)], [true, false])
    for (let i = 0; i < 4; i++) epochs.handleSealed(0)
    assert.isTrue(epochs.isSpent(0))
    accept(epochs, 2 * second)
    assert.deepStrictEqual([epochs.epoch, epochs.isSpent(2), epochs.isSpent(0)], [2, false, true])
  })

  it("opens nothing after its most forged answers, while the former epoch and silent recovery go on", () => {
    const epochs = inEpochOne({ mostForged: 3 })
    const opens = (epoch: number): number => epochs.answerKeys(12 * second, epochBitsOf(epoch), 9n).length
    accept(epochs, 12 * second)
    assert.deepStrictEqual([opens(1), opens(2)], [1, 1])
    for (let i = 0; i < 3; i++) epochs.handleForged(epochBitsOf(2))
    assert.deepStrictEqual([opens(1), opens(2), epochs.isSpent(2)], [1, 0, true])
    assert.strictEqual(opens(0), 0)
    epochs.offer(0)
    assert.strictEqual(opens(0), 1)
  })
})

describe("secrets that are over (spec §7.7)", () => {
  const isErased = (bytes: Uint8Array): boolean => bytes.every((byte) => byte === 0)

  it("are erased: an offer's private key with its ACCEPT or the next offer, a former epoch after 10 s, all at the end", () => {
    const dialogue = new Dialogue()
    for (let i = 0; i < 3; i++) dialogue.advance()
    const { sender, senderDrew } = dialogue
    assert.lengthOf(senderDrew, 3)
    assert.isTrue(senderDrew.every(isErased))
    sender.offer(3)
    assert.isFalse(isErased(senderDrew[3]!))
    sender.offer(0)
    assert.isTrue(isErased(senderDrew[3]!))
    sender.dropOffer()
    assert.isTrue(isErased(senderDrew[4]!))
    assert.notStrictEqual(sender.expiresAt, never)
    const secrets = (): number => dialogue.derived.filter((bytes) => bytes.length === 32 && !isErased(bytes)).length
    const before = secrets()
    sender.expire(dialogue.now + formerEpochLife)
    assert.strictEqual(secrets(), before - 1)
    sender.close()
    assert.strictEqual(secrets(), before - 2)
    assert.isFalse(isErased(dialogue.secret0))
  })
})
